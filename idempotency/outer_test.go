package idempotency_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
)

// request sends a request with the key "k" to a handler, without a server.
func request(h http.Handler, target, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", target, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", "k")
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func says(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
}

func TestAKeyBelongsToThePathThatTheClientAskedFor(t *testing.T) {
	once := idempotency.Middleware{Store: new(idempotency.Memory), Scope: idempotency.SingleTenant}
	mux := http.NewServeMux()
	mux.Handle("/orders/", http.StripPrefix("/orders", once.Handler(says("order"))))
	mux.Handle("/refunds/", http.StripPrefix("/refunds", once.Handler(says("refund"))))
	request(mux, "/orders/1", "{}")
	if got := request(mux, "/refunds/1", "{}").Body.String(); got != "refund" {
		t.Errorf("/refunds/1 with the key of /orders/1: %q, want its own answer", got)
	}
}

// A gateway that routes by a field of the header.
func TestAKeyBelongsToThePathThatAnOuterHandlerMade(t *testing.T) {
	once := idempotency.Middleware{Store: new(idempotency.Memory), Scope: idempotency.SingleTenant}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", once.Handler(says("order")))
	mux.Handle("POST /refunds", once.Handler(says("refund")))
	gateway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = r.Header.Get("Service")
		mux.ServeHTTP(w, r)
	})
	to := func(path string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Service", path) } }
	request(gateway, "/", "{}", to("/orders"))
	if got := request(gateway, "/", "{}", to("/refunds")).Body.String(); got != "refund" {
		t.Errorf("/refunds with the key of /orders: %q, want its own answer", got)
	}
}

// Two requests of which nothing is left look the same.
func TestABodyThatAnOuterHandlerHasReadAsAFormIsMissed(t *testing.T) {
	for contentType, body := range map[string]string{
		"application/x-www-form-urlencoded": "cents=1",
		"multipart/form-data; boundary=b":   "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n1\r\n--b--\r\n",
	} {
		once := idempotency.Middleware{Store: new(idempotency.Memory), Scope: idempotency.SingleTenant}
		h := once.Handler(says("done"))
		outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.ParseMultipartForm(1 << 10)
			h.ServeHTTP(w, r)
		})
		got := request(outer, "/x", body, func(r *http.Request) {
			r.Header.Set("Content-Type", contentType)
			r.ContentLength = -1
		})
		if got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", contentType, got.Code, got.Body)
		}
	}
}

func TestAFingerprintOfOnesOwnStillTellsPathsApart(t *testing.T) {
	once := idempotency.Middleware{
		Store: new(idempotency.Memory), Scope: idempotency.SingleTenant,
		Operation:   func(*http.Request) string { return "any" },
		Fingerprint: func(_ *http.Request, body []byte) []byte { return body },
	}
	h := once.Handler(says("done"))
	request(h, "/orders", "{}")
	if got := request(h, "/refunds", "{}"); got.Code != 422 {
		t.Errorf("/refunds with the key of /orders: %d %s, want 422", got.Code, got.Body)
	}
}

func TestWhatAFunctionOfTheServicesReadsIsThereForTheOthers(t *testing.T) {
	form := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.ContentLength = -1 // with a length the loss would be noticed
	}
	body := func(cents string) string { return url.Values{"account": {"a"}, "cents": {cents}}.Encode() }
	once := idempotency.Middleware{
		Store:       new(idempotency.Memory),
		Scope:       func(r *http.Request) string { return r.FormValue("account") },
		Operation:   func(r *http.Request) string { return "pay " + r.FormValue("account") },
		Fingerprint: func(r *http.Request, _ []byte) []byte { return []byte(r.FormValue("cents")) },
	}
	h := once.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.FormValue("cents")) }))
	if got := request(h, "/x", body("1"), form); got.Body.String() != "1" {
		t.Errorf("the handler read %q, want 1", got.Body)
	}
	if got := request(h, "/x", body("1000"), form); got.Code != 422 {
		t.Errorf("another amount with the same key: %d %s, want 422", got.Code, got.Body)
	}
}

type compressed struct {
	http.ResponseWriter
	to io.Writer
}

func (c compressed) Write(p []byte) (int, error) { return c.to.Write(p) }

func TestCompressionOutsideIsMadeForEachCallerAnew(t *testing.T) {
	once := idempotency.Middleware{Store: new(idempotency.Memory), Scope: idempotency.SingleTenant}
	text := strings.Repeat("hello ", 100)
	inner := once.Handler(says(text))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		inner.ServeHTTP(compressed{w, z}, r)
	}))
	defer srv.Close()
	for _, encoding := range []string{"gzip", "gzip", "identity"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Accept-Encoding", encoding)
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var from io.Reader = resp.Body
		if resp.Header.Get("Content-Encoding") == "gzip" {
			if from, err = gzip.NewReader(resp.Body); err != nil {
				t.Fatal(err)
			}
		} else if encoding == "gzip" {
			t.Errorf("%s: %v, want it compressed", encoding, resp.Header)
		}
		if got, err := io.ReadAll(from); string(got) != text || err != nil {
			t.Errorf("%s: %d bytes, %v, want %d", encoding, len(got), err, len(text))
		}
	}
}

func TestAMiddlewareWithinAnotherOneDoesNotWaitForItself(t *testing.T) {
	once := idempotency.Middleware{Store: new(idempotency.Memory), Scope: idempotency.SingleTenant}
	runs := 0
	h := once.Handler(once.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		io.Copy(w, r.Body)
	})))
	for range 2 {
		if got := request(h, "/x", "body"); got.Code != 200 || got.Body.String() != "body" {
			t.Errorf("answer = %d %s, want 200 and the body", got.Code, got.Body)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times, want once", runs)
	}
}
