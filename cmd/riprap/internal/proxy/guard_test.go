package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

func guardOf(t testing.TB, patterns ...string) *guard {
	t.Helper()
	g, err := newGuard(&manifest.Proxy{RequireKey: patterns})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNoSpellingOfAPathGoesAroundItsKey(t *testing.T) {
	g := guardOf(t, "POST /charge", "POST /pay/{id}", "/tree/", "PUT /Mixed/Case")
	const (
		guarded = "guarded"
		doubted = "doubted"
		free    = "free"
	)
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/charge", guarded},
		{"POST", "/charge?x=/charge/../", guarded},
		{"GET", "/charge", free},
		{"PUT", "/charge", free},
		{"POST", "/charges", free},
		{"POST", "/charge/more", free},
		{"POST", "/", free},
		{"POST", "/charge/", doubted},
		{"POST", "//charge", doubted},
		{"POST", "/./charge", doubted},
		{"POST", "/x/../charge", doubted},
		{"POST", "/x/%2e%2e/charge", doubted},
		{"POST", "/%63harge", doubted},
		{"POST", "/%2563harge", doubted},
		{"POST", "/charge%20", doubted},
		{"POST", "/charge%00.txt", doubted},
		{"POST", "/charge%2F", doubted},
		{"POST", "/charge;v=1", doubted},
		{"POST", "/charge%3Bv=1", doubted},
		{"POST", "/charge%3Fa", doubted},
		{"POST", "/charge%23a", doubted},
		{"POST", "/CHARGE", doubted},
		{"POST", "/charge.json", doubted},
		{"POST", "/charge.anything-at-all", doubted},
		{"POST", "/charge.", doubted},
		{"POST", `/%5Ccharge`, doubted},
		{"POST", "/charge/.", doubted},
		{"post", "/charge", doubted},
		{"Post", "/%63harge", doubted},
		{"POST", "/pay/7", guarded},
		{"POST", "/pay/A%2FB", guarded},
		{"POST", "/PAY/7", doubted},
		{"POST", "/pay//7", doubted},
		{"POST", "/pay/7/", doubted},
		{"POST", "/tree/a/b", guarded},
		{"PATCH", "/tree/a", guarded},
		{"GET", "/tree/a", free},
		{"POST", "/Tree/a", doubted},
		{"POST", "/tree", doubted},
		{"PUT", "/Mixed/Case", guarded},
		{"PUT", "/mixed/case", doubted},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := url.ParseRequestURI(c.path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL, r.RequestURI, r.Method = u, c.path, c.method
		found, doubt := g.find(r)
		got := free
		switch {
		case doubt != "":
			got = doubted
		case found != nil:
			got = guarded
		}
		if got != c.want {
			t.Errorf("%s %s is %s (%q), want %s", c.method, c.path, got, doubt, c.want)
		}
	}
}

func TestAFieldForAnotherMethodDoesNotGoAroundAKey(t *testing.T) {
	g := guardOf(t, "PUT /charge")
	r := httptest.NewRequest("POST", "/charge", nil)
	if found, doubt := g.find(r); found != nil || doubt != "" {
		t.Errorf("POST /charge = %v, %q; want neither", found, doubt)
	}
	for _, name := range overrides {
		for _, values := range [][]string{{"put"}, {"GET", "PUT"}, {"", "PUT"}, {"GET, PUT"}, {"PUT;q=1", " PUT "}} {
			r := httptest.NewRequest("POST", "/charge", nil)
			r.Header[name] = values
			if _, doubt := g.find(r); doubt == "" {
				t.Errorf("POST /charge with %s: %q is not doubted, want it to be", name, values)
			}
		}
	}
}

func TestAPatternThatGuardsNothingIsRefused(t *testing.T) {
	for _, pattern := range []string{"GET /charge", "charge", "", "POST charge", "POST /a/{b", "POST  "} {
		if _, err := newGuard(&manifest.Proxy{RequireKey: []string{pattern}}); err == nil || !strings.Contains(err.Error(), "pattern") {
			t.Errorf("newGuard(%q) = %v, want an error about the pattern", pattern, err)
		}
	}
}

// Whatever a service makes of a path, in one of the usual ways, is not let through as something else.
func FuzzGuard(f *testing.F) {
	for _, seed := range []string{"/charge", "/%63harge", "//charge/", "/a/../charge", "/a/%2e%2e/charge", "/CHARGE;x", "/charge%2f", `/\charge`} {
		f.Add(seed)
	}
	g := guardOf(f, "POST /charge")
	readings := []func(string) string{
		path.Clean,
		strings.ToLower,
		func(p string) string { return path.Clean(strings.ToLower(p)) },
		func(p string) string { return strings.TrimSuffix(p, "/") },
		func(p string) string { return strings.ReplaceAll(p, `\`, "/") },
		func(p string) string { p, _, _ = strings.Cut(p, ";"); return path.Clean(p) },
		func(p string) string { p, _, _ = strings.Cut(p, "\x00"); return p },
		func(p string) string { return path.Clean(strings.ReplaceAll(p, "//", "/")) },
	}
	f.Fuzz(func(t *testing.T, p string) {
		u, err := url.ParseRequestURI(p)
		if err != nil || !strings.HasPrefix(p, "/") || u.Host != "" {
			return
		}
		r := &http.Request{Method: "POST", URL: u, Header: http.Header{}, Host: "h"}
		found, doubt := g.find(r)
		if found != nil || doubt != "" {
			return
		}
		for i, read := range readings {
			for _, text := range []string{u.Path, u.EscapedPath()} {
				if read(text) == "/charge" {
					t.Errorf("POST %q passes as something else, and reading %d makes it /charge", p, i)
				}
			}
		}
	})
}
