package riphttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// In fake time, since a busy machine may take longer over a body than a failed one is given.
func TestFailedAttemptsUseOneConnection(t *testing.T) {
	for name, bounds := range map[string]*riprap.Policy{"bounded": {}, "unbounded": {Timeout: -1, AttemptTimeout: -1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				content := bytes.Repeat([]byte("error "), 64<<10/6)
				served := 0
				server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if served++; served%3 != 0 {
						w.WriteHeader(503)
						w.Write(content)
					}
				}))
				defer server.Stop()
				policy := *bounds
				policy.Backoff.Base = time.Nanosecond
				policy.Budget = &riprap.Budget{Reserve: 1000}
				client := &riphttp.Transport{Base: server.Transport(), Policy: &policy}
				if name == "unbounded" {
					client.ReadTimeout = -1
				}
				defer client.CloseIdleConnections()
				for range 50 {
					wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
				}
				if opened := server.Opened(); opened != 1 || served != 150 {
					t.Errorf("%d connections for %d requests, want one for 150", opened, served)
				}
			})
		})
	}
}

// What is left of a failed response is read within bytes and time, or else its connection is dropped: a slow or endless
// error must not hold the retry up.
func TestDiscardedBodyIsDrainedWithinBounds(t *testing.T) {
	write := func(n int) func(io.Writer) { return func(w io.Writer) { io.WriteString(w, kilobytes(n)) } }
	const least, most = time.Millisecond, 50 * time.Millisecond // the wait, and the bound
	for _, test := range []struct {
		name   string
		length string // Content-Length, if any
		body   func(io.Writer)
		opened int
		took   time.Duration
	}{
		{"small", "", write(10), 1, least},
		{"as much as is drained", "", write(256), 1, least},
		{"more", "", write(257), 2, least},
		{"more, as its length says", fmt.Sprint(1 << 30), func(w io.Writer) { w.Write(nil); time.Sleep(time.Minute) }, 2, least},
		{"endless", "", func(w io.Writer) {
			for {
				if _, err := io.WriteString(w, kilobytes(8)); err != nil {
					return
				}
			}
		}, 2, least},
		{"dripping", "65536", func(w io.Writer) {
			for range 65536 {
				if _, err := io.WriteString(w, "x"); err != nil {
					return
				}
				http.NewResponseController(w.(http.ResponseWriter)).Flush()
				time.Sleep(time.Second)
			}
		}, 2, most},
		{"slow, but in time", "2", func(w io.Writer) {
			io.WriteString(w, "x")
			http.NewResponseController(w.(http.ResponseWriter)).Flush()
			time.Sleep(40 * time.Millisecond)
			io.WriteString(w, "y")
		}, 1, 40 * time.Millisecond},
	} {
		for _, bounds := range []string{"bounded", "unbounded"} {
			inBubble(t, test.name+" "+bounds, func(t *testing.T) {
				served := 0
				server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if served++; served == 2 {
						io.WriteString(w, "ok")
						return
					}
					if test.length != "" {
						w.Header().Set("Content-Length", test.length)
					}
					w.WriteHeader(503)
					http.NewResponseController(w).Flush()
					test.body(w)
				}))
				policy := quick() // a millisecond, so that only draining can delay
				client := &riphttp.Transport{Base: server.Transport(), Policy: policy}
				if bounds == "unbounded" {
					policy.Timeout, policy.AttemptTimeout, client.ReadTimeout = -1, -1, -1
				}
				start := time.Now()
				wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "ok")
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				client.CloseIdleConnections()
				server.Stop()
				if opened, open := server.Opened(), server.Open(); opened != test.opened || open != 0 {
					t.Errorf("connections: %d opened, %d open, want %d and 0", opened, open, test.opened)
				}
			})
		}
	}
}

// A bubble fails its test when a goroutine is left in it, and time would go on if a timer were.
// A body that does not listen to the context, as those of a Base that is no http.Transport, is bounded all the same.
func TestDiscardedBodyThatKnowsNoContextIsDrainedWithinBounds(t *testing.T) {
	for name, client := range map[string]*riphttp.Transport{
		"bounded":   {Policy: even()},
		"unbounded": {Policy: boundless, ReadTimeout: -1},
	} {
		inBubble(t, name, func(t *testing.T) {
			policy := *client.Policy
			policy.Backoff = riprap.Backoff{Base: time.Nanosecond}
			client.Policy = &policy
			silent, _ := io.Pipe()
			service := script(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, ContentLength: -1, Body: silent}, nil
			}, 200)
			client.Base = service
			wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "OK")
			wantGaps(t, service, 50*time.Millisecond)
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int64
		server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch served.Add(1) % 4 {
			case 0:
				io.WriteString(w, "ok")
			case 1:
				w.WriteHeader(503)
			case 2:
				panic(http.ErrAbortHandler)
			default:
				time.Sleep(time.Minute)
			}
		}))
		base := server.Transport()
		client := &riphttp.Transport{Base: base, Policy: &riprap.Policy{Budget: &riprap.Budget{Reserve: 1000}, Timeout: -1}}
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() {
				req, _ := http.NewRequest("PUT", memhttp.URL, bytes.NewReader([]byte("body")))
				if resp, err := client.RoundTrip(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		wait.Wait()
		client.CloseIdleConnections()
		server.Stop()
		if open := server.Open(); open != 0 {
			t.Errorf("%d connections are open, want none", open)
		}
	})
}

func TestIdleConnectionsAreTheBasesAndStayOpenAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := memhttp.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		base := healthy.Transport()
		client := &riphttp.Transport{Base: base, Policy: quick()}
		wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
		failing := &riphttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "failing.test" {
				return nil, errWire
			}
			return base.RoundTrip(r)
		}), Policy: quick()}
		result(t, failing, newRequest(t, "GET", "http://failing.test", nil))
		failing.CloseIdleConnections() // of a Base that has none
		wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
		if opened := healthy.Opened(); opened != 1 {
			t.Errorf("%d connections to the healthy host, want one", opened)
		}
		client.CloseIdleConnections()
		synctest.Wait()
		if open := healthy.Open(); open != 0 {
			t.Errorf("after CloseIdleConnections %d connections are open, want none", open)
		}
		healthy.Stop()
	})
}

func TestAllocations(t *testing.T) {
	count := func(rt http.RoundTripper) float64 {
		req, _ := http.NewRequest("GET", serviceURL, nil)
		return testing.AllocsPerRun(1000, func() {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	bare := count(memory{})
	for _, test := range []struct {
		name string
		rt   http.RoundTripper
		most float64
	}{
		{"no bounds", &riphttp.Transport{Base: memory{}, Policy: boundless, ReadTimeout: -1}, 0},
		{"no bounds, another service internal", &riphttp.Transport{Base: memory{}, Policy: boundless, ReadTimeout: -1, Internal: always(false)}, 0},
		{"the zero Transport", &riphttp.Transport{Base: memory{}}, 6},
		{"adaptive", &riphttp.Transport{Base: memory{}, Adaptive: true}, 6},
	} {
		if got := count(test.rt) - bare; got > test.most {
			t.Errorf("%s: %v allocations more than the base alone, want at most %v", test.name, got, test.most)
		}
	}
}

// A body that has a GetBody is not read first, so that an upload of any size costs what it costs without riprap.
func TestUploadThatCanBeReadAgainIsNotCopied(t *testing.T) {
	content := make([]byte, 1<<20)
	client := &riphttp.Transport{MaxReplay: 16 << 20, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		io.Copy(io.Discard, req.Body)
		return memory{}.RoundTrip(req)
	})}
	const uploads = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range uploads {
		req, _ := http.NewRequest("PUT", serviceURL, bytes.NewReader(content))
		wantAnswer(t, client, req, 200, "ok")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uploads*64<<10 {
		t.Errorf("%d uploads of %d bytes allocate %d bytes, want far less than a copy", uploads, len(content), got)
	}
}
