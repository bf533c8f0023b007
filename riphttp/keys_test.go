package riphttp_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// keysOf returns the different keys that a service saw, in order.
func keysOf(s *stub) (keys []string) {
	for _, got := range s.sent {
		values := got.header["Idempotency-Key"]
		if len(values) == 0 {
			values = []string{"none"}
		}
		if key := strings.Join(values, "+"); len(keys) == 0 || keys[len(keys)-1] != key {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestKeyIsMadeOncePerCall(t *testing.T) {
	for _, test := range []struct {
		name   string
		method string
		header []string
		want   string // the keys of two calls
		made   int
	}{
		{"POST", "POST", nil, "[key-1 key-2]", 2},
		{"PATCH", "PATCH", nil, "[key-1 key-2]", 2},
		{"GET needs none", "GET", nil, "[none]", 0},
		{"PUT needs none", "PUT", nil, "[none]", 0},
		{"the caller's", "POST", []string{"Idempotency-Key", `"mine"`}, `["mine"]`, 0},
		{"the caller's in the other spelling", "POST", []string{"X-Idempotency-Key", "mine"}, "[none]", 0},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			made := 0
			service := script(hang, 503, errWire, 201, 503, 201)
			client := &riphttp.Transport{Base: service, Policy: even(), NewKey: func(*http.Request) string {
				made++
				return fmt.Sprintf("key-%d", made)
			}}
			for range 2 {
				req := newRequest(t, test.method, serviceURL, "pay", test.header...)
				before := len(req.Header)
				resp, err := roundTrip(t, client, req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if len(req.Header) != before {
					t.Errorf("the caller's header is now %v", req.Header)
				}
				if got, want := resp.Request.Header.Get("Idempotency-Key"), service.sent[len(service.sent)-1].header.Get("Idempotency-Key"); got != want {
					t.Errorf("the response's request has the key %q, want %q, to resume with", got, want)
				}
			}
			wantCalls(t, service, 6)
			if got := fmt.Sprint(keysOf(service)); got != test.want || made != test.made {
				t.Errorf("keys: %v, %d made, want %v and %d", got, made, test.want, test.made)
			}
		})
	}
}

func TestEmptyKeyMeansNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(503)
		client := &riphttp.Transport{Base: service, NewKey: func(*http.Request) string { return "" }}
		wantAnswer(t, client, newRequest(t, "POST", serviceURL, "pay"), 503, "Service Unavailable")
		if got := fmt.Sprint(keysOf(service)); got != "[none]" || service.calls() != 1 {
			t.Errorf("%d attempts with keys %v, want one without", service.calls(), got)
		}
	})
}

func TestRandomKeysDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(200)
		client := &riphttp.Transport{Base: service, NewKey: func(*http.Request) string { return rand.Text() }}
		for range 100 {
			result(t, client, newRequest(t, "POST", serviceURL, "pay"))
		}
		seen := make(map[string]bool)
		for _, key := range keysOf(service) {
			seen[key] = true
		}
		if len(seen) != 100 {
			t.Errorf("%d keys for 100 calls with the same payload", len(seen))
		}
	})
}

// net/http sends a request once more by itself if its connection turns out to be stale: with the same key.
func TestRepeatOfNetHTTPCarriesTheSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		service := memhttp.Play(func(n int, p *memhttp.Peer) {
			for served := 0; served < 1 || n > 1; served++ {
				req := p.ReadRequest()
				if req == nil {
					return
				}
				if req.Method == "POST" {
					keys = append(keys, req.Header.Get("Idempotency-Key"))
				}
				p.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
			if req := p.ReadRequest(); req != nil { // and leave without an answer
				keys = append(keys, req.Header.Get("Idempotency-Key"))
			}
		})
		var log events
		made := 0
		client := &riphttp.Transport{Base: service.Transport(), Policy: traced(even(), &log), NewKey: func(*http.Request) string {
			made++
			return fmt.Sprint("key-", made)
		}}
		wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
		wantAnswer(t, client, newRequest(t, "POST", memhttp.URL, "pay"), 200, "")
		client.CloseIdleConnections()
		service.Stop()
		if got := fmt.Sprint(keys); got != "[key-1 key-1]" {
			t.Errorf("keys on the wire: %v, want key-1 twice", got)
		}
		if e := log.done[len(log.done)-1]; e.Attempts != 1 || e.Sends != 2 {
			t.Errorf("Done: %d attempts, %d sends, want one and two", e.Attempts, e.Sends)
		}
	})
}

// redirects plays a script in which each response leads to the next URL.
func redirects(code int, urls ...string) *stub {
	return &stub{play: func(n int, r *http.Request) (*http.Response, error) {
		if n <= len(urls) {
			return response(code, "", "Location", urls[n-1]), nil
		}
		return response(200, "there"), nil
	}}
}

func TestKeyStaysWithTheOriginItWasMadeFor(t *testing.T) {
	for _, test := range []struct {
		name string
		code int
		urls []string // after http://a.test/
		keys string   // the caller's or a made one, of each hop
	}{
		{"same origin", 307, []string{"http://a.test/2", "/3"}, "k k k"},
		{"default port", 308, []string{"http://a.test:80/2"}, "k k"},
		{"another host", 307, []string{"http://b.test/", "http://b.test/2"}, "k none none"},
		{"another port", 307, []string{"http://a.test:8080/"}, "k none"},
		{"another scheme", 307, []string{"https://a.test/"}, "k none"},
		{"there and back", 307, []string{"http://b.test/", "http://a.test/2"}, "k none k"},
		{"see other, another host", 303, []string{"http://b.test/"}, "k none"},
	} {
		for _, whose := range []string{"caller's", "made"} {
			inBubble(t, test.name+", "+whose, func(t *testing.T) {
				service := redirects(test.code, test.urls...)
				transport := &riphttp.Transport{Base: service, Policy: even()}
				req := newRequest(t, "POST", "http://a.test/", "pay", "Authorization", "Bearer b", "X-Api-Key", "x")
				if whose == "made" {
					made := 0
					transport.NewKey = func(*http.Request) string {
						made++
						return []string{"k", "another"}[min(made, 2)-1]
					}
				} else {
					req.Header.Set("Idempotency-Key", "k")
					req.Header.Set("X-Idempotency-Key", "k")
				}
				resp, err := (&http.Client{Transport: transport}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				var keys []string
				for _, got := range service.sent {
					key := got.header.Get("Idempotency-Key")
					if whose != "made" && key != got.header.Get("X-Idempotency-Key") {
						t.Errorf("the two spellings differ: %v", got.header)
					}
					if key == "" {
						key = "none"
					}
					keys = append(keys, key)
					if strings.Contains(got.url, "b.test") && got.header.Get("Authorization") != "" {
						t.Errorf("%s got the Authorization", got.url)
					}
				}
				if got := strings.Join(keys, " "); got != test.keys {
					t.Errorf("keys by hop: %s, want %s", got, test.keys)
				}
			})
		}
	}
}

// http.Client never changes a method into one that needs a key. Other clients may, and the key was made for another request.
func TestKeyIsNotForAnotherMethodOfTheSameOrigin(t *testing.T) {
	for method, want := range map[string]string{"POST": "[k]", "PATCH": "[none]"} {
		service := script(200)
		first := newRequest(t, "POST", "http://a.test/", "pay", "Idempotency-Key", "k")
		req := newRequest(t, method, "http://a.test/2", "pay")
		req.Response = &http.Response{StatusCode: 307, Request: first}
		wantAnswer(t, &riphttp.Transport{Base: service}, req, 200, "OK")
		if got := fmt.Sprint(keysOf(service)); got != want {
			t.Errorf("a POST led to a %s: keys %s, want %s", method, got, want)
		}
	}
}

func TestPostRedirectedToAnotherOriginIsSentThereOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(307, "", "Location", "http://b.test/"), 503)
		client := &http.Client{Transport: &riphttp.Transport{Base: service, NewKey: func(*http.Request) string { return "k" }}}
		resp, err := client.Post("http://a.test/", "text/plain", strings.NewReader("pay"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := fmt.Sprint(keysOf(service)); resp.StatusCode != 503 || service.calls() != 2 || got != "[k none]" {
			t.Errorf("got %d after %d requests with keys %v, want the 503 after two, the second without", resp.StatusCode, service.calls(), got)
		}
	})
}

func TestRedirectKeepsMethodAndBodyAndIsNoAttempt(t *testing.T) {
	content := kilobytes(40)
	for _, test := range []struct {
		code   int
		method string
		body   string
	}{{307, "PUT", content}, {308, "PUT", content}, {303, "GET", ""}, {302, "GET", ""}} {
		for name, body := range map[string]func() io.Reader{
			"GetBody":      func() io.Reader { return strings.NewReader(content) },
			"known length": func() io.Reader { return track(content) },
		} {
			inBubble(t, fmt.Sprint(test.code, " ", name), func(t *testing.T) {
				service := script(reply(test.code, "", "Location", "/target"), 503, 200)
				var log events
				method := "PUT"
				if test.method == "GET" {
					method = "POST"
				}
				req := newRequest(t, method, "http://a.test/start", body())
				req.ContentLength = int64(len(content))
				resp, err := (&http.Client{Transport: &riphttp.Transport{Base: service, Policy: traced(even(), &log)}}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if name == "known length" && test.code >= 307 {
					// http.Client looks for GetBody in the request that it was given, and hands the 307 out.
					if resp.StatusCode != test.code {
						t.Errorf("got %d, want the %d", resp.StatusCode, test.code)
					}
					return
				}
				wantCalls(t, service, 3)
				for i, got := range service.sent[1:] {
					if got.url != "http://a.test/target" || got.method != test.method || got.body != test.body {
						t.Errorf("request %d: %s %s with %d bytes, want %s of the target with %d", i+2, got.method, got.url, len(got.body), test.method, len(test.body))
					}
				}
				if len(log.done) != 2 || log.done[0].Attempts != 1 || log.done[1].Attempts != 2 {
					t.Errorf("Done events: %+v, want a call of one attempt and one of two", log.done)
				}
			})
		}
	}
}

func TestTooManyRedirectsAreFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(302, "", "Location", "/again"))
		_, err := (&http.Client{Transport: &riphttp.Transport{Base: service, Policy: even()}}).Get(serviceURL)
		if err == nil || service.calls() != 10 {
			t.Errorf("err = %v after %d requests, want net/http's own after ten", err, service.calls())
		}
	})
}

// Some services insist on a spelling, for which callers write to the map itself.
func TestKeyOfAnySpellingStaysWithItsOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := redirects(307, "http://a.test/2", "http://b.test/")
		req := newRequest(t, "POST", "http://a.test/", "pay")
		req.Header["idempotency-key"], req.Header["X-IDEMPOTENCY-KEY"], req.Header["x-other"] = []string{"k"}, []string{"k"}, []string{"o"}
		resp, err := (&http.Client{Transport: &riphttp.Transport{Base: service, Policy: even()}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for i, want := range []int{3, 3, 1} {
			got := 0
			for _, name := range []string{"idempotency-key", "X-IDEMPOTENCY-KEY", "x-other"} {
				got += len(service.sent[i].header[name])
			}
			if got != want {
				t.Errorf("hop %d got %v, want %d of the caller's fields", i+1, service.sent[i].header, want)
			}
		}
	})
}
