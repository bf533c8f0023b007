package proxies

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/internal/selfsigned"
)

func TestAnswersThroughTheProxyAreThoseOfTheService(t *testing.T) {
	goes, ca := goServices(t)
	services := slices.Concat(goes, nodeServices(t), pythonService(t), nginxService(t))
	cert, key := certificate(t)
	all := clients(t)
	for _, s := range services {
		flags := []string{"--attempts", "1"}
		if s.protocol == h2 {
			flags = append(flags, "--ca", ca)
		}
		plain, secure := stand(t, s.to, flags...), stand(t, s.to, append(flags, "--tls-cert", cert, "--tls-key", key)...)
		told := make(map[string]answer) // by the service itself
		for _, c := range all {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				direct, borrowed := directly(c, s.protocol, all)
				var chosen, untold []exchange
				for _, e := range exchanges {
					if !c.can(e) || !s.serves(e) || borrowed && e.shaped() {
						continue
					}
					chosen = append(chosen, e)
					if _, ok := told[direct.name+e.String()]; !ok {
						untold = append(untold, e)
					}
				}
				for i, a := range direct.send(t, s.url, ca, untold) {
					told[direct.name+untold[i].String()] = a
				}
				through, trusted := plain.url, ""
				if c.protocol == h2 {
					through, trusted = secure.url, cert
				}
				for i, a := range c.send(t, through, trusted, chosen) {
					want := told[direct.name+chosen[i].String()]
					if want.Error != "" || a.plainly() != want.plainly() {
						t.Errorf("%v: through the proxy:\n%s\ndirectly:\n%s", chosen[i], a.plainly(), want.plainly())
					}
				}
			})
		}
	}
}

func TestEachServiceOfAFileHasAnAddressOfItsOwn(t *testing.T) {
	p := file(t, fmt.Sprintf(`services:
  orders:
    proxy: {listen: "127.0.0.1:0", to: %q}
  payments:
    proxy:
      listen: 127.0.0.1:0
      to: %s
      requireKey: [POST /echo]
      scope: header:X-Customer
`, serve(t, http1, serveGo), serve(t, h2c, serveGo)), "--store", filepath.Join(t.TempDir(), "keys.db"))
	tr := newTransport(t, http1, "")
	for service, want := range map[string]int{"orders": http.StatusOK, "payments": http.StatusBadRequest} {
		a, err := goExchange(tr, p.urls[service], exchange{Method: "POST", Target: "/echo"})
		if err != nil || a.Status != want {
			t.Errorf("POST /echo without a key by the address of %s, %q: got %d, %v, want %d", service, p.urls[service], a.Status, err, want)
		}
	}
}

// directly returns the client that calls a service directly, to compare with what another one gets through the proxy: it is the
// same program, or borrowed if that does not speak the service's protocol.
func directly(c client, p protocol, all []client) (direct client, borrowed bool) {
	for _, other := range all {
		if other.kind == c.kind && other.protocol == p {
			return other, false
		}
	}
	return client{"go-" + string(p), "go", p, sendGo(p)}, true
}

// shaped reports whether the answer depends on the client: on the fields that it adds, or on what it lets its caller see.
func (e exchange) shaped() bool {
	return slices.Contains([]string{"echo", "packed", "trailers", "early", "cookies", "fields"}, e.word())
}

func (e exchange) word() string {
	return strings.FieldsFunc(e.Target, func(r rune) bool { return r == '/' || r == '?' })[0]
}

func (s service) serves(e exchange) bool {
	return slices.Contains(s.paths, e.word()) || e.word() == "*" && strings.HasPrefix(s.name, "go-")
}

// certificate returns files with a certificate for this machine, which is its own authority, and its key.
func certificate(t testing.TB) (cert, key string) {
	t.Helper()
	made, err := selfsigned.Certificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: made.Certificate[0]},
		key:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
