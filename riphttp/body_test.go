package riphttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestBodyArrivesWholeOnEveryAttempt(t *testing.T) {
	content := kilobytes(40)
	key := []string{"Idempotency-Key", "k"}
	for name, request := range map[string]func(t *testing.T) *http.Request{
		"strings.Reader": func(t *testing.T) *http.Request { return newRequest(t, "PUT", serviceURL, content) },
		"bytes.Reader": func(t *testing.T) *http.Request {
			return newRequest(t, "POST", serviceURL, bytes.NewReader([]byte(content)), key...)
		},
		"bytes.Buffer": func(t *testing.T) *http.Request {
			return newRequest(t, "POST", serviceURL, bytes.NewBufferString(content), key...)
		},
		"known length": func(t *testing.T) *http.Request {
			return sized(t, "POST", track(content), int64(len(content)), key...)
		},
		"GetBody of one's own, any length": func(t *testing.T) *http.Request {
			req := newRequest(t, "POST", serviceURL, stream(content), key...)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(stream(content)), nil }
			return req
		},
		"seeker not at its start": func(t *testing.T) *http.Request {
			r := strings.NewReader("skipped" + content)
			r.Seek(int64(len("skipped")), io.SeekStart)
			return newRequest(t, "PUT", serviceURL, r)
		},
	} {
		for bounds, client := range map[string]*riphttp.Transport{"bounded": {}, "unbounded": {Policy: boundless, ReadTimeout: -1}} {
			inBubble(t, name+" "+bounds, func(t *testing.T) {
				service := script(503, errWire, 200)
				client := &riphttp.Transport{Base: service, Policy: client.Policy, ReadTimeout: client.ReadTimeout}
				wantAnswer(t, client, request(t), 200, "OK")
				wantCalls(t, service, 3)
				for i, got := range service.sent {
					if got.body != content {
						t.Errorf("attempt %d: body of %d bytes, want the %d of the first", i+1, len(got.body), len(content))
					}
				}
			})
		}
	}
}

// net/http repeats some requests by itself, for which it needs GetBody.
func TestBaseGetsAGetBodyThatWorks(t *testing.T) {
	const content = "content"
	for name, test := range map[string]struct {
		body io.ReadCloser
		get  func() (io.ReadCloser, error)
	}{
		"the caller's":         {io.NopCloser(stream(content)), func() (io.ReadCloser, error) { return io.NopCloser(stream(content)), nil }},
		"of a body read first": {track(content), nil},
	} {
		inBubble(t, name, func(t *testing.T) {
			attempts := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				attempts++
				r.Body.Close()
				if r.GetBody == nil {
					t.Fatalf("attempt %d has no GetBody", attempts)
				}
				for range 2 {
					body, err := r.GetBody()
					if err != nil {
						t.Fatal(err)
					}
					if got, err := io.ReadAll(body); string(got) != content || err != nil {
						t.Errorf("attempt %d: GetBody gives %q, %v, want %q", attempts, got, err, content)
					}
					body.Close()
				}
				return response(503, ""), nil
			})
			req := sized(t, "PUT", test.body, int64(len(content)))
			req.GetBody = test.get
			result(t, &riphttp.Transport{Base: base, Policy: even()}, req)
			if attempts != 4 {
				t.Errorf("%d attempts, want four", attempts)
			}
		})
	}
}

func TestEmptyBodyIsRepeatable(t *testing.T) {
	for name, body := range map[string]any{"nil": nil, "NoBody": http.NoBody, "empty reader": bytes.NewReader(nil), "empty string": ""} {
		for _, method := range []string{"DELETE", "POST"} {
			inBubble(t, method+" "+name, func(t *testing.T) {
				var contentLength []string
				service := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					contentLength = append(contentLength, fmt.Sprint(r.ContentLength, r.TransferEncoding))
					if len(contentLength) == 1 {
						w.WriteHeader(503)
					}
				}))
				client := &riphttp.Transport{Base: service.Transport(), Policy: even()}
				wantAnswer(t, client, newRequest(t, method, memhttp.URL, body, "Idempotency-Key", "k"), 200, "")
				client.CloseIdleConnections()
				service.Stop()
				if got := fmt.Sprint(contentLength); got != "[0 [] 0 []]" {
					t.Errorf("lengths and encodings on the wire: %v, want two requests without a body", got)
				}
			})
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestFailureOfGetBodyComesBackWithTheFailureBefore(t *testing.T) {
	errGone := errors.New("file is gone")
	for _, failure := range []any{503, errWire} {
		inBubble(t, fmt.Sprint(failure), func(t *testing.T) {
			service := script(failure)
			req := newRequest(t, "PUT", serviceURL, stream("content"))
			req.ContentLength = int64(len("content"))
			calls := 0
			req.GetBody = func() (io.ReadCloser, error) {
				if calls++; calls > 1 {
					return nil, errGone
				}
				return io.NopCloser(stream("content")), nil
			}
			var log events
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: traced(even(), &log)}, req)
			wantCalls(t, service, 2)
			if !errors.Is(err, errGone) {
				t.Errorf("err = %v, want it to wrap %v", err, errGone)
			}
			if failure == 503 && statusOf(err) != 503 || failure == errWire && !errors.Is(err, errWire) {
				t.Errorf("err = %v, want it to wrap the failure before, %v", err, failure)
			}
			if e := log.ended(t); e.Attempts != 2 || !errors.Is(e.Reason, errGone) {
				t.Errorf("Done: %d attempts, reason %v, want two and %v", e.Attempts, e.Reason, errGone)
			}
		})
	}
}

// The transport below may still read the body of an attempt that was answered early, when the next attempt begins.
func TestEarlyAnswerToAnUploadDoesNotSpoilTheNextAttempt(t *testing.T) {
	content := kilobytes(8 << 10)
	for name, build := range map[string]func(t *testing.T) *http.Request{
		"GetBody": func(t *testing.T) *http.Request { return newRequest(t, "PUT", memhttp.URL, content) },
		"body read first": func(t *testing.T) *http.Request {
			return sizedTo(t, "PUT", memhttp.URL, track(content), int64(len(content)))
		},
		"reader that may fail": func(t *testing.T) *http.Request {
			req := sizedTo(t, "PUT", memhttp.URL, track(content), int64(len(content)))
			req.GetBody = func() (io.ReadCloser, error) { return track(content), nil }
			return req
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			var whole bool
			server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if whole { // set by the failure before
					body, _ := io.ReadAll(r.Body)
					whole = string(body) == content
					return
				}
				whole = true
				w.Header().Set("Connection", "close")
				w.WriteHeader(503)
			}))
			client := &riphttp.Transport{Base: server.Transport(), Policy: quick(), MaxReplay: 16 << 20}
			wantAnswer(t, client, build(t), 200, "")
			if !whole {
				t.Error("the second attempt had another body")
			}
			client.CloseIdleConnections()
			server.Stop()
		})
	}
}

// A server that refuses a large upload may close before the client has read its 413: to send 32 MB four times would be
// no help.
func TestLargeUploadThatBreaksIsSentOnceMoreAndNoOftener(t *testing.T) {
	const large = 1<<20 + 1
	for _, test := range []struct {
		name  string
		size  int64
		steps []any
		sent  int
	}{
		{"breaks", large, []any{errWire}, 2},
		{"breaks and is refused", large, []any{errWire, 413}, 2},
		{"breaks and is well", large, []any{errWire, 200}, 2},
		{"never sent", large, []any{&net.OpError{Op: "dial", Err: errWire}}, 4},
		{"of unknown size", -1, []any{errWire}, 2},
		{"not large", 1 << 20, []any{errWire}, 4},
		{"timeouts", large, []any{hang}, 3}, // as many as fit into the call
		{"statuses", large, []any{503}, 4},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(test.steps...)
			req := newRequest(t, "PUT", serviceURL, "")
			req.Body, req.ContentLength = io.NopCloser(io.LimitReader(zeros{}, max(test.size, 1))), test.size
			req.GetBody = func() (io.ReadCloser, error) {
				return io.NopCloser(io.LimitReader(zeros{}, max(test.size, 1))), nil
			}
			result(t, &riphttp.Transport{Base: service, Policy: even()}, req)
			wantCalls(t, service, test.sent)
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A body may be of any type, also of one that the == operator panics for.
func TestBodyThatCannotBeComparedIsSent(t *testing.T) {
	for _, method := range []string{"PUT", "POST"} {
		for name, client := range map[string]*riphttp.Transport{
			"bounded":   {Policy: even()},
			"unbounded": {Policy: boundless, ReadTimeout: -1},
		} {
			inBubble(t, method+" "+name, func(t *testing.T) {
				service := script(200)
				client.Base = service
				wantAnswer(t, client, newRequest(t, method, serviceURL, readerFunc(strings.NewReader("content").Read)), 200, "OK")
				if got := service.sent[0].body; got != "content" {
					t.Errorf("the service got %q, want the content", got)
				}
			})
		}
	}
}
