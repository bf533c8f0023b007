package proxy

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// A drip is a body that gives a piece after each pause, so many times.
type drip struct {
	piece string
	pause time.Duration
	times int
}

func (d *drip) Read(p []byte) (int, error) {
	if d.times == 0 {
		return 0, io.EOF
	}
	d.times--
	time.Sleep(d.pause)
	return copy(p, d.piece), nil
}

func TestABodyThatComesTooSlowlyIsEnded(t *testing.T) {
	for _, c := range []struct {
		name    string
		silence time.Duration
		body    drip
		length  int64 // as the client says it
		status  int
		after   time.Duration // the answer comes; zero: when the body has ended
	}{
		{"a stream at the slowest rate", 0, drip{strings.Repeat("x", 240), time.Second, 60}, -1, 200, 0},
		{"a stream below it", 0, drip{"x", time.Second, 60}, -1, 408, 5 * time.Second},
		{"a small body below it, which is read first", 0, drip{"x", time.Second, 60}, 60, 408, 5 * time.Second},
		{"a pause in a fast stream", 2 * time.Second, drip{strings.Repeat("x", 4000), 3 * time.Second, 9}, -1, 408, 2 * time.Second},
		{"a pause in a fast stream where each is allowed", -1, drip{"x", time.Minute, 9}, -1, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serving(t, manifest.Proxy{Silence: c.silence}, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
				})
				defer s.close()
				whole := c.body.pause * time.Duration(c.body.times)
				began := time.Now()
				body := c.body
				req := s.request("POST", "/", &body)
				req.ContentLength = c.length
				r := s.do(req)
				took := time.Since(began)
				if r.StatusCode != c.status || c.status == 408 && r.is() != "body-too-slow" {
					t.Errorf("the answer is %d %s, want %d", r.StatusCode, r.is(), c.status)
				}
				if want := max(c.after, 0); want > 0 && (took < want || took > want+time.Second) || want == 0 && took != whole {
					t.Errorf("it came after %v, want %v", took, max(want, whole))
				}
				time.Sleep(whole) // the client writes to the end of it
			})
		})
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		length int64
		size   int
		status int
		sends  int64
	}{
		{"as large as allowed", 1000, 1000, 200, 1},
		{"said to be larger", 1001, 1001, 413, 0},
		{"a stream as large as allowed", -1, 1000, 200, 1},
		{"a stream that is larger", -1, 1001, 413, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sends, got atomic.Int64
				s := serving(t, manifest.Proxy{MaxBody: 1000}, func(w http.ResponseWriter, r *http.Request) {
					sends.Add(1)
					n, err := io.Copy(io.Discard, r.Body)
					got.Store(n)
					if err != nil {
						panic(http.ErrAbortHandler)
					}
				})
				defer s.close()
				req := s.request("PUT", "/", io.LimitReader(strings.NewReader(strings.Repeat("x", c.size)), int64(c.size)))
				req.ContentLength = c.length
				r := s.do(req)
				if r.StatusCode != c.status || c.status == 413 && r.is() != "body-too-large" || sends.Load() != c.sends || got.Load() > 1000 {
					t.Errorf("= %d %s, %d sends, %d bytes; want %d, %d sends and no byte too many", r.StatusCode, r.is(), sends.Load(), got.Load(), c.status, c.sends)
				}
			})
		})
	}
}

func TestALargeUploadTakesAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		s := serving(t, manifest.Proxy{Policy: riprap.Policy{Timeout: 3 * time.Second, AttemptTimeout: 2 * time.Second}}, func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			got.Store(n)
			if r.URL.Path == "/thinks" {
				<-r.Context().Done()
			}
		})
		defer s.close()
		body := func() io.Reader { return &drip{strings.Repeat("x", 1000), time.Second, 100} }
		if r := s.send("POST", "/", body()); r.StatusCode != 200 || got.Load() != 100_000 {
			t.Errorf("an upload of 100 s = %d, the service got %d bytes; want 200 and all 100000", r.StatusCode, got.Load())
		}
		began := time.Now()
		if r := s.send("POST", "/thinks", body()); r.StatusCode != 504 || r.is() != "outcome-unknown" || time.Since(began) != 102*time.Second {
			t.Errorf("= %d %s after %v, want 504 outcome-unknown after the upload and the attempt's 2s", r.StatusCode, r.is(), time.Since(began))
		}
	})
}

func TestAServiceThatTakesNothingOfAnUploadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan bool)
		s := playing(t, manifest.Proxy{Silence: 7 * time.Second}, func(_ int, p *memhttp.Peer) {
			p.ReadByte()
			<-over
		})
		defer s.close()
		defer close(over)
		began := time.Now()
		r := s.send("POST", "/", strings.NewReader(strings.Repeat("x", 1<<20)))
		if took := time.Since(began); r.StatusCode != 504 || r.is() != "outcome-unknown" || took < 7*time.Second || took > 8*time.Second {
			t.Errorf("= %d %s after %v, want 504 outcome-unknown after 7s", r.StatusCode, r.is(), took)
		}
	})
}

func TestAClientThatDoesNotReadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s := serving(t, manifest.Proxy{Silence: 3 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
			// Without a length ReverseProxy's flushing waits for a mutex, and fake time for that.
			w.Header().Set("Content-Length", "1073741824")
			_, err := io.Copy(w, io.LimitReader(endless{}, 1<<30))
			ended <- err
		})
		defer s.close()
		resp, err := s.client.RoundTrip(s.request("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		began := time.Now()
		if err := <-ended; err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("the service's handler ended with %v after %v, want an error within a few seconds", err, time.Since(began))
		}
		if v := s.visit(); !v.Broken {
			t.Error("the visit is not broken, want it to be")
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestAStreamInBothDirectionsMayPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{Silence: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(200)
			http.NewResponseController(w).Flush()
			io.Copy(w, r.Body)
		})
		defer s.close()
		h2 := s.front.HTTP2()
		defer h2.CloseIdleConnections()
		resp, err := h2.RoundTrip(s.request("POST", "/", &drip{"x", 10 * time.Minute, 3}))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != "xxx" || err != nil {
			t.Errorf("the stream is %q, %v; want xxx", body, err)
		}
	})
}

// net/http takes in what is left of a body before it answers. A client that is slow at that must not hold the answer, and the
// connection, for as long as it likes.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{MaxBody: 10, RequireKey: []string{"POST /charge"}}, func(http.ResponseWriter, *http.Request) {})
		defer s.close()
		for _, c := range []struct {
			path, is string
			fields   []string
		}{{"/", "loop", []string{"Via", strings.Repeat("1.1 riprap, ", 20)}}, {"/charge", "key-missing", nil}, {"/", "body-too-large", nil}} {
			began := time.Now()
			req := s.request("POST", c.path, &drip{"x", time.Minute, 60}, c.fields...)
			req.ContentLength = 60
			if c.is == "key-missing" {
				req.ContentLength = 9
				req.Body = io.NopCloser(&drip{"x", time.Minute, 9})
			}
			if r := s.do(req); r.is() != c.is || time.Since(began) > grace+time.Second {
				t.Errorf("%s is %d %s after %v, want %s within %v", c.path, r.StatusCode, r.is(), time.Since(began), c.is, grace)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestAnAnswerMayBeginBeforeTheUploadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(201)
			for piece := make([]byte, 100); ; {
				http.NewResponseController(w).Flush()
				n, err := r.Body.Read(piece)
				if w.Write(piece[:n]); err != nil {
					return
				}
			}
		})
		defer s.close()
		more, rest := io.Pipe()
		go io.WriteString(rest, "first")
		resp, err := s.client.RoundTrip(s.request("POST", "/", more))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, got); string(got) != "first" {
			t.Errorf("the echo begins with %q, %v; want first", got, err)
		}
		go func() {
			io.WriteString(rest, " and last")
			rest.Close()
		}()
		if tail, err := io.ReadAll(resp.Body); string(tail) != " and last" || err != nil {
			t.Errorf("it goes on with %q, %v; want the rest", tail, err)
		}
	})
}

func TestWhatIsLeftOfAnUploadIsNoRequest(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // the rest comes
		rest  string
	}{
		{"the end at once", 0, strings.Repeat("x", 100000-5)},
		{"the end later", time.Second, strings.Repeat("x", 100000-5)},
		{"a request in it", time.Minute, "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					http.NewResponseController(w).EnableFullDuplex()
					w.WriteHeader(201) // before it has read anything
				})
				defer s.close()
				conn, err := s.front.DialContext(t.Context(), "tcp", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nfirst")
				resp, err := http.ReadResponse(in, nil)
				if err != nil || resp.StatusCode != 201 || !resp.Close {
					t.Fatalf("the answer before the end of the upload is %+v, %v; want 201 and the end of the connection", resp, err)
				}
				time.Sleep(c.after)
				go io.WriteString(conn, c.rest)
				if rest, err := io.ReadAll(in); len(rest) > 0 || asked.Load() != 1 {
					t.Errorf("after the rest %q came %q, %v, and the service has %d requests; want nothing, and one", c.rest, rest, err, asked.Load())
				}
			})
		})
	}
}

func TestAnUploadIsSentOnWhileItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(chan bool)
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			r.Body.Read(make([]byte, 1))
			close(first)
			io.Copy(io.Discard, r.Body)
		})
		defer s.close()
		more, rest := io.Pipe()
		go func() {
			io.WriteString(rest, "begin")
			<-first // or the test hangs
			rest.CloseWithError(nil)
		}()
		if r := s.send("POST", "/", more); r.StatusCode != 200 {
			t.Errorf("= %d, want 200", r.StatusCode)
		}
	})
}

func TestABodyThatBreaksOffIsTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		defer s.close()
		req := s.request("POST", "/", io.MultiReader(strings.NewReader("part"), broken{}))
		req.ContentLength = 10
		if _, err := s.client.RoundTrip(req); err == nil {
			t.Error("a request whose body fails got an answer, want its error")
		}
		if v := s.visit(); v.Reached != ReachedNo || len(v.Attempts) != 0 {
			t.Errorf("reached %q with %d attempts, want no and none", v.Reached, len(v.Attempts))
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk failed") }

func TestTheServiceMayThinkForLongerThanAClientMayPause(t *testing.T) {
	for _, length := range []int64{5, -1} { // read first, and sent on
		synctest.Test(t, func(t *testing.T) {
			s := serving(t, manifest.Proxy{Silence: 2 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				select {
				case <-time.After(8 * time.Second):
				case <-r.Context().Done():
					panic(http.ErrAbortHandler)
				}
			})
			defer s.close()
			req := s.request("POST", "/", struct{ io.Reader }{strings.NewReader("hello")})
			req.ContentLength = length
			if r := s.do(req); r.StatusCode != 200 {
				t.Errorf("a body of length %d = %d %s, want 200 after 8s", length, r.StatusCode, r.is())
			}
		})
	}
}

func TestWhatIsTooLargeToBeKeptIsSentOnce(t *testing.T) {
	for _, c := range []struct {
		size   int
		length bool // is told
		sends  int64
		reason string
	}{
		{65536, true, 3, "attempts"},
		{65537, true, 1, "body-too-large"},
		{90000, true, 1, "body-too-large"},
		{100, false, 1, "body-too-large"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sends atomic.Int64
			s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
				sends.Add(1)
				if n, err := io.Copy(io.Discard, r.Body); n != int64(c.size) || err != nil {
					t.Errorf("the service got %d bytes, %v; want all %d", n, err, c.size)
				}
				http.Error(w, "later", http.StatusServiceUnavailable)
			})
			defer s.close()
			req := s.request("PUT", "/", struct{ io.Reader }{strings.NewReader(strings.Repeat("x", c.size))})
			if req.ContentLength = -1; c.length {
				req.ContentLength = int64(c.size)
			}
			r := s.do(req)
			if v := s.visit(); r.StatusCode != 503 || r.body != "later\n" || sends.Load() != c.sends || v.Reason != c.reason {
				t.Errorf("%d bytes = %d %q after %d sends, reason %q; want the service's 503, %d sends, %q", c.size, r.StatusCode, r.body, sends.Load(), v.Reason, c.sends, c.reason)
			}
		})
	}
}
