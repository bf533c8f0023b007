package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// written writes a file and returns a request to read it.
func written(t *testing.T, text string) *request {
	t.Helper()
	name := filepath.Join(t.TempDir(), "riprap.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &request{file: name}
}

func TestAProxyThatSendsToItselfIsRefused(t *testing.T) {
	for _, test := range []struct {
		listen, to string
		want       bool
	}{
		{"127.0.0.1:7070", "http://127.0.0.1:7070", true},
		{"127.0.0.1:7070", "http://localhost:7070/api", true},
		{"localhost:7070", "http://127.0.0.1:7070", true},
		{"0.0.0.0:7070", "http://127.0.0.1:7070", true},
		{"[::]:7070", "http://[::1]:7070", true},
		{"127.0.0.1:7070", "http://0.0.0.0:7070", true},
		{"127.0.0.1:80", "http://127.0.0.1", true},
		{"127.0.0.1:443", "https://127.0.0.1", true},
		{"payments.internal:7070", "http://Payments.internal:7070", true},
		{"127.0.0.1:7070", "http://127.0.0.1:7071", false},
		{"127.0.0.1:7070", "http://127.0.0.2:7070", false},
		{"127.0.0.1:7070", "http://192.0.2.1:7070", false},
		{"0.0.0.0:7070", "http://192.0.2.1:7070", false},
		{"127.0.0.1:80", "https://127.0.0.1", false},
		{"127.0.0.1:0", "http://127.0.0.1", false},
	} {
		q := &request{proxy: manifest.Proxy{Service: "a", Listen: test.listen, To: test.to}}
		_, err := q.load()
		if got := err != nil && strings.Contains(err.Error(), "which is itself"); got != test.want {
			t.Errorf("listening on %s, sending to %s: %v, want refused: %v", test.listen, test.to, err, test.want)
		}
	}
}

func TestAPasswordInAnAddressIsNotRepeated(t *testing.T) {
	for _, to := range []string{
		"http://me:secret@127.0.0.1:7070", "http://127.0.0.1:7070/?token=secret", "http://me:secret@", "me:secret@127.0.0.1:7070", "http://me:secret@127.0.0.1:70 70",
	} {
		q := &request{proxy: manifest.Proxy{Service: "a", Listen: "127.0.0.1:7070", To: to}}
		if _, err := q.load(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("sending to %s: %v, want an error without the secret", to, err)
		}
	}
}

func TestAFindingAtAProxyRefusesTheStart(t *testing.T) {
	q := written(t, `services:
  payments:
    proxy:
      listen: 127.0.0.1:7070
      to: http://127.0.0.1:9000
      policy: {timeout: 2s, attemptTimeout: 2s}
`)
	_, err := q.load()
	if want := q.file + ":6:7: attempts-do-not-fit: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("load = %v, want an error with %s", err, want)
	}
	if code := exit.Code(told(err)); code != exit.NotFine {
		t.Errorf("exit code %d, want %d", code, exit.NotFine)
	}
}

func TestAFindingElsewhereIsAWarning(t *testing.T) {
	q := written(t, `services:
  orders:
    calls: [{to: stock, policy: {maxAttempts: 2, timeout: 5s, attemptTimeout: 1s}}]
  stock: {}
  payments:
    proxy: {listen: 127.0.0.1:7070, to: "http://127.0.0.1:9000"}
`)
	c, err := q.load()
	if err != nil {
		t.Fatalf("load = %v, want no error", err)
	}
	if got := strings.Join(c.warnings, "\n"); !strings.Contains(got, q.file+":3:") || !strings.Contains(got, "no-budget") {
		t.Errorf("warnings = %q, want one of no-budget in line 3", got)
	}
}

func TestFindingsAboutFlagsNameThem(t *testing.T) {
	q, err := parse([]string{"--listen", ":0", "--to", "http://a", "--timeout", "none", "--attempt-timeout", "none"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.load(); err == nil || !strings.Contains(err.Error(), "Set --timeout to 30s") {
		t.Errorf("load without any timeout = %v, want an error that says to set --timeout", err)
	}
}

func TestFilesThatCannotBeReadAreMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	no := filepath.Join("no", "such")
	for name, test := range map[string]struct {
		q    *request
		want string
	}{
		"no file":          {&request{file: manifest.Name}, "no riprap.yaml in this folder"},
		"another":          {&request{file: no}, no},
		"no proxy in it":   {written(t, "services: {payments: {}}"), `no service in it has a "proxy"`},
		"YAML":             {written(t, "services: {payments: {prox: {}}}"), `did you mean "proxy"?`},
		"certificate":      {&request{proxy: manifest.Proxy{Service: "a", To: "http://a", TLSCert: no, TLSKey: no}}, no},
		"roots":            {&request{proxy: manifest.Proxy{Service: "a", To: "http://a", CA: no}}, no},
		"two on one":       {written(t, "services: {payments: {proxy: {listen: \":7071\", to: \"http://a\"}}}"), "both listen on 127.0.0.1:7071"},
		"header unlimited": {&request{proxy: manifest.Proxy{Service: "a", To: "http://a", MaxHeader: -1}}, "want a size"},
	} {
		_, err := test.q.load()
		if err == nil || !strings.Contains(err.Error(), test.want) || exit.Code(told(err)) != exit.Usage {
			t.Errorf("%s: load = %v, exit code %d, want an error with %q and %d", name, err, exit.Code(told(err)), test.want, exit.Usage)
		}
	}
}

func TestFlagsSayMoreThanTheFileAndTheFileMoreThanTheDefaults(t *testing.T) {
	flags := manifest.Proxying{Admin: "none"}
	file := manifest.Proxying{Admin: "127.0.0.1:1", Store: "file.db"}
	if got, want := fill(flags, file), (manifest.Proxying{Admin: "none", Store: "file.db", Drain: defaultDrain}); got != want {
		t.Errorf("fill(%+v, %+v) = %+v, want %+v", flags, file, got, want)
	}
}
