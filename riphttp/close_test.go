package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestRequestBodyIsClosedOnceOnEveryPath(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []any
		cause func(*riphttp.Transport, *http.Request) *http.Request
	}{
		{"answered", []any{200}, nil},
		{"sent again", []any{503, errWire, 200}, nil},
		{"given up", []any{errWire}, nil},
		{"cancelled before", []any{200}, func(_ *riphttp.Transport, req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			cancel()
			return req.WithContext(ctx)
		}},
		{"cancelled during an attempt", []any{hang}, func(_ *riphttp.Transport, req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			time.AfterFunc(time.Second, cancel)
			return req.WithContext(ctx)
		}},
		{"cancelled during a wait", []any{503}, func(_ *riphttp.Transport, req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			time.AfterFunc(time.Second/2, cancel)
			return req.WithContext(ctx)
		}},
		{"refused for its header", []any{errWire}, func(_ *riphttp.Transport, req *http.Request) *http.Request {
			req.Header.Set("Bad", "line\nbreak")
			return req
		}},
		{"GetBody fails", []any{503}, func(_ *riphttp.Transport, req *http.Request) *http.Request {
			req.GetBody = func() (io.ReadCloser, error) { return nil, errWire }
			return req
		}},
	} {
		for kind, body := range bodyKinds {
			inBubble(t, test.name+" with a body "+kind, func(t *testing.T) {
				tracked, req := body(t)
				client := &riphttp.Transport{Base: script(test.steps...), Policy: even()}
				if test.cause != nil {
					req = test.cause(client, req)
				}
				result(t, client, req)
				synctest.Wait()
				for i, b := range *tracked {
					if n := b.closed.Load(); n != 1 {
						t.Errorf("body %d of %d was closed %d times, want once", i+1, len(*tracked), n)
					}
				}
			})
		}
	}
}

// bodyKinds make requests whose bodies, the first and those of GetBody, are all in the list.
var bodyKinds = map[string]func(*testing.T) (*[]*trackedBody, *http.Request){
	"of unknown length": func(t *testing.T) (*[]*trackedBody, *http.Request) {
		b := track("content")
		return &[]*trackedBody{b}, sized(t, "PUT", b, -1)
	},
	"of known length": func(t *testing.T) (*[]*trackedBody, *http.Request) {
		b := track("content")
		return &[]*trackedBody{b}, sized(t, "PUT", b, 7)
	},
	"with GetBody": func(t *testing.T) (*[]*trackedBody, *http.Request) {
		bodies := &[]*trackedBody{}
		get := func() (io.ReadCloser, error) {
			b := track("content")
			*bodies = append(*bodies, b)
			return b, nil
		}
		first, _ := get()
		req := sized(t, "PUT", first, 7)
		req.GetBody = get
		return bodies, req
	},
	"of a POST without a key": func(t *testing.T) (*[]*trackedBody, *http.Request) {
		b := track("content")
		return &[]*trackedBody{b}, sized(t, "POST", b, 7)
	},
}

// Code that is not ours panics, or ends its goroutine: nothing may be left open, and Done is still due once.
func TestPanicLeavesNothingOpen(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []any
		plant func(client *riphttp.Transport, p *riprap.Policy, bad func())
		done  int
	}{
		{"Base", []any{func(*http.Request) (*http.Response, error) { return nil, nil }}, func(c *riphttp.Transport, _ *riprap.Policy, bad func()) {
			base := c.Base
			c.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				r.Body.Close() // as every RoundTripper must
				bad()
				return base.RoundTrip(r)
			})
		}, 1},
		{"Judge", []any{503}, func(c *riphttp.Transport, _ *riprap.Policy, bad func()) {
			c.Judge = func(*http.Response) error { bad(); return nil }
		}, 1},
		{"Judge of the second attempt", []any{503, 200}, func(c *riphttp.Transport, _ *riprap.Policy, bad func()) {
			c.Judge = func(r *http.Response) error {
				if r.StatusCode == 200 {
					bad()
				}
				return riphttp.Judge(r)
			}
		}, 1},
		{"Repeatable", nil, func(c *riphttp.Transport, _ *riprap.Policy, bad func()) {
			c.Repeatable = func(*http.Request) bool { bad(); return true }
		}, 1},
		{"NewKey", nil, func(c *riphttp.Transport, _ *riprap.Policy, bad func()) {
			c.NewKey = func(*http.Request) string { bad(); return "" }
		}, 1},
		{"Destination", nil, func(c *riphttp.Transport, _ *riprap.Policy, bad func()) {
			c.Destination = func(*http.Request) string { bad(); return "" }
		}, 0}, // no call without a name
		{"Retryable", []any{503}, func(_ *riphttp.Transport, p *riprap.Policy, bad func()) {
			p.Retryable = func(error) bool { bad(); return true }
		}, 1},
		{"Rand", []any{503}, func(_ *riphttp.Transport, p *riprap.Policy, bad func()) {
			p.Rand = func() float64 { bad(); return 0 }
		}, 1},
		{"Attempt hook", []any{200}, func(_ *riphttp.Transport, p *riprap.Policy, bad func()) {
			p.Trace.Attempt = func(ctx context.Context, _ riprap.Event) context.Context { bad(); return ctx }
		}, 1},
		{"Retry hook", []any{503}, func(_ *riphttp.Transport, p *riprap.Policy, bad func()) {
			p.Trace.Retry = func(context.Context, riprap.Event) { bad() }
		}, 1},
		{"Done hook", []any{501}, func(_ *riphttp.Transport, p *riprap.Policy, bad func()) {
			told := p.Trace.Done
			p.Trace.Done = func(ctx context.Context, e riprap.Event) { told(ctx, e); bad() }
		}, 1},
	} {
		for how, bad := range map[string]func(){"panics": func() { panic("bad") }, "exits": runtime.Goexit} {
			for kind, body := range bodyKinds {
				if (test.name == "Retryable" || test.name == "Rand" || test.name == "Retry hook" || test.name == "Judge of the second attempt") &&
					(kind == "of unknown length" || kind == "of a POST without a key") && test.name != "Retryable" {
					continue // not sent again, so that it does not come to that
				}
				inBubble(t, fmt.Sprintf("%s %s with a body %s", test.name, how, kind), func(t *testing.T) {
					var answers []*trackedBody
					var contexts []context.Context
					base := script(test.steps...)
					client := &riphttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
						contexts = append(contexts, r.Context())
						resp, err := base.RoundTrip(r)
						if resp != nil {
							b := track("answer")
							b.ctx = r.Context()
							resp.Body = b
							answers = append(answers, b)
						}
						return resp, err
					})}
					tracked, req := body(t)
					req.Method = "PUT"
					if test.name == "NewKey" || kind == "of a POST without a key" {
						req.Method = "POST"
					}
					var log events
					budget := &riprap.Budget{}
					policy := traced(even(), &log)
					policy.Budget = budget
					test.plant(client, policy, bad)
					client.Policy = policy
					ended := make(chan any)
					go func() {
						normal := false
						defer func() { recover(); ended <- normal }()
						client.RoundTrip(req)
						normal = true
					}()
					if normal := <-ended; normal == true {
						t.Error("RoundTrip returned, want its caller to see the panic")
					}
					synctest.Wait()
					for i, b := range *tracked {
						if n := b.closed.Load(); n != 1 {
							t.Errorf("request body %d was closed %d times, want once", i+1, n)
						}
					}
					for i, b := range answers {
						if b.closed.Load() == 0 {
							t.Errorf("response body %d of %d was left open", i+1, len(answers))
						}
					}
					for i, ctx := range contexts {
						if ctx.Err() == nil {
							t.Errorf("the context of attempt %d is alive", i+1)
						}
					}
					if got := len(log.done); got != test.done {
						t.Errorf("Done was called %d times, want %d", got, test.done)
					}
				})
			}
		}
	}
}

func TestDoneHookThatPanicsIsCalledOnce(t *testing.T) {
	for name, step := range map[string]any{
		"an answer without a body": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		},
		"a body that cannot be read": 200,
	} {
		inBubble(t, name, func(t *testing.T) {
			called := 0
			policy := even()
			policy.Trace = &riprap.Trace{Done: func(context.Context, riprap.Event) { called++; panic("bad") }}
			body := track("")
			length := int64(100)
			if step != 200 {
				length = -1
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was swallowed")
					}
				}()
				(&riphttp.Transport{Base: script(step), Policy: policy}).RoundTrip(sized(t, "PUT", body, length))
			}()
			if n := body.closed.Load(); called != 1 || n != 1 {
				t.Errorf("Done was called %d times, the body closed %d times, want once each", called, n)
			}
		})
	}
}

func TestResponseBesideAnErrorIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := track("answer")
		service := script(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: body}, errWire
		})
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: tries(1)}, newRequest(t, "GET", serviceURL, nil))
		if n := body.closed.Load(); n != 1 || !errors.Is(err, errWire) {
			t.Errorf("err = %v, the response's body was closed %d times, want %v and once", err, n, errWire)
		}
	})
}

func TestBaseThatBreaksTheContractIsSurvived(t *testing.T) {
	for _, test := range []struct {
		name  string
		step  func(*http.Request) (*http.Response, error)
		want  int
		calls int
	}{
		{"nothing", func(*http.Request) (*http.Response, error) { return nil, nil }, 0, 1},
		{"both", func(*http.Request) (*http.Response, error) { return response(200, ""), errWire }, 0, 4},
		{"no body", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{}}, nil
		}, 503, 4},
		{"an answer without a body", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200}, nil
		}, 200, 1},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(test.step)
			code, _, err := result(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "GET", serviceURL, nil))
			wantCalls(t, service, test.calls)
			if code != test.want || (err == nil) != (test.want != 0) {
				t.Errorf("got %d, %v, want %d", code, err, test.want)
			}
		})
	}
}

func TestMalformedRequestIsSentOnceAndItsBodyClosed(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"no URL":       func(r *http.Request) { r.URL = nil },
		"no header":    func(r *http.Request) { r.Header = nil },
		"no host":      func(r *http.Request) { r.URL.Host = "" },
		"scheme":       func(r *http.Request) { r.URL.Scheme = "gopher" },
		"method":       func(r *http.Request) { r.Method = "G T" },
		"header name":  func(r *http.Request) { r.Header["a b"] = []string{"c"} },
		"header value": func(r *http.Request) { r.Header["A"] = []string{"b\r\nc"} },
		"port":         func(r *http.Request) { r.URL.Host = "127.0.0.1:99999" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "a\nb" },
		"path":         func(r *http.Request) { r.URL.Opaque = "//a\x7f" },
		"trailer name": func(r *http.Request) { r.Trailer = http.Header{"a b": nil, "a:": {""}} },
	} {
		inBubble(t, name, func(t *testing.T) {
			start := time.Now()
			body := track("content")
			req := sized(t, "PUT", body, 7)
			spoil(req)
			service := memhttp.Serve(http.NotFoundHandler())
			base := service.Transport()
			if name == "port" {
				base = &http.Transport{} // which finds that when it connects
			}
			sends := 0
			client := &riphttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				sends++
				return base.RoundTrip(r)
			})}
			_, err := roundTrip(t, client, req)
			if gaveUp, ok := errors.AsType[*riprap.Error](err); ok {
				t.Errorf("err = %v, want that of net/http alone", gaveUp)
			}
			if sends != 1 || time.Since(start) != 0 {
				t.Errorf("%d attempts in %v, want one at once", sends, time.Since(start))
			}
			if n := body.closed.Load(); n != 1 {
				t.Errorf("body closed %d times, want once", n)
			}
			base.CloseIdleConnections()
			service.Stop()
		})
	}
}

// A length without a body is a mistake that no repetition cures.
func TestLengthWithoutABodyIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(errors.New("http: Request.ContentLength=7 with nil Body"))
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: even()}, sized(t, "PUT", nil, 7))
		wantCalls(t, service, 1)
		if _, ok := errors.AsType[*riprap.Error](err); ok || err == nil {
			t.Errorf("err = %v, want it as it came", err)
		}
	})
}

func TestJudgeThatTakesTheBodyAwayIsSurvived(t *testing.T) {
	for _, status := range []int{200, 503} {
		inBubble(t, http.StatusText(status), func(t *testing.T) {
			client := &riphttp.Transport{Base: script(status), Policy: even(), Judge: func(r *http.Response) error {
				r.Body.Close()
				r.Body = nil
				return riphttp.Judge(r)
			}}
			wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), status, "")
		})
	}
}
