package deadline_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// overSockets runs a test against a handler behind a Middleware, over HTTP/1.1 and over HTTP/2. Nothing may be logged by
// the server, such as a second header.
func overSockets(t *testing.T, h http.HandlerFunc, test func(t *testing.T, client *http.Client, url string)) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(version, func(t *testing.T) {
			var logged bytes.Buffer
			server := httptest.NewUnstartedServer(deadline.Middleware{}.Handler(h))
			server.Config.ErrorLog = log.New(&logged, "", 0)
			server.EnableHTTP2 = version == "HTTP/2.0"
			server.StartTLS()
			test(t, server.Client(), server.URL)
			if resp, _ := get(t, server.Client(), server.URL+"/last"); resp.Proto != version {
				t.Errorf("protocol %s, want %s", resp.Proto, version)
			}
			server.Close()
			if logged.Len() > 0 {
				t.Errorf("the server logged %q", logged.String())
			}
		})
	}
}

func TestAFlushArrivesBeforeTheHandlerReturns(t *testing.T) {
	for name, flush := range map[string]func(http.ResponseWriter) error{
		"Flusher":            func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"ResponseController": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{}, 1)
			overSockets(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					return
				}
				io.WriteString(w, "one\n")
				if err := flush(w); err != nil {
					t.Errorf("flush = %v", err)
				}
				<-release
				io.WriteString(w, "two\n")
			}, func(t *testing.T, client *http.Client, url string) {
				resp, err := client.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				lines := bufio.NewReader(resp.Body)
				if line, err := lines.ReadString('\n'); line != "one\n" || err != nil {
					t.Errorf("first line %q, %v", line, err)
				}
				release <- struct{}{}
				if rest, err := io.ReadAll(lines); string(rest) != "two\n" || err != nil {
					t.Errorf("the rest is %q, %v", rest, err)
				}
			})
		})
	}
}

func TestEarlyHintsAndTrailersArrive(t *testing.T) {
	overSockets(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		deadline.GiveUp(r.Context()) // after the hints, before the answer
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "down")
		w.Header().Set("X-Sum", "4")
		w.Header().Set(http.TrailerPrefix+"X-Late", "5")
	}, func(t *testing.T, client *http.Client, url string) {
		var hints []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, " ", h.Get("Link"), h.Get("X-Should-Retry")))
			return nil
		}}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if string(body) != "down" || err != nil || resp.StatusCode != 503 || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("answer %s %q, %v, with %q; want 503, not to be retried", resp.Status, body, err, resp.Header)
		}
		if want := []string{"103 </style.css>; rel=preload"}; !slices.Equal(hints, want) {
			t.Errorf("hints %q, want %q", hints, want)
		}
		if resp.Trailer.Get("X-Sum") != "4" || resp.Trailer.Get("X-Late") != "5" {
			t.Errorf("trailers %q, want X-Sum 4 and X-Late 5", resp.Trailer)
		}
	})
}

func TestAControllerReachesTheConnection(t *testing.T) {
	overSockets(t, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(time.Now().Add(time.Hour)), c.EnableFullDuplex())
		fmt.Fprint(w, err)
	}, func(t *testing.T, client *http.Client, url string) {
		if _, body := get(t, client, url); body != "<nil>" {
			t.Errorf("the controller's errors: %s", body)
		}
	})
}

func TestAConnectionCanBeTakenOverOnlyWhereThereIsOne(t *testing.T) {
	overSockets(t, func(w http.ResponseWriter, r *http.Request) {
		h, ok := w.(http.Hijacker)
		if !ok || r.URL.Path != "/" {
			io.WriteString(w, "no")
			return
		}
		conn, _, err := h.Hijack()
		if err != nil {
			t.Errorf("Hijack() = %v", err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
	}, func(t *testing.T, client *http.Client, url string) {
		resp, body := get(t, client, url)
		if want := map[int]string{1: "yes", 2: "no"}[resp.ProtoMajor]; body != want {
			t.Errorf("taken over: %s, want %s", body, want)
		}
	})
}

// A reverse proxy uses most of what a ResponseWriter can do, and forgets all header fields after a 1xx.
func TestAReverseProxyWorksBehindAMiddleware(t *testing.T) {
	service := httptest.NewServer(deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(w, deadline.CorrelationID(r.Context()), " ", deadline.Attempt(r.Context()))
		w.Header().Set("X-Sum", "4")
	})))
	defer service.Close()
	target, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	overSockets(t, proxy.ServeHTTP, func(t *testing.T, client *http.Client, url string) {
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(deadline.CorrelationHeader, "id-1")
		r.Header.Set(deadline.AttemptHeader, "2")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if string(body) != "id-1 2" || err != nil || resp.Trailer.Get("X-Sum") != "4" {
			t.Errorf("answer %q, %v, with trailers %q", body, err, resp.Trailer)
		}
		if ids := resp.Header[deadline.CorrelationHeader]; !slices.Equal(ids, []string{"id-1"}) {
			t.Errorf("the answer has correlation ids %q, want id-1 once", ids)
		}
	})
}

func TestHintsAreNotYetAnAnswer(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := memhttp.Serve(deadline.Middleware{Limit: time.Second}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusEarlyHints)
				<-r.Context().Done()
			})))
			defer server.Stop()
			transport := server.Transport()
			if http2 {
				transport = server.HTTP2()
			}
			defer transport.CloseIdleConnections()
			start := time.Now()
			resp, body := get(t, &http.Client{Transport: transport}, memhttp.URL)
			if resp.StatusCode != http.StatusGatewayTimeout || resp.Header.Get(deadline.ExceededHeader) != "true" || !strings.Contains(body, `"status":504`) {
				t.Errorf("%s: answer %s %q with %q, want our 504", resp.Proto, resp.Status, body, resp.Header)
			}
			if waited := time.Since(start); waited != time.Second {
				t.Errorf("%s: answer after %v, want 1s", resp.Proto, waited)
			}
		})
	}
}
