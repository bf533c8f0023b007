package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A visit is what a server saw of a request.
type visit struct {
	method, path, body, key, apiKey, auth string
}

// A guestBook is a list of visits.
type guestBook struct {
	mu     sync.Mutex
	visits []visit
}

func (g *guestBook) sign(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.visits = append(g.visits, visit{r.Method, r.URL.Path, string(body),
		r.Header.Get("Idempotency-Key"), r.Header.Get("X-Api-Key"), r.Header.Get("Authorization")})
}

var redirects = []int{301, 302, 303, 307, 308}

// hop returns the method and the body with which a client follows a redirect of a POST.
func hop(status int) (method, body string) {
	if status == 307 || status == 308 {
		return "POST", "order"
	}
	return "GET", ""
}

func TestIdempotencyKeyDoesNotFollowARedirectToAnotherOrigin(t *testing.T) {
	for _, status := range redirects {
		for _, host := range []string{"127.0.0.1", "localhost"} { // another port alone is another origin too
			t.Run(fmt.Sprint(status, " to ", host), func(t *testing.T) {
				settles(t)
				var first, second guestBook
				other := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
					second.sign(r)
					if r.URL.Path == "/1" {
						http.Redirect(w, r, "/2", status)
						return
					}
					io.WriteString(w, "hello")
				})
				target := strings.Replace(other.URL, "127.0.0.1", host, 1)
				server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
					first.sign(r)
					http.Redirect(w, r, target+"/1", status)
				})
				c := call(t, plain())
				req := request(t, "POST", server.URL, "k1", strings.NewReader("order"))
				req.Header.Set("X-Api-Key", "a1")
				req.Header.Set("Authorization", "Bearer b1")
				c.answer(t, req, 200, "hello")

				if want := []visit{{"POST", "/", "order", "k1", "a1", "Bearer b1"}}; !slices.Equal(first.visits, want) {
					t.Errorf("the first server saw %q, want %q", first.visits, want)
				}
				// What http.Client itself carries over stays its affair.
				method, body := hop(status)
				auth := "Bearer b1"
				if host != "127.0.0.1" {
					auth = ""
				}
				want := []visit{{method, "/1", body, "", "a1", auth}, {method, "/2", body, "", "a1", auth}}
				if !slices.Equal(second.visits, want) {
					t.Errorf("the second server saw %q, want %q", second.visits, want)
				}
				if got := req.Header.Get("Idempotency-Key"); got != "k1" {
					t.Errorf("the caller's request has the key %q, want k1 still", got)
				}
			})
		}
	}
}

func TestIdempotencyKeyDoesNotFollowARedirectFromHTTPSToHTTP(t *testing.T) {
	settles(t)
	var book guestBook
	other := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { book.sign(r) })
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}, overTLS)
	c := call(t, server.base())
	c.answer(t, request(t, "POST", server.URL, "k1", strings.NewReader("order")), 200, "")
	if want := []visit{{"POST", "/", "order", "", "", ""}}; !slices.Equal(book.visits, want) {
		t.Errorf("the second server saw %q, want %q", book.visits, want)
	}
}

func TestRetryHappensWhereTheRedirectLed(t *testing.T) {
	for _, status := range redirects {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			settles(t)
			var book guestBook
			server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				book.sign(r)
				switch {
				case r.URL.Path == "/":
					http.Redirect(w, r, "/target", status)
				case n == 2:
					w.WriteHeader(503)
				default:
					io.WriteString(w, "hello")
				}
			})
			c := call(t, server.base())
			// The key is made on the first hop, and the second one keeps it.
			c.transport.NewKey = func() func(*http.Request) string {
				n := 0
				return func(*http.Request) string { n++; return fmt.Sprint("made ", n) }
			}()
			resp := c.answer(t, request(t, "POST", server.URL, "", strings.NewReader("order")), 200, "hello")
			if resp.Request.URL.Path != "/target" {
				t.Errorf("the response is one to %s, want /target", resp.Request.URL.Path)
			}
			method, body := hop(status)
			key := ""
			if method == "POST" {
				key = "made 1"
			}
			want := []visit{{"POST", "/", "order", "made 1", "", ""}, {method, "/target", body, key, "", ""}, {method, "/target", body, key, "", ""}}
			if !slices.Equal(book.visits, want) {
				t.Errorf("the server saw %q, want %q", book.visits, want)
			}
		})
	}
}

func TestPostThatLostItsKeyInARedirectIsSentOnce(t *testing.T) {
	settles(t)
	other := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
	})
	c := call(t, plain())
	c.answer(t, request(t, "POST", server.URL, "k1", strings.NewReader("order")), 503, "")
	if server.requests.Load() != 1 || other.requests.Load() != 1 {
		t.Errorf("POST was sent %d and %d times, want once each", server.requests.Load(), other.requests.Load())
	}
}

func TestRedirectLoopIsNotRepeated(t *testing.T) {
	settles(t)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	c := call(t, server.base())
	if resp, _, err := c.do(t, request(t, "GET", server.URL, "", nil)); err == nil {
		t.Errorf("GET = %d, want an error", resp.StatusCode)
	}
	if got := server.requests.Load(); got != 10 {
		t.Errorf("GET in a loop was sent %d times, want the 10 of http.Client", got)
	}
}

func TestClientKeepsItsCookies(t *testing.T) {
	settles(t)
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch cookie, _ := r.Cookie("session"); {
		case r.URL.Path == "/login":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1", Path: "/"})
			http.Redirect(w, r, "/home", http.StatusSeeOther)
		case n == 2:
			w.WriteHeader(503)
		default:
			io.WriteString(w, cookie.String())
		}
	})
	c := call(t, server.base())
	c.Jar, _ = cookiejar.New(nil)
	c.answer(t, request(t, "POST", server.URL+"/login", "", strings.NewReader("me")), 200, "session=s1")
	c.answer(t, request(t, "GET", server.URL, "", nil), 200, "session=s1")
}
