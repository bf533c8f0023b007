package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

func TestTheAdminListenerKnowsNoNamesThatOthersOwn(t *testing.T) {
	h := private("ops.internal", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"127.0.0.1:7071": 200, "127.0.0.1": 200, "[::1]:7071": 200, "[::1]": 200, "192.0.2.1": 200, "localhost:7071": 200,
		"LocalHost": 200, "ops.internal:7071": 200, "Ops.internal": 200,
		"evil.test": 421, "evil.test:7071": 421, "127.0.0.1.evil.test": 421, "localhost.evil.test": 421, "": 421, "[": 421,
	} {
		r := httptest.NewRequest("GET", "/state", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
}

func TestTheAdminListenerTakesNothingFromPagesOfOthers(t *testing.T) {
	h := private("127.0.0.1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("POST", "http://127.0.0.1:7071/", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a POST of another site: %d, want %d", w.Code, http.StatusForbidden)
	}
}

func TestReadyUntilTheEndAndAliveUntilItIsOver(t *testing.T) {
	g, to := newGate(t)
	c := configure(t, manifest.Proxy{Service: "a", To: to})
	c.Admin = "127.0.0.1:0"
	r := launch(t, c)
	admin := r.server("").url()
	if got := fetch(fresh(t), admin+"/readyz"); got != "200 ok\n" {
		t.Errorf("/readyz before: %s, want 200 ok", got)
	}
	client := fresh(t)
	result := sent(func() string { return fetch(client, r.server("a").url()) })
	finished(t, "the request at the service", g.arrived)
	done := r.ending()
	if got := fetch(fresh(t), admin+"/readyz"); got != "503 not ready\n" {
		t.Errorf("/readyz while it ends: %s, want 503", got)
	}
	if got := fetch(fresh(t), admin+"/livez"); got != "200 ok\n" {
		t.Errorf("/livez while it ends: %s, want 200", got)
	}
	g.release()
	finished(t, "the request", result)
	finished(t, "the end", done)
}

func TestTrafficAndAdminShareNoListener(t *testing.T) {
	c := configure(t, manifest.Proxy{Service: "a", To: saying(t, "the service")})
	c.Admin = "127.0.0.1:0"
	r := launch(t, c)
	for _, path := range []string{"/metrics", "/state", "/livez", "/readyz"} {
		if got := fetch(fresh(t), r.server("a").url()+path); got != "200 the service" {
			t.Errorf("%s at the service's address: %s, want the service's answer", path, got)
		}
	}
	if got := fetch(fresh(t), r.server("").url()+"/"); got == "200 the service" {
		t.Errorf("/ at the admin's address: %s, want nothing of the service", got)
	}
}
