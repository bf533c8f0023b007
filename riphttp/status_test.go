package riphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestStatusDecidesWhetherTheRequestIsSentAgain(t *testing.T) {
	for codes, want := range map[*[]int]int{
		{500, 502, 503, 504, 520, 521, 522, 523, 524, 527, 529, 599, 0, 99, 600, 999, 408, 425, 429}:         3,
		{501, 505, 506, 507, 508, 510, 511, 400, 401, 403, 404, 409, 413, 417, 421, 422, 424, 200, 204, 304}: 1,
	} {
		for _, code := range *codes {
			inBubble(t, fmt.Sprint(code), func(t *testing.T) {
				service := script(reply(code, "body"))
				policy := even()
				policy.MaxAttempts = 3
				wantAnswer(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, "GET", serviceURL, nil), code, "body")
				wantCalls(t, service, want)
			})
		}
	}
}

func TestPermanentStatusStaysPermanentWithRetryAfter(t *testing.T) {
	for _, code := range []int{501, 505, 511} {
		inBubble(t, fmt.Sprint(code), func(t *testing.T) {
			service := script(reply(code, "no", "Retry-After", "1"))
			wantAnswer(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil), code, "no")
			wantCalls(t, service, 1)
		})
	}
}

func TestPostWithoutKeyIsSentOnceWhateverTheStatus(t *testing.T) {
	for _, method := range []string{"POST", "PATCH", "CONNECT", "SEARCH"} {
		for _, code := range []int{408, 425, 429, 500, 502, 503, 504, 529, 999} {
			inBubble(t, fmt.Sprint(method, code), func(t *testing.T) {
				service := script(reply(code, "body", "Retry-After", "1"), 200)
				var log events
				client := &riphttp.Transport{Base: service, Policy: traced(even(), &log)}
				wantAnswer(t, client, newRequest(t, method, serviceURL, "pay"), code, "body")
				wantCalls(t, service, 1)
				if e := log.ended(t); e.Reason != riphttp.ErrUnsafe {
					t.Errorf("Done: reason %v, want ErrUnsafe", e.Reason)
				}
			})
		}
	}
}

func TestServicesWordThatARetryIsFineDoesNotMakeAPostSafe(t *testing.T) {
	for _, header := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
		inBubble(t, header, func(t *testing.T) {
			service := script(reply(503, "busy", header, "true", "Retry-After", "1"), 200)
			wantAnswer(t, &riphttp.Transport{Base: service}, newRequest(t, "POST", serviceURL, "pay"), 503, "busy")
			wantCalls(t, service, 1)
		})
	}
}

func TestIdempotentMethodsAndKeyedRequestsAreSentAgain(t *testing.T) {
	for _, test := range []struct{ method, header string }{
		{"GET", ""}, {"HEAD", ""}, {"OPTIONS", ""}, {"TRACE", ""}, {"PUT", ""}, {"DELETE", ""}, {"", ""},
		{"POST", "Idempotency-Key"}, {"PATCH", "Idempotency-Key"}, {"POST", "X-Idempotency-Key"},
	} {
		inBubble(t, test.method+test.header, func(t *testing.T) {
			service := script(503, 200)
			req := newRequest(t, "GET", serviceURL, nil)
			req.Method = test.method
			if test.header != "" {
				req.Header.Set(test.header, "k")
			}
			wantAnswer(t, &riphttp.Transport{Base: service}, req, 200, "OK")
			wantCalls(t, service, 2)
		})
	}
}

func TestRepeatableHasTheLastWordOnTheMethod(t *testing.T) {
	for _, test := range []struct {
		method string
		may    bool
		calls  int
	}{{"POST", true, 2}, {"GET", false, 1}} {
		inBubble(t, test.method, func(t *testing.T) {
			service := script(503, 200)
			client := &riphttp.Transport{Base: service, Repeatable: func(*http.Request) bool { return test.may }}
			if _, _, err := result(t, client, newRequest(t, test.method, serviceURL, "body")); err != nil {
				t.Fatal(err)
			}
			wantCalls(t, service, test.calls)
		})
	}
}

func TestConflictIsAFailureOnlyForARequestWithAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := reply(409, `{"code":"idempotency_key_in_use"}`)
		service := script(hang, running, running, reply(201, "paid"))
		client := &riphttp.Transport{Base: service, Policy: even()}
		wantAnswer(t, client, newRequest(t, "POST", serviceURL, "pay", "Idempotency-Key", "k"), 201, "paid")
		wantCalls(t, service, 4)
		for i, got := range service.sent {
			if got.body != "pay" || got.header.Get("Idempotency-Key") != "k" {
				t.Errorf("attempt %d: body %q, key %q, want pay and k", i+1, got.body, got.header.Get("Idempotency-Key"))
			}
		}

		service = script(reply(409, "conflict"), 200)
		wantAnswer(t, &riphttp.Transport{Base: service}, newRequest(t, "PUT", serviceURL, "new"), 409, "conflict")
		service = script(reply(422, "other payload"), 200)
		wantAnswer(t, &riphttp.Transport{Base: service}, newRequest(t, "POST", serviceURL, "new", "Idempotency-Key", "k"), 422, "other payload")
		wantCalls(t, service, 1)
	})
}

func TestConflictIsAFailureForAKeyThatTheTransportMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(409, 201)
		client := &riphttp.Transport{Base: service, NewKey: func(*http.Request) string { return "made" }}
		wantAnswer(t, client, newRequest(t, "POST", serviceURL, "pay"), 201, "Created")
	})
}

func TestTooLargeIsAMatterOfTimeOnlyWithRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(413, "", "Retry-After", "5"), 200)
		wantAnswer(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "PUT", serviceURL, kilobytes(64)), 200, "OK")
		wantGaps(t, service, 5*time.Second)
	})
}

func TestExpectationFailedIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(417, "no expectations here"), 200)
		req := newRequest(t, "POST", serviceURL, kilobytes(2048), "Expect", "100-continue", "Idempotency-Key", "k")
		wantAnswer(t, &riphttp.Transport{Base: service}, req, 417, "no expectations here")
		wantCalls(t, service, 1)
	})
}

// A load balancer writes a 408 into an idle connection while the next request is on its way. Where it came before the
// service can have had all of the request, even a POST may be sent again.
func TestTimeoutStatusThatOvertakesTheRequestMeansNotProcessed(t *testing.T) {
	within := func(p *memhttp.Peer) { p.ReadByte() }
	inBody := func(p *memhttp.Peer) { http.ReadRequest(bufio.NewReader(p)) }
	behind := func(p *memhttp.Peer) { p.ReadRequest() }
	const keep, leave = "", "Connection: close\r\n"
	content := kilobytes(16)
	memory := func() io.ReadCloser { return io.NopCloser(strings.NewReader(content)) }
	file := func() io.ReadCloser { return io.NopCloser(io.MultiReader(strings.NewReader(content))) }
	slow := func() io.ReadCloser { // its last byte comes when the 408 is long there
		return io.NopCloser(io.MultiReader(strings.NewReader(content[1:]), sleeper{}, strings.NewReader("x")))
	}
	writing := func(body io.ReadCloser) io.ReadCloser {
		return struct {
			io.ReadCloser
			io.WriterTo
		}{body, writerTo(func(w io.Writer) (int64, error) { return io.Copy(w, io.MultiReader(body)) })}
	}
	fileWriter := func() io.ReadCloser { return writing(file()) }
	slowWriter := func() io.ReadCloser { return writing(slow()) }
	answered := func(*http.Response) error { return nil }
	for _, test := range []struct {
		name   string
		warm   bool                // the connection has served a request before
		read   func(*memhttp.Peer) // before the failure
		body   func() io.ReadCloser
		status int
		close  string
		judge  func(*http.Response) error
		again  bool
	}{
		{"within the header", true, within, memory, 408, leave, nil, true},
		{"within a body that is not all there", true, inBody, slow, 408, leave, nil, true},
		{"within a body that writes itself and is not all there", true, inBody, slowWriter, 408, leave, nil, true},
		{"within a body in memory", true, inBody, memory, 408, leave, nil, false},
		{"behind the request", true, behind, memory, 408, leave, nil, false},
		{"behind the request, which came from a file", true, behind, file, 408, leave, nil, false},
		{"behind the request, which came from a file that writes itself", true, behind, fileWriter, 408, leave, nil, false},
		{"on a fresh connection", false, within, memory, 408, leave, nil, false},
		{"on a connection that stays", true, within, memory, 408, keep, nil, false},
		{"another status", true, within, memory, 503, leave, nil, false},
		{"an answer to the caller's judge", true, within, memory, 408, leave, answered, false},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			again := 0
			service := memhttp.Play(func(n int, p *memhttp.Peer) {
				if n == 1 {
					if test.warm {
						p.ReadRequest()
						p.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
					test.read(p)
					p.Say(fmt.Sprintf("HTTP/1.1 %d No\r\n%sContent-Length: 0\r\n\r\n", test.status, test.close))
					time.Sleep(time.Second) // closing at once might overtake the response
					return
				}
				again++
				p.ReadRequest()
				p.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				p.ReadRequest()
			})
			client := &riphttp.Transport{Base: service.Transport(), Policy: even(), Judge: test.judge}
			if test.warm {
				wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
			}
			synctest.Wait()
			want, resent := test.status, 0
			if test.again {
				want, resent = 200, 1
			}
			req := sizedTo(t, "POST", memhttp.URL, test.body(), int64(len(content)), "X-Long", kilobytes(16))
			req.GetBody = func() (io.ReadCloser, error) { return test.body(), nil }
			wantAnswer(t, client, req, want, "")
			client.CloseIdleConnections()
			service.Stop()
			if again != resent {
				t.Errorf("the POST was sent again %d times, want %d", again, resent)
			}
		})
	}
}

// A body that writes itself tells how much it gave, too.
func TestBodyThatHasWrittenItselfIsNotUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &stub{play: func(n int, r *http.Request) (*http.Response, error) {
			resp := response(408, "")
			resp.Close = true
			return resp, nil
		}}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("service.test:80")
			trace.GotConn(httptrace.GotConnInfo{Reused: true})
			trace.WroteHeaders()
			if n, err := r.Body.(io.WriterTo).WriteTo(io.Discard); n != 3 || err != nil {
				t.Errorf("WriteTo = %d, %v, want 3", n, err)
			}
			return service.RoundTrip(r)
		})
		get := func() (io.ReadCloser, error) {
			return struct {
				io.ReadCloser
				io.WriterTo
			}{io.NopCloser(strings.NewReader("")), strings.NewReader("pay")}, nil
		}
		req := sized(t, "POST", nil, 3)
		req.Body, _ = get()
		req.GetBody = get
		wantAnswer(t, &riphttp.Transport{Base: base, Policy: even()}, req, 408, "")
		wantCalls(t, service, 1)
	})
}

// A sleeper is an empty part of a body that takes a second.
type sleeper struct{}

func (sleeper) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	return 0, io.EOF
}

func TestEmptyAccountIsNotAskedAgain(t *testing.T) {
	huge := strings.Repeat("x", 3<<20)
	for _, test := range []struct {
		name, body string
		header     []string
		calls      int
	}{
		{"no money", `{"error":{"code":"insufficient_quota"}}`, nil, 1},
		{"a limit a minute", `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for requests per minute"}}`, []string{"Retry-After", "20"}, 2},
		{"unreadable", huge, []string{"Retry-After", "20"}, 2},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(reply(429, test.body, test.header...))
			policy := even()
			policy.MaxAttempts, policy.Timeout = 2, -1
			client := &riphttp.Transport{Base: service, Policy: policy, Judge: riphttp.JudgeModels}
			wantAnswer(t, client, newRequest(t, "POST", serviceURL, "{}"), 429, test.body)
			wantCalls(t, service, test.calls)
			if test.calls > 1 {
				wantGaps(t, service, 20*time.Second)
			}
		})
	}
}

// Each way of giving up hands back the last response, whole and with a nil error, and says why in the Done event.
func TestLastResponseComesBackWholeHoweverRiprapGivesUp(t *testing.T) {
	for _, test := range []struct {
		name   string
		method string
		header []string
		change func(*riprap.Policy)
		reason error
		calls  int
	}{
		{"attempts used up", "GET", nil, func(p *riprap.Policy) { p.MaxAttempts = 3 }, riprap.ErrAttempts, 3},
		{"a single attempt", "GET", nil, func(p *riprap.Policy) { p.MaxAttempts = 1 }, riprap.ErrAttempts, 1},
		{"budget spent", "GET", nil, func(p *riprap.Policy) { p.Budget = &riprap.Budget{Reserve: 1} }, riprap.ErrBudget, 2},
		{"deadline too near", "GET", nil, func(p *riprap.Policy) { p.Timeout = 1500 * time.Millisecond }, riprap.ErrDeadline, 2},
		{"asked to wait too long", "GET", []string{"Retry-After", "61"}, func(*riprap.Policy) {}, riprap.ErrWait, 1},
		{"asked to wait beyond the deadline", "GET", []string{"Retry-After", "31"}, func(*riprap.Policy) {}, riprap.ErrDeadline, 1},
		{"unsafe", "POST", nil, func(*riprap.Policy) {}, riphttp.ErrUnsafe, 1},
		{"permanent", "GET", []string{"X-Should-Retry", "false"}, func(*riprap.Policy) {}, nil, 1},
		{"not retryable", "GET", nil, func(p *riprap.Policy) { p.Retryable = func(error) bool { return false } }, nil, 1},
	} {
		for _, bounds := range []string{"bounded", "unbounded"} {
			inBubble(t, test.name+" "+bounds, func(t *testing.T) {
				header := append([]string{"X-Note", "kept"}, test.header...)
				body := track("db down")
				service := script(func(*http.Request) (*http.Response, error) {
					body = track("db down")
					resp := response(503, "", header...)
					resp.Body = body
					return resp, nil
				})
				var log events
				policy := even()
				client := &riphttp.Transport{Base: service, Policy: policy}
				if bounds == "unbounded" {
					policy.AttemptTimeout, client.ReadTimeout = -1, -1
				}
				test.change(policy)
				client.Policy = traced(policy, &log)
				req := newRequest(t, test.method, serviceURL, nil)
				resp, err := roundTrip(t, client, req)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != 503 || resp.Header.Get("X-Note") != "kept" || body.closed.Load() != 0 {
					t.Errorf("got %d, %v, body closed %d times, want the 503 untouched", resp.StatusCode, resp.Header, body.closed.Load())
				}
				time.Sleep(time.Minute) // bounds of the call must not reach the body
				if got, err := io.ReadAll(resp.Body); string(got) != "db down" || err != nil {
					t.Errorf("body = %q, %v, want it whole", got, err)
				}
				resp.Body.Close()
				if n := body.closed.Load(); n != 1 {
					t.Errorf("body closed %d times, want once", n)
				}
				wantCalls(t, service, test.calls)
				if e := log.ended(t); e.Reason != test.reason || statusOf(e.Err) != 503 || e.Attempts != test.calls {
					t.Errorf("Done: attempts %d, reason %v, err %v, want %d, %v and the 503", e.Attempts, e.Reason, e.Err, test.calls, test.reason)
				}
			})
		}
	}
}

func TestFailureWithoutAResponseIsAnErrorWithBothCauses(t *testing.T) {
	for _, test := range []struct {
		name   string
		method string
		change func(*riprap.Policy)
		reason error
		calls  int
	}{
		{"attempts used up", "GET", func(p *riprap.Policy) { p.MaxAttempts = 3 }, riprap.ErrAttempts, 3},
		{"budget spent", "GET", func(p *riprap.Policy) { p.Budget = &riprap.Budget{Reserve: -1} }, riprap.ErrBudget, 1},
		{"deadline too near", "GET", func(p *riprap.Policy) { p.Timeout = 900 * time.Millisecond }, riprap.ErrDeadline, 1},
		{"unknown outcome", "POST", func(*riprap.Policy) {}, riphttp.ErrOutcomeUnknown, 1},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(errWire)
			policy := even()
			test.change(policy)
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, test.method, serviceURL, "body"))
			gaveUp, ok := errors.AsType[*riprap.Error](err)
			if !ok || gaveUp.Attempts != test.calls || gaveUp.Reason != test.reason || gaveUp.Err != errWire {
				t.Errorf("err = %#v, want an Error with %d attempts, %v and %v", err, test.calls, test.reason, errWire)
			}
			if !errors.Is(err, test.reason) || !errors.Is(err, errWire) {
				t.Errorf("err = %v, want both causes to be found", err)
			}
			if got, want := errors.Is(err, context.DeadlineExceeded), test.reason == riprap.ErrDeadline; got != want {
				t.Errorf("it is a DeadlineExceeded: %v, want %v", got, want)
			}
			wantCalls(t, service, test.calls)
		})
	}
}
