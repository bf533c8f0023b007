package idempotency

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// requestTo makes a request as a server sees it.
func requestTo(method, target, contentType string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func TestFingerprintTellsRequestsApart(t *testing.T) {
	type request struct{ method, target, contentType, body string }
	seen := map[string]request{}
	for _, c := range []request{
		{"POST", "/charges", "application/json", `{"amount":1}`},
		{"PATCH", "/charges", "application/json", `{"amount":1}`},
		{"POST", "/refunds", "application/json", `{"amount":1}`},
		{"POST", "/charges/", "application/json", `{"amount":1}`},
		{"POST", "/charges?a=1", "application/json", `{"amount":1}`},
		{"POST", "/charges?a=1&b=2", "application/json", `{"amount":1}`},
		{"POST", "/charges?b=2&a=1", "application/json", `{"amount":1}`},
		{"POST", "/charges%2f1", "application/json", `{"amount":1}`},
		{"POST", "/charges/1", "application/json", `{"amount":1}`},
		{"POST", "/charges", "text/plain", `{"amount":1}`},
		{"POST", "/charges", "", `{"amount":1}`},
		{"POST", "/charges", "application/json", `{"amount":2}`},
		{"POST", "/charges", "application/json", `{"amount":1} `},
		{"POST", "/charges", "application/json", ``},
		{"POST", "/charges", "", `application/json{"amount":1}`}, // the parts hashed one after another would be the same bytes
		{"POST", "/chargesapplication/json", "", `{"amount":1}`},
	} {
		sum := fingerprint(&Middleware{}, requestTo(c.method, c.target, c.contentType), []byte(c.body))
		if len(sum) != 33 || sum[0] != 1 {
			t.Errorf("fingerprint of %v = %x, want the version 1 and 32 bytes", c, sum)
		}
		if other, ok := seen[string(sum)]; ok {
			t.Errorf("%v and %v have the same fingerprint", c, other)
		}
		seen[string(sum)] = c
		if again := fingerprint(&Middleware{}, requestTo(c.method, c.target, c.contentType), []byte(c.body)); !bytes.Equal(sum, again) {
			t.Errorf("fingerprint of %v = %x, then %x", c, sum, again)
		}
	}
}

func TestFingerprintIsOfTheWholeBody(t *testing.T) {
	const kilobyte = 1 << 10
	r := requestTo("POST", "/charges", "application/json")
	for _, size := range []int{1, 30 * kilobyte, 64 * kilobyte, 1024 * kilobyte} {
		body := bytes.Repeat([]byte("a"), size)
		sum := fingerprint(&Middleware{}, r, body)
		for _, at := range []int{0, size / 2, size - 1} {
			body[at] = 'b'
			if bytes.Equal(fingerprint(&Middleware{}, r, body), sum) {
				t.Errorf("a body of %d bytes with another one at %d has the same fingerprint", size, at)
			}
			body[at] = 'a'
		}
		if bytes.Equal(fingerprint(&Middleware{}, r, body[:size-1]), sum) {
			t.Errorf("a body of %d bytes without its last one has the same fingerprint", size)
		}
	}
}

// Stores keep fingerprints across versions of this package: whoever changes how they are made must give them another number.
func TestFingerprintOfVersion1IsForEver(t *testing.T) {
	sum := fingerprint(&Middleware{}, requestTo("POST", "/charges?a=1", "application/json"), []byte(`{"amount":1}`))
	const want = "0120ac17de126386a5b524d5a406bc02b48d14c4c3fb8b7b69c0453cc10f634ce7"
	if got := hex.EncodeToString(sum); got != want {
		t.Errorf("fingerprint = %s, want %s", got, want)
	}
}

func TestFingerprintIsNeutralToTheBoundary(t *testing.T) {
	form := func(boundary string, parts ...string) string {
		return "--" + boundary + "\r\n" + strings.Join(parts, "\r\n--"+boundary+"\r\n") + "\r\n--" + boundary + "--\r\n"
	}
	sum := func(contentType, body string) string {
		return string(fingerprint(&Middleware{}, requestTo("POST", "/upload", contentType), []byte(body)))
	}
	first := sum("multipart/form-data; boundary=a", form("a", "one", "two"))
	for _, c := range []struct {
		name, contentType, body string
		same                    bool
	}{
		{"another boundary", "multipart/form-data; boundary=xyz", form("xyz", "one", "two"), true},
		{"a quoted boundary", `Multipart/Form-Data; boundary="x y:z"`, form("x y:z", "one", "two"), true},
		{"a longer boundary that begins alike", "multipart/form-data; boundary=ab", form("ab", "one", "two"), true},
		{"another part", "multipart/form-data; boundary=xyz", form("xyz", "one", "three"), false},
		{"parts in another order", "multipart/form-data; boundary=xyz", form("xyz", "two", "one"), false},
		{"one part for two", "multipart/form-data; boundary=xyz", form("xyz", "onetwo"), false},
		{"a part more", "multipart/form-data; boundary=xyz", form("xyz", "one", "two", ""), false},
		{"a boundary that does not occur", "multipart/form-data; boundary=xyz", form("a", "one", "two"), false},
		{"another type", "multipart/mixed; boundary=a", form("a", "one", "two"), false},
		{"another parameter", "multipart/form-data; boundary=a; charset=utf-8", form("a", "one", "two"), false},
		{"no boundary", "multipart/form-data", form("a", "one", "two"), false},
		{"not multipart", "text/plain; boundary=a", form("a", "one", "two"), false},
		{"malformed", "multipart/form-data; boundary=a; boundary=b", form("a", "one", "two"), false},
	} {
		if got := sum(c.contentType, c.body) == first; got != c.same {
			t.Errorf("%s: same fingerprint %t, want %t", c.name, got, c.same)
		}
	}
	if sum("multipart/mixed; boundary=a", "--a\r\none") == sum("multipart/mixed; boundary=a", "\r\none") {
		t.Error("a boundary at the very beginning does not count")
	}
	if sum("text/plain; boundary=a", form("a", "one")) == sum("text/plain; boundary=b", form("b", "one")) {
		t.Error("the boundary of a type that is not multipart does not count")
	}
}

func TestAFingerprintOfOnesOwnIsHashed(t *testing.T) {
	own := func(result []byte) *Middleware {
		return &Middleware{Fingerprint: func(*http.Request, []byte) []byte { return result }}
	}
	r := requestTo("POST", "/charges", "application/json")
	a, b := fingerprint(own([]byte("a")), r, nil), fingerprint(own([]byte("b")), r, nil)
	if bytes.Equal(a, b) {
		t.Errorf("results a and b both give %x", a)
	}
	if again := fingerprint(own([]byte("a")), requestTo("POST", "/charges?at=2", ""), []byte("body")); !bytes.Equal(a, again) {
		t.Errorf("result a gives %x and with another query, type and body %x", a, again)
	}
	for _, other := range []*http.Request{requestTo("PATCH", "/charges", ""), requestTo("POST", "/other", "")} {
		if sum := fingerprint(own([]byte("a")), other, nil); bytes.Equal(a, sum) {
			t.Errorf("result a gives %x for POST /charges and for %s %s", a, other.Method, other.URL)
		}
	}
	for _, sum := range [][]byte{a, fingerprint(own(nil), r, nil), fingerprint(own(make([]byte, 1<<20)), r, nil)} {
		if len(sum) != 33 || sum[0] != 0x81 {
			t.Errorf("fingerprint = %x, want the version 0x81 and 32 bytes", sum)
		}
	}
}

func FuzzFingerprintOfMultipart(f *testing.F) {
	f.Add("a", []byte("--a\r\n\r\none\r\n--a--\r\n"))
	f.Add("a", []byte("preamble\r\n--a\r\n--a--"))
	f.Add("x y", []byte("\r\n--x y\r\n--x"))
	f.Fuzz(func(t *testing.T, boundary string, body []byte) {
		contentType := `multipart/form-data; boundary="` + boundary + `"`
		r := &http.Request{Method: "POST", URL: requestTo("POST", "/", "").URL, Header: http.Header{"Content-Type": {contentType}}}
		sum := fingerprint(&Middleware{}, r, body)
		if changed := fingerprint(&Middleware{}, r, append(bytes.Clone(body), 'x')); bytes.Equal(sum, changed) {
			t.Errorf("boundary %q: %q and the same with a byte more have the same fingerprint", boundary, body)
		}
	})
}
