package riphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// What happened on the wire decides, not the error: the same one is met before and after the request went out.
func TestRequestThatWentOutIsSentAgainOnlyIfItMayBe(t *testing.T) {
	wrote := func(text string) func(*memhttp.Peer) {
		return func(p *memhttp.Peer) {
			p.ReadRequest()
			p.Say(text)
		}
	}
	for _, test := range []struct {
		name   string
		first  func(*memhttp.Peer) // nil refuses the connection
		unsent bool
	}{
		{"connection refused", nil, true},
		{"cut within the header", func(p *memhttp.Peer) { p.ReadByte() }, true},
		{"cut within the body", func(p *memhttp.Peer) { http.ReadRequest(bufio.NewReader(p)) }, false},
		{"cut after the request", wrote(""), false},
		{"cut within the status line", wrote("HTTP/1.1 20"), false},
		{"cut within the response's header", wrote("HTTP/1.1 200 OK\r\nContent-Le"), false},
		{"no HTTP at all", wrote("garbage\r\n\r\n"), false},
		{"a header that is none", wrote("HTTP/1.1 200 OK\r\ngarbage\r\n\r\n"), false},
	} {
		for _, request := range []struct {
			method, key string
			again       bool
		}{{"POST", "", false}, {"PATCH", "", false}, {"POST", "k", true}, {"GET", "", true}, {"PUT", "", true}, {"DELETE", "", true}} {
			inBubble(t, fmt.Sprintf("%s, %s %s", test.name, request.method, request.key), func(t *testing.T) {
				again := 0
				service := memhttp.Play(func(n int, p *memhttp.Peer) {
					if n == 1 && test.first != nil {
						test.first(p)
						return
					}
					again++
					p.ReadRequest()
					p.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					p.ReadRequest()
				})
				base, dials := service.Transport(), 0
				base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials++; dials == 1 && test.first == nil {
						return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
					}
					return service.DialContext(ctx, network, address)
				}
				client := &riphttp.Transport{Base: base, Policy: even()}
				req := newRequest(t, request.method, memhttp.URL, kilobytes(16), "X-Long", kilobytes(16))
				if request.key != "" {
					req.Header.Set("Idempotency-Key", request.key)
				}
				code, _, err := result(t, client, req)
				if want := request.again || test.unsent; want {
					if code != 200 || again != 1 {
						t.Errorf("got %d, %v, with %d requests after the failure, want one and its 200", code, err, again)
					}
				} else {
					if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Reason != riphttp.ErrOutcomeUnknown || gaveUp.Err == nil {
						t.Errorf("err = %v, want ErrOutcomeUnknown and the failure", err)
					}
					if again != 0 {
						t.Errorf("%d requests after the failure, want none", again)
					}
				}
				client.CloseIdleConnections()
				service.Stop()
			})
		}
	}
}

// An attempt whose time is over does not wait for a header that is being written, and over HTTP/2 the write may go on.
func TestAttemptThatTimedOutWithAConnectionMayHaveBeenSent(t *testing.T) {
	for _, test := range []struct {
		name      string
		connected bool
		sent      int
		between   time.Duration // the bound of a middleware, if any
	}{
		{"waiting for a connection", false, 2, 0}, {"writing", true, 1, 0},
		{"waiting for a connection, bounded below", false, 2, time.Second}, {"writing, bounded below", true, 1, time.Second},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(func(r *http.Request) (*http.Response, error) {
				if test.between > 0 {
					ctx, cancel := context.WithTimeout(r.Context(), test.between)
					defer cancel()
					r = r.WithContext(ctx)
				}
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("service.test:443")
				if test.connected {
					trace.GotConn(httptrace.GotConnInfo{})
				}
				return hang(r)
			}, 200)
			_, _, err := result(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "POST", serviceURL, "pay"))
			wantCalls(t, service, test.sent)
			if got := errors.Is(err, riphttp.ErrOutcomeUnknown); got != test.connected {
				t.Errorf("err = %v: unknown outcome %v, want %v", err, got, test.connected)
			}
		})
	}
}

// A Base that tells httptrace nothing is believed only where the error itself is the proof.
func TestProofThatARequestWasNotSentWithoutATrace(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name string
		err  error
		sent int
	}{
		{"dial", dial, 2},
		{"dial, wrapped", fmt.Errorf("proxy: %w", &url.Error{Op: "Post", URL: serviceURL, Err: dial}), 2},
		{"dial timeout", &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}, 2},
		{"read", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, 1},
		{"write", &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}, 1},
		{"bare refusal", syscall.ECONNREFUSED, 1},
		{"end", io.EOF, 1},
		{"words alone", errors.New("dial tcp: connection refused"), 1},
		{"not processed", fmt.Errorf("queue full: %w", riphttp.ErrNotProcessed), 2},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(test.err, 200)
			code, _, err := result(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "POST", serviceURL, "pay"))
			wantCalls(t, service, test.sent)
			if test.sent == 2 && code != 200 {
				t.Errorf("got %d, %v, want 200", code, err)
			}
			if test.sent == 1 && (!errors.Is(err, riphttp.ErrOutcomeUnknown) || !errors.Is(err, test.err)) {
				t.Errorf("err = %v, want ErrOutcomeUnknown and %v", err, test.err)
			}
		})
	}
}

// A reset is an HTTP/2 stream error as net/http has it: a type of its own that fills a struct of the same shape.
type reset struct{ code uint32 }

func (e reset) Error() string { return fmt.Sprint("stream error: ", e.code) }
func (e reset) As(target any) bool {
	v := reflect.ValueOf(target).Elem()
	if v.Kind() != reflect.Struct || v.NumField() != 3 || v.Type().Field(1).Name != "Code" {
		return false
	}
	v.Field(1).SetUint(uint64(e.code))
	return true
}

func TestOnlyARefusedStreamProvesThatNothingWasProcessed(t *testing.T) {
	for code := range uint32(16) {
		inBubble(t, fmt.Sprint(code), func(t *testing.T) {
			want := 1
			if code == 7 { // REFUSED_STREAM
				want = 2
			}
			service := script(reset{code}, 200)
			result(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "POST", serviceURL, "pay"))
			wantCalls(t, service, want)
			service = script(reset{code}, 200)
			wantAnswer(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "GET", serviceURL, nil), 200, "OK")
			wantGaps(t, service, time.Second)
		})
	}
}

func TestJudgesWordThatNothingWasProcessedLetsAPostBeSentAgain(t *testing.T) {
	for _, test := range []struct {
		name  string
		judge func(*http.Response) error
		body  io.Reader
		sent  int
	}{
		{"said", func(r *http.Response) error {
			if r.StatusCode == 503 {
				return fmt.Errorf("%w: %w", riphttp.ErrNotProcessed, &riphttp.StatusError{Code: 503})
			}
			return nil
		}, strings.NewReader("pay"), 2},
		{"said, but the body is gone", func(r *http.Response) error { return riphttp.ErrNotProcessed }, stream("pay"), 1},
		{"said, and permanent", func(r *http.Response) error { return riprap.Permanent(riphttp.ErrNotProcessed) }, strings.NewReader("pay"), 1},
		{"not said", nil, strings.NewReader("pay"), 1},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(503, 200)
			result(t, &riphttp.Transport{Base: service, Policy: even(), Judge: test.judge}, newRequest(t, "POST", serviceURL, test.body))
			wantCalls(t, service, test.sent)
		})
	}
}

func TestReasonWhyARequestWasNotSentAgain(t *testing.T) {
	timeout := &net.OpError{Op: "read", Net: "tcp", Err: context.DeadlineExceeded}
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name   string
		method string
		body   io.Reader
		step   any
		want   error
	}{
		{"answered POST", "POST", strings.NewReader("b"), 503, riphttp.ErrUnsafe},
		{"POST without an answer", "POST", strings.NewReader("b"), errWire, riphttp.ErrOutcomeUnknown},
		{"POST that timed out", "POST", strings.NewReader("b"), timeout, riphttp.ErrOutcomeUnknown},
		{"POST without an answer, body gone", "POST", stream("b"), errWire, riphttp.ErrOutcomeUnknown},
		{"unsent POST, body gone", "POST", stream("b"), dial, riphttp.ErrUnsafe},
		{"answered POST, asked to wait for an hour", "POST", strings.NewReader("b"), reply(503, "", "Retry-After", "3600"), riphttp.ErrUnsafe},
		{"answered PUT, body gone", "PUT", stream("b"), 503, riphttp.ErrUnsafe},
		{"PUT without an answer, body gone", "PUT", stream("b"), errWire, riphttp.ErrOutcomeUnknown},
		{"PUT", "PUT", strings.NewReader("b"), errWire, riprap.ErrAttempts},
		{"unsent POST", "POST", strings.NewReader("b"), dial, riprap.ErrAttempts},
		{"permanent failure of a PUT", "PUT", strings.NewReader("b"), riprap.Permanent(errWire), nil},
		{"permanent failure of a POST", "POST", strings.NewReader("b"), riprap.Permanent(errWire), riphttp.ErrOutcomeUnknown},
		{"permanent status of a POST", "POST", strings.NewReader("b"), 501, nil},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			var log events
			service := script(test.step)
			policy := even()
			policy.MaxAttempts = 2
			_, _, err := result(t, &riphttp.Transport{Base: service, Policy: traced(policy, &log)}, newRequest(t, test.method, serviceURL, test.body))
			e := log.ended(t)
			if e.Reason != test.want {
				t.Errorf("Done: reason %v, want %v", e.Reason, test.want)
			}
			if err != nil && !errors.Is(err, test.want) && test.want != nil {
				t.Errorf("err = %v, want it to be %v", err, test.want)
			}
			if test.want == nil && err != nil && err != errWire {
				t.Errorf("err = %v, want %v as it came", err, errWire)
			}
		})
	}
}

// The answer was handed over: nobody may send the request again behind its reader's back, and a short body is no
// success.
func TestBodyThatIsCutOffIsReported(t *testing.T) {
	for _, test := range []struct {
		name, response, body string
		want                 error
		retries              int // left of those of the first reserve
	}{
		{"by length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello", "hello", io.ErrUnexpectedEOF, 8},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello", io.ErrUnexpectedEOF, 8},
		{"partial content", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/200\r\nContent-Length: 100\r\n\r\nhello", "hello", io.ErrUnexpectedEOF, 8},
		// Nothing tells this end from a cut.
		{"by the end of the connection", "HTTP/1.0 200 OK\r\n\r\nhel", "hel", nil, 9},
		{"whole", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", nil, 9},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			requests := 0
			service := memhttp.Play(func(n int, p *memhttp.Peer) {
				p.ReadRequest()
				requests++
				p.Say(test.response)
			})
			var log events
			policy := traced(even(), &log)
			policy.Budget = &riprap.Budget{Ratio: 1, Reserve: 10}
			busy := script(503, 200)
			for range 2 { // two retries, so that there is room for a deposit
				untraced := even()
				untraced.Budget = policy.Budget
				busy.sent = nil
				result(t, &riphttp.Transport{Base: busy, Policy: untraced}, newRequest(t, "GET", serviceURL, nil))
			}
			client := &riphttp.Transport{Base: service.Transport(), Policy: policy}
			code, body, err := result(t, client, newRequest(t, "GET", memhttp.URL, nil))
			if code/100 != 2 || body != test.body || !errors.Is(err, test.want) {
				t.Errorf("got %d %q, %v, want a success of %q and %v", code, body, err, test.body, test.want)
			}
			if requests != 1 {
				t.Errorf("%d requests, want one", requests)
			}
			if e := log.ended(t); !errors.Is(e.Err, test.want) || e.Attempts != 1 {
				t.Errorf("Done: err %v after %d attempts, want %v after one", e.Err, e.Attempts, test.want)
			}
			if got := policy.Budget.Left(time.Now()); got != test.retries {
				t.Errorf("retries left: %d, want %d", got, test.retries)
			}
			client.CloseIdleConnections()
			service.Stop()
		})
	}
}

func TestHeadersOfFailedAttemptsDoNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(503, "busy", "Set-Cookie", "a=1", "X-From", "A"), reply(200, "ok", "X-To", "B"))
		resp, err := roundTrip(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(resp.Header) != 1 || resp.Header.Get("X-To") != "B" {
			t.Errorf("header = %v, want that of the last response alone", resp.Header)
		}
	})
}

// A small body that net/http knows to be in memory leaves in one packet with its header.
func TestSmallBodyLeavesTogetherWithItsHeader(t *testing.T) {
	for _, method := range []string{"PUT", "POST"} {
		inBubble(t, method, func(t *testing.T) {
			server := memhttp.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			base := server.Transport()
			var writes atomic.Int32
			base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := server.DialContext(ctx, network, address)
				return countedConn{conn, &writes}, err
			}
			client := &riphttp.Transport{Base: base}
			wantAnswer(t, client, newRequest(t, method, memhttp.URL, "small"), 200, "")
			wantAnswer(t, client, sizedTo(t, method, memhttp.URL, track("small"), 5), 200, "")
			client.CloseIdleConnections()
			server.Stop()
			if n := writes.Load(); n != 2 {
				t.Errorf("two requests took %d writes, want one each", n)
			}
		})
	}
}

type countedConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}
