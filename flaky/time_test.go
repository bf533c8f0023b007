package flaky

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/internal/memhttp"
)

// serveMemory serves in a bubble and ends with it: that the bubble ends is the proof that no goroutine is left.
func serveMemory(t *testing.T, h http.Handler) (*memhttp.Server, *http.Client) {
	s := memhttp.Serve(h)
	transport := s.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Stop()
	})
	return s, &http.Client{Transport: transport}
}

func TestFaultsTakeTheirTime(t *testing.T) {
	tests := []struct {
		script string
		header time.Duration // until the header came
		total  time.Duration
		want   error
	}{
		{"200", 0, 0, nil},
		{"200 delay=90ms", 90 * time.Millisecond, 90 * time.Millisecond, nil},
		{"hang=5s", 5 * time.Second, 5 * time.Second, io.EOF},
		{"hang", time.Hour, time.Hour, io.EOF},
		{"close delay=2s", 2 * time.Second, 2 * time.Second, io.EOF},
		{"reset delay=2s", 2 * time.Second, 2 * time.Second, io.EOF}, // of no TCP connection
		{"cut=100 delay=3s", 3 * time.Second, 3 * time.Second, io.ErrUnexpectedEOF},
		{"slow=10ms/byte body=0123456789", 0, 100 * time.Millisecond, nil},
		{"slow=1s/byte delay=1m body=ab", time.Minute, time.Minute + 2*time.Second, nil},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(t, tt.script)
				_, client := serveMemory(t, h)
				start := time.Now()
				resp, err := client.Get(memhttp.URL)
				header := time.Since(start)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				total := time.Since(start)
				if header != tt.header || total != tt.total || !errors.Is(err, tt.want) {
					t.Errorf("GET: header after %v, end after %v, %v, want %v, %v, %v", header, total, err, tt.header, tt.total, tt.want)
				}
				if a := one(t, h, ""); a.Time != start || a.Ended.Sub(start) != tt.total || a.Left {
					t.Errorf("the log has %v to %v, left %v, want 0s to %v, not left", a.Time.Sub(start), a.Ended.Sub(start), a.Left, tt.total)
				}
			})
		})
	}
}

func TestAClientThatLeavesEndsItsRequest(t *testing.T) {
	for _, script := range []string{"hang", "hang=5s", "200 delay=5s", "slow=1s/byte", "endless", "reset delay=5s"} {
		for _, http2 := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(t, script)
				s, client := serveMemory(t, h)
				if http2 {
					transport := s.HTTP2()
					defer transport.CloseIdleConnections()
					client.Transport = transport
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Millisecond)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, "GET", memhttp.URL, nil)
				resp, err := client.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, HTTP/2 %v: GET: %v, want %v", script, http2, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				a := one(t, h, "")
				if after := a.Ended.Sub(a.Time); !a.Left || after < 2*time.Second || after > 2*time.Second+20*time.Millisecond {
					t.Errorf("%s, HTTP/2 %v: the log has left %v after %v, want true after 2s", script, http2, a.Left, after)
				}
			})
		}
	}
}

func TestAClientThatLeftBeforeTheAnswerHasLeft(t *testing.T) {
	h := newHandler(t, "200")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() {
		if got, a := recover(), one(t, h, ""); got != http.ErrAbortHandler || !a.Left {
			t.Errorf("ServeHTTP panics with %v, left %v, want %v, true", got, a.Left, http.ErrAbortHandler)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
}

func TestABodyIsReadToItsEndBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, "503")
		_, client := serveMemory(t, h)
		body, w := io.Pipe()
		go func() {
			io.WriteString(w, "first ")
			time.Sleep(3 * time.Second)
			io.WriteString(w, "last")
			w.Close()
		}()
		start := time.Now()
		resp, err := client.Post(memhttp.URL, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		a := one(t, h, "")
		if got := time.Since(start); got != 3*time.Second || !a.Whole || a.Body != 10 {
			t.Errorf("POST answered after %v, whole %v, %d bytes, want 3s, true, 10", got, a.Whole, a.Body)
		}
	})
}

func TestABodyThatNeverEndsEndsWithItsClient(t *testing.T) {
	for _, head := range []string{"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(t, "200")
			s, _ := serveMemory(t, h)
			conn, err := s.DialContext(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: x\r\n"+head)
			time.Sleep(24 * time.Hour)
			if a := one(t, h, ""); !a.Ended.IsZero() || a.Hash != "" {
				t.Errorf("after a day: the log has ended %v, hash %q, want it waiting", a.Ended, a.Hash)
			}
			conn.Close()
			synctest.Wait()
			// The hash is that of abc.
			a := one(t, h, "")
			if !a.Left || a.Whole || a.Body != 3 || !strings.HasPrefix(a.Hash, "ba7816bf") {
				t.Errorf("the log has left %v, whole %v, %d bytes, hash %.8s, want true, false, 3, ba7816bf", a.Left, a.Whole, a.Body, a.Hash)
			}
		})
	}
}

// A server cannot see a client leave that has sent more than its request, so a hang has an end of its own.
func TestEvenAClientThatCannotBeSeenLeavingIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, "hang")
		s, _ := serveMemory(t, h)
		conn, err := s.DialContext(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		synctest.Wait()
		io.WriteString(conn, "G") // of the next request
		time.Sleep(time.Second)
		conn.Close()
		time.Sleep(time.Hour)
		if a := one(t, h, ""); a.Ended.Sub(a.Time) != time.Hour {
			t.Errorf("the log has ended after %v, want %v", a.Ended.Sub(a.Time), time.Hour)
		}
	})
}
