package proxies

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A lax service charges for whatever some framework would take for POST /charge or POST /accounts/ID/charge.
type lax struct {
	mu       sync.Mutex
	charges  int
	answered int
}

var (
	params = regexp.MustCompile(`;[^/]*`)
	suffix = regexp.MustCompile(`\.[^/]*$`)
	charge = regexp.MustCompile(`^(/accounts/[^/]+)?/charge$`)
)

func (l *lax) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered++
	methods := []string{strings.ToUpper(r.Method)}
	for name, values := range r.Header {
		switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
		case "x-http-method-override", "x-http-method", "x-method-override":
			for _, v := range values {
				for as := range strings.SplitSeq(v, ",") {
					methods = append(methods, strings.ToUpper(strings.TrimSpace(as)))
				}
			}
		}
	}
	p, _, _ := strings.Cut(r.RequestURI, "?")
	for range 3 {
		if plain, err := url.PathUnescape(p); err == nil {
			p = plain
		}
	}
	p, _, _ = strings.Cut(p, "\x00")
	p, _, _ = strings.Cut(p, "#")
	p, _, _ = strings.Cut(p, "?")
	p = params.ReplaceAllString(strings.ToLower(strings.ReplaceAll(p, `\`, "/")), "")
	p = path.Clean("/" + strings.TrimSpace(p))
	if slices.Contains(methods, "POST") && (charge.MatchString(p) || charge.MatchString(suffix.ReplaceAllString(p, ""))) {
		l.charges++
	}
	fmt.Fprintf(w, "%d\n", l.charges)
}

func (l *lax) take() (charges, answered int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	charges, answered = l.charges, l.answered
	l.charges, l.answered = 0, 0
	return charges, answered
}

func TestNoSpellingOfARequestGoesAroundItsKey(t *testing.T) {
	l := new(lax)
	p := stand(t, serve(t, http1, l.ServeHTTP), "--require-key", "POST /charge", "--require-key", "POST /accounts/{id}/charge", "--scope", "header:X-Customer")
	ask := func(method, target, fields string) []string {
		codes, _ := converse(t, p.addr, method+" "+target+" HTTP/1.1\r\nHost: shop.test\r\nX-Customer: a\r\nConnection: close\r\nContent-Length: 1\r\n"+fields+"\r\nx")
		return codes
	}
	for _, target := range []string{
		"/charge", "/charge/", "/charge//", "//charge", "/./charge", "/x/../charge", "/charge/.", "/charge/x/..", "/../charge",
		"/%63harge", "/c%68arge", "/%2563harge", "/%252563harge", "/charge%2f", "/%2fcharge", "/x/%2e%2e/charge", "/x/..%2fcharge", "/x%2f..%2fcharge", "/%2e/charge",
		"/Charge", "/CHARGE", "/%43HARGE", "/charge;v=1", "/charge;", "/;a=b/charge", "/x/..;/charge", "/x/..;a=b/charge", "/charge%3bv=1", "/charge;/",
		`/\charge`, `/x\..\charge`, "/%5ccharge", "/x%5c..%5ccharge", "/charge%5c", "/charge%20", "/charge%09", "/charge%0a", "/charge%0d%0a", "/charge%00", "/charge%00.txt",
		"/charge%3f", "/charge%3fx=y", "/charge%23", "/charge#x", "/charge?x=y", "/charge?/../..", "/charge.json", "/charge.JSON", "/charge.geojson", "/charge.anything-at-all", "/charge.",
		"http://shop.test/charge", "http://elsewhere.test//charge/", "/accounts/1/charge", "/accounts/1//charge", "/accounts/1/charge/", "/accounts/%31/CHARGE", "/accounts/a%2fb/../1/charge",
		"/accounts%2f1%2fcharge", "/accounts/1/x/../charge",
	} {
		codes := ask("POST", target, "")
		if charges, answered := l.take(); charges > 0 {
			t.Errorf("POST %s without a key: answered with %v, and a lax service that got %d requests took it for a charge", target, codes, answered)
		}
	}
	for _, c := range []struct{ method, fields string }{
		{"post", ""}, {"Post", ""}, {"pOST", ""},
		{"GET", "X-HTTP-Method-Override: POST\r\n"}, {"GET", "x-http-method-override: post\r\n"}, {"PUT", "X-HTTP-Method: POST\r\n"}, {"PUT", "X-Method-Override: POST\r\n"},
		{"GET", "X_HTTP_Method_Override: POST\r\n"}, {"GET", "X-HTTP_Method-Override: POST\r\n"},
		{"GET", "X-HTTP-Method-Override: GET\r\nX-HTTP-Method-Override: POST\r\n"}, {"GET", "X-HTTP-Method-Override: GET, POST\r\n"},
		{"GET", "X-HTTP-Method-Override:\r\nX-HTTP-Method-Override: POST\r\n"}, {"GET", "X-HTTP-Method-Override: POST\r\nConnection: X-HTTP-Method-Override\r\n"},
		{"POST", "Idempotency_Key: k\r\n"}, {"POST", "Idempotency-Key: k\r\nConnection: Idempotency-Key\r\nX-Customer: b\r\n"}, {"POST", "Idempotency-Key: k\r\nIdempotency-Key: l\r\n"},
		{"POST", "Idempotency-Key:\r\n"},
	} {
		codes := ask(c.method, "/charge", c.fields)
		if charges, answered := l.take(); charges > 0 {
			t.Errorf("%s /charge with %q: answered with %v, and a lax service that got %d requests took it for a charge", c.method, c.fields, codes, answered)
		}
	}
	if codes := ask("POST", "/charge", "Idempotency-Key: k1\r\n"); !slices.Equal(codes, []string{"200"}) {
		t.Errorf("POST /charge with a key: answered with %v, want 200", codes)
	}
	if charges, _ := l.take(); charges != 1 {
		t.Errorf("POST /charge with a key: %d charges, want 1", charges)
	}
	if codes := ask("POST", "/other", ""); !slices.Equal(codes, []string{"200"}) {
		t.Errorf("POST /other without a key: answered with %v, want 200", codes)
	}
}

func TestAKeyShowsNobodyElsesAnswer(t *testing.T) {
	p := stand(t, serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["X_customer"]) > 0 {
			t.Error("the service got a field X_Customer, which it may read like X-Customer")
		}
		fmt.Fprintf(w, "for %s\n", r.Header.Get("X-Customer"))
	}), "--require-key", "POST /charge", "--scope", "header:X-Customer")
	tr := newTransport(t, http1, "")
	ask := func(fields ...[2]string) answer {
		a, err := goExchange(tr, p.url, exchange{Method: "POST", Target: "/charge", Body: "x", Fields: append(fields, [2]string{"Idempotency-Key", "shared"})})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for range 2 {
		for _, customer := range []string{"alice", "bob", "Alice", "alice bob"} {
			if a := ask([2]string{"X-Customer", customer}); a.Status != 200 || a.Body != "for "+customer+"\n" {
				t.Errorf("%s's request with a key that others have too: got %d %q, want its own answer", customer, a.Status, a.Body)
			}
		}
	}
	for name, fields := range map[string][][2]string{
		"without a customer":    nil,
		"with an empty one":     {{"X-Customer", ""}},
		"with two":              {{"X-Customer", "mallory"}, {"X-Customer", "alice"}},
		"with one and an _":     {{"X_Customer", "alice"}},
		"with two, one after _": {{"X_Customer", "alice"}, {"X-Customer", ""}},
	} {
		if a := ask(fields...); a.Status/100 != 4 || strings.Contains(a.Body, "for ") {
			t.Errorf("a request %s: got %d %q, want it to be refused", name, a.Status, a.Body)
		}
	}
	if a := ask([2]string{"X-Customer", "mallory"}, [2]string{"X_Customer", "alice"}); a.Body != "for mallory\n" {
		t.Errorf("mallory's request with a second customer after _: got %d %q, want mallory's own answer", a.Status, a.Body)
	}
}
