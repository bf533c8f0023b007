package riphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// readStream reads lines that come with pauses before them, over HTTP/1.1 or HTTP/2, with the given ReadTimeout.
func readStream(t *testing.T, h2 bool, policy *riprap.Policy, readTimeout time.Duration, pauses ...time.Duration) (lines int, took time.Duration, err error) {
	t.Helper()
	server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w).Flush
		w.WriteHeader(200)
		flush()
		for _, pause := range pauses {
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			fmt.Fprintln(w, "event")
			flush()
		}
	}))
	base := server.Transport()
	if h2 {
		base = server.HTTP2()
	}
	start := time.Now()
	client := &riphttp.Transport{Base: base, Policy: policy, ReadTimeout: readTimeout}
	resp, err := roundTrip(t, client, newRequest(t, "GET", memhttp.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		lines++
	}
	took = time.Since(start)
	resp.Body.Close()
	client.CloseIdleConnections()
	server.Stop()
	return lines, took, scanner.Err()
}

func pauses(n int, d time.Duration) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = d
	}
	return all
}

func TestStreamLivesAsLongAsItSpeaks(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for name, policy := range map[string]*riprap.Policy{"default": nil, "unbounded": boundless} {
			inBubble(t, fmt.Sprintf("HTTP/2 %v, %s", h2, name), func(t *testing.T) {
				lines, took, err := readStream(t, h2, policy, 0, pauses(3600, 29*time.Second)...)
				if lines != 3600 || took != 3600*29*time.Second || err != nil {
					t.Errorf("%d events in %v, %v, want 3600 in 29 hours", lines, took, err)
				}
			})
		}
	}
}

func TestSilenceInAStreamIsATimeoutAndNoEnd(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for _, test := range []struct {
			timeout time.Duration
			took    time.Duration
		}{{0, 33 * time.Second}, {5 * time.Second, 8 * time.Second}} {
			inBubble(t, fmt.Sprintf("HTTP/2 %v, %v", h2, test.timeout), func(t *testing.T) {
				lines, took, err := readStream(t, h2, nil, test.timeout, append(pauses(3, time.Second), time.Hour)...)
				if lines != 3 || took != test.took || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d events in %v, %v, want 3 in %v and a timeout", lines, took, err, test.took)
				}
				if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
					t.Errorf("err = %v, want a timeout to net/http", err)
				}
				if silence := test.took - 3*time.Second; err != nil && !strings.Contains(err.Error(), silence.String()) {
					t.Errorf("err = %v, want it to name the %v of silence", err, silence)
				}
			})
		}
	}
}

func TestReadTimeoutThatIsOffDoesNotBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, took, err := readStream(t, false, nil, -1, 1000*time.Hour)
		if lines != 1 || took != 1000*time.Hour || err != nil {
			t.Errorf("%d events in %v, %v, want one after 1000 hours", lines, took, err)
		}
	})
}

// Only a pending Read counts: a caller may take its time between two.
func TestReaderThatPausesIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, kilobytes(64)) }))
		client := &riphttp.Transport{Base: server.Transport(), ReadTimeout: time.Second}
		resp, err := roundTrip(t, client, newRequest(t, "GET", memhttp.URL, nil))
		if err != nil {
			t.Fatal(err)
		}
		total, buffer := 0, make([]byte, 8<<10)
		for err == nil {
			var n int
			n, err = resp.Body.Read(buffer)
			total += n
			time.Sleep(time.Minute)
		}
		if err != io.EOF || total != 64<<10 {
			t.Errorf("read %d bytes, %v, want all of 64 KiB", total, err)
		}
		resp.Body.Close()
		client.CloseIdleConnections()
		server.Stop()
	})
}

func TestCallersCancellationOfAStreamIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		body := track("begin")
		body.hang = true
		service := script(func(r *http.Request) (*http.Response, error) {
			body.ctx = r.Context()
			resp := response(200, "")
			resp.Body = body
			return resp, nil
		})
		start := time.Now()
		_, _, err := result(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil).WithContext(ctx))
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("err = %v after %v, want a cancellation after 1s", err, time.Since(start))
		}
	})
}

// Closing a body ends a pending Read, in any transport; the race detector watches. The caller's deadline, or bounds
// that are off, leave the body without a timer of the attempt's.
func TestBodyMayBeClosedWhileItIsRead(t *testing.T) {
	for _, policy := range []*riprap.Policy{nil, boundless} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				body := track("")
				body.hang = true
				service := script(func(*http.Request) (*http.Response, error) {
					resp := response(200, "")
					resp.Body = body
					return resp, nil
				})
				resp, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, "GET", serviceURL, nil))
				if err != nil {
					t.Fatal(err)
				}
				var wait sync.WaitGroup
				wait.Go(func() { io.Copy(io.Discard, resp.Body) })
				resp.Body.Close()
				wait.Wait()
			})
		}
	}
}

func TestSwitchedProtocolsMayBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := memhttp.Play(func(n int, p *memhttp.Peer) {
			p.ReadRequest()
			p.Say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line := make([]byte, 5)
			for {
				if _, err := io.ReadFull(p, line); err != nil {
					return
				}
				time.Sleep(time.Hour)
				p.Write(line)
			}
		})
		var log events
		var attempt context.Context
		base := service.Transport()
		client := &riphttp.Transport{Policy: traced(even(), &log), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			attempt = r.Context()
			return base.RoundTrip(r)
		})}
		req := newRequest(t, "GET", memhttp.URL, nil, "Connection", "Upgrade", "Upgrade", "echo")
		resp, err := roundTrip(t, client, req)
		if err != nil {
			t.Fatal(err)
		}
		stream, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatalf("the body of a 101 is a %T, want one to write to", resp.Body)
		}
		for range 3 {
			answer := make([]byte, 5)
			io.WriteString(stream, "hello")
			if _, err := io.ReadFull(stream, answer); string(answer) != "hello" || err != nil {
				t.Fatalf("echo = %q, %v, want hello", answer, err)
			}
		}
		if len(log.done) != 0 || attempt.Err() != nil {
			t.Errorf("with the stream open Done was called %d times, and the attempt's context says %v", len(log.done), attempt.Err())
		}
		stream.Close()
		service.Stop()
		log.ended(t)
	})
}

func TestHalfOfASwitchedConnectionCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &duplex{}
		service := script(func(*http.Request) (*http.Response, error) {
			resp := response(101, "")
			resp.Body = stream
			return resp, nil
		})
		resp, err := roundTrip(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil))
		if err != nil {
			t.Fatal(err)
		}
		half, ok := resp.Body.(interface{ CloseWrite() error })
		if !ok {
			t.Fatalf("the body is a %T, want one with CloseWrite", resp.Body)
		}
		half.CloseWrite()
		resp.Body.(io.Writer).Write([]byte("x"))
		resp.Body.Close()
		if got := strings.Join(stream.seen, " "); got != "closewrite write close" {
			t.Errorf("the connection saw %q, want closewrite write close", got)
		}
	})
}

type duplex struct{ seen []string }

func (d *duplex) Read([]byte) (int, error)    { return 0, io.EOF }
func (d *duplex) Write(p []byte) (int, error) { d.seen = append(d.seen, "write"); return len(p), nil }
func (d *duplex) CloseWrite() error           { d.seen = append(d.seen, "closewrite"); return nil }
func (d *duplex) Close() error                { d.seen = append(d.seen, "close"); return nil }

// drip is a body of n bytes, one each second.
func drip(r *http.Request, n int) io.ReadCloser {
	return &dripping{ctx: r.Context(), left: n}
}

type dripping struct {
	ctx  context.Context
	left int
}

func (d *dripping) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(time.Second):
		d.left--
		p[0] = 'x'
		return 1, nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func (d *dripping) Close() error { return nil }

func TestBoundOfTheAttemptCoversAJudgeThatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		service := script(func(r *http.Request) (*http.Response, error) {
			resp := response(429, "")
			resp.Body = drip(r, 1<<20)
			return resp, nil
		}, 200)
		client := &riphttp.Transport{Base: service, Policy: even(), Judge: riphttp.JudgeModels}
		wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "OK")
		wantCalls(t, service, 2)
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("it took %v, want ten seconds for the attempt and one to wait", took)
		}
	})
}

func TestJudgeThatIsCutOffInTheLastAttemptGivesAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := track("begin")
		body.hang = true
		service := script(func(r *http.Request) (*http.Response, error) {
			body.ctx = r.Context()
			resp := response(429, "")
			resp.Body = body
			return resp, nil
		})
		client := &riphttp.Transport{Base: service, Policy: tries(1), Judge: riphttp.JudgeModels}
		_, err := roundTrip(t, client, newRequest(t, "GET", serviceURL, nil))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, riprap.ErrAttempts) {
			t.Errorf("err = %v, want a timeout of the last attempt", err)
		}
		if n := body.closed.Load(); n != 1 {
			t.Errorf("the response's body was closed %d times, want once", n)
		}
	})
}

// The last response of a call that failed is bounded like an answer, and its context ends with it.
func TestBodyOfAFailedCallIsBoundedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempt context.Context
		service := script(func(r *http.Request) (*http.Response, error) {
			attempt = r.Context()
			body := track("begin")
			body.hang, body.ctx = true, attempt
			resp := response(501, "")
			resp.Body = body
			return resp, nil
		})
		start := time.Now()
		_, body, err := result(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil))
		if body != "begin" || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Second {
			t.Errorf("body = %q, %v after %v, want a timeout after 30s of silence", body, err, time.Since(start))
		}
		if attempt.Err() == nil {
			t.Error("the attempt's context is alive behind the closed body")
		}
	})
}

func TestHeaderInTimeLeavesTheBodyItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(func(r *http.Request) (*http.Response, error) {
			time.Sleep(9 * time.Second)
			resp := response(200, "")
			resp.Body = drip(r, 120)
			return resp, nil
		})
		start := time.Now()
		wantAnswer(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil), 200, strings.Repeat("x", 120))
		if took := time.Since(start); took != 129*time.Second {
			t.Errorf("it took %v, want 129s", took)
		}
	})
}

// A muteBody can be written to, and says nothing until its context ends.
type muteBody struct {
	io.Writer
	ctx context.Context
}

func (b muteBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (muteBody) Close() error { return nil }

// What exempts a body from the ReadTimeout is the protocol switch, not that it can be written to.
func TestSilenceOfABodyThatCanBeWrittenToIsCutUnlessProtocolsWereSwitched(t *testing.T) {
	for code, least := range map[int]time.Duration{200: 30 * time.Second, 101: time.Hour} {
		inBubble(t, fmt.Sprint(code), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			client := &riphttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: code, Body: muteBody{io.Discard, r.Context()}}, nil
			})}
			start := time.Now()
			resp, err := client.RoundTrip(newRequest(t, "GET", serviceURL, nil).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, ok := resp.Body.(io.Writer); !ok {
				t.Errorf("the body is a %T, want one to write to", resp.Body)
			}
			if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != least {
				t.Errorf("Read after %v: %v, want a timeout after %v", time.Since(start), err, least)
			}
		})
	}
}
