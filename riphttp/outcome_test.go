package riphttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// pay makes a POST with a key.
func pay(t testing.TB) *http.Request {
	return newRequest(t, "POST", serviceURL, "pay", "Idempotency-Key", "k")
}

// wantUnknown checks whether an error and the Done event that came with it say that the outcome is unknown, and what else
// the event says.
func wantUnknown(t testing.TB, log *events, err error, unknown bool, reason error) {
	t.Helper()
	if got := errors.Is(err, riphttp.ErrOutcomeUnknown); got != unknown || !errors.Is(err, reason) {
		t.Errorf("err = %v, is ErrOutcomeUnknown: %v, want %v, and %v", err, got, unknown, reason)
	}
	e := log.ended(t)
	if got := errors.Is(e.Reason, riphttp.ErrOutcomeUnknown); got != unknown {
		t.Errorf("Done: reason %v, is ErrOutcomeUnknown: %v, want %v", e.Reason, got, unknown)
	}
}

func leavesAfter(d time.Duration) func(*riphttp.Transport, *http.Request) *http.Request {
	return func(_ *riphttp.Transport, req *http.Request) *http.Request {
		ctx, cancel := context.WithCancel(req.Context())
		time.AfterFunc(d, cancel)
		return req.WithContext(ctx)
	}
}

func TestWithoutAnAnswerTheOutcomeIsUnknownWhateverEndedTheCall(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errGone := errors.New("the file is gone")
	for _, test := range []struct {
		name   string
		steps  []any
		change func(*riphttp.Transport, *http.Request) *http.Request
		reason error
	}{
		{"attempts", []any{errWire}, nil, riprap.ErrAttempts},
		{"attempts, of which the last one was not sent", []any{errWire, refused}, nil, riprap.ErrAttempts},
		{"attempts, of which the last one timed out", []any{refused, refused, refused, hang}, nil, riprap.ErrAttempts},
		{"the budget", []any{errWire}, func(c *riphttp.Transport, r *http.Request) *http.Request {
			c.Policy.Budget = &riprap.Budget{Ratio: -1, Reserve: -1}
			return r
		}, riprap.ErrBudget},
		{"a deadline", []any{hang}, func(c *riphttp.Transport, r *http.Request) *http.Request {
			c.Policy.Timeout = 10500 * time.Millisecond
			return r
		}, riprap.ErrDeadline},
		{"a wait that is too long", []any{riprap.After(time.Hour, errWire)}, nil, riprap.ErrWait},
		{"the caller, who left during an attempt", []any{hang}, leavesAfter(5 * time.Second), context.Canceled},
		{"the caller, who left during a wait", []any{errWire}, leavesAfter(500 * time.Millisecond), context.Canceled},
		{"the caller, who left during a wait after a 503", []any{503}, leavesAfter(500 * time.Millisecond), context.Canceled},
		{"the caller, who left while another request with the key was running", []any{409}, leavesAfter(500 * time.Millisecond), context.Canceled},
		{"the caller, who left after the service's own timeout", []any{408}, leavesAfter(500 * time.Millisecond), context.Canceled},
		{"the caller, who left after an earlier loss", []any{errWire, 429}, leavesAfter(1500 * time.Millisecond), context.Canceled},
		{"a failure that stays", []any{errWire, riprap.Permanent(errGone)}, nil, errGone},
		{"a failure that stays, at once", []any{riprap.Permanent(errGone)}, nil, errGone},
		{"a failure that is not to be retried", []any{errGone}, func(c *riphttp.Transport, r *http.Request) *http.Request {
			c.Policy.Retryable = func(error) bool { return false }
			return r
		}, errGone},
		{"an inner loop", []any{&riprap.Error{Reason: riprap.ErrBudget, Err: errWire}}, nil, riprap.ErrBudget},
		{"a body that cannot be had again", []any{errWire}, func(_ *riphttp.Transport, r *http.Request) *http.Request {
			r.GetBody = func() (io.ReadCloser, error) { return nil, errGone }
			return r
		}, errGone},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			var log events
			client := &riphttp.Transport{Base: script(test.steps...), Policy: traced(even(), &log)}
			req := pay(t)
			if test.change != nil {
				req = test.change(client, req)
			}
			_, err := roundTrip(t, client, req)
			wantUnknown(t, &log, err, true, test.reason)
		})
	}
}

func TestLostRequestThatServesARetryHasAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := newRequest(t, "GET", "http://gateway.test/", nil, deadline.AttemptHeader, "2")
		serve(served, func(_ http.ResponseWriter, r *http.Request) {
			var log events
			client := &riphttp.Transport{Base: script(errWire), Policy: traced(even(), &log)}
			_, err := roundTrip(t, client, pay(t).WithContext(r.Context()))
			wantUnknown(t, &log, err, true, riphttp.ErrRetried)
		})
	})
}

func TestOutcomeIsKnownIfNothingCanHaveHappenedTwice(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name   string
		method string
		step   any
		change func(*riphttp.Transport, *http.Request) *http.Request
		reason error
	}{
		{"never sent", "POST", refused, nil, riprap.ErrAttempts},
		{"never sent, and the caller left", "POST", refused, leavesAfter(500 * time.Millisecond), context.Canceled},
		{"never sent, over TLS", "POST", http.ErrSchemeMismatch, nil, http.ErrSchemeMismatch},
		{"turned away, and the caller left", "POST", 429, leavesAfter(500 * time.Millisecond), context.Canceled},
		{"not processed, as the service promises", "POST", 503, func(c *riphttp.Transport, r *http.Request) *http.Request {
			c.Judge = func(*http.Response) error { return riphttp.ErrNotProcessed }
			return leavesAfter(500*time.Millisecond)(c, r)
		}, context.Canceled},
		{"idempotent", "PUT", errWire, nil, riprap.ErrAttempts},
		{"idempotent, and the caller left", "DELETE", hang, leavesAfter(500 * time.Millisecond), context.Canceled},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			var log events
			client := &riphttp.Transport{Base: script(test.step), Policy: traced(even(), &log)}
			req := newRequest(t, test.method, serviceURL, "pay", "Idempotency-Key", "k")
			if test.change != nil {
				req = test.change(client, req)
			}
			_, err := roundTrip(t, client, req)
			wantUnknown(t, &log, err, false, test.reason)
		})
	}
}

// The caller sees the response. What it cannot see is that an attempt before it got none.
func TestResponseSpeaksForItselfAndNotForAnAttemptThatGotNone(t *testing.T) {
	replay := reply(500, "", "Idempotent-Replayed", "true")
	for _, test := range []struct {
		name    string
		steps   []any
		sent    int
		unknown bool // so says the Done event
		reason  error
	}{
		{"failing all the time", []any{503}, 4, false, riprap.ErrAttempts},
		{"failing after a loss", []any{errWire, 503}, 4, true, riprap.ErrAttempts},
		{"turned away after a loss", []any{errWire, 429}, 4, true, riprap.ErrAttempts},
		{"still running", []any{errWire, 409}, 4, true, riprap.ErrAttempts},
		{"replayed after a loss", []any{errWire, replay}, 2, false, nil},
		{"not implemented after a loss", []any{errWire, 501}, 2, false, nil},
		{"another payload after a loss", []any{errWire, 422}, 2, false, nil},
		{"answered after a loss", []any{errWire, 201}, 2, false, nil},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			var log events
			service := script(test.steps...)
			client := &riphttp.Transport{Base: service, Policy: traced(even(), &log)}
			_, _, err := result(t, client, pay(t))
			wantUnknown(t, &log, log.ended(t).Reason, test.unknown, test.reason)
			if err != nil {
				t.Errorf("err = %v, want the response", err)
			}
			wantCalls(t, service, test.sent)
		})
	}
}

// A key does not hide from the Transport what the wire tells.
func TestKeyedRequestWhoseHeaderNeverWentOutHasAKnownOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		play    func(int, *memhttp.Peer)
		unknown bool
	}{
		"cut within the header": {func(_ int, p *memhttp.Peer) { p.ReadByte() }, false},
		"cut after the header":  {func(_ int, p *memhttp.Peer) { http.ReadRequest(bufio.NewReader(p)) }, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			service := memhttp.Play(test.play)
			client := &riphttp.Transport{Base: service.Transport(), Policy: even()}
			_, err := roundTrip(t, client, newRequest(t, "POST", memhttp.URL, "pay", "Idempotency-Key", "k", "X-Long", kilobytes(16)))
			if got := errors.Is(err, riphttp.ErrOutcomeUnknown); got != test.unknown || !errors.Is(err, riprap.ErrAttempts) {
				t.Errorf("err = %v, is ErrOutcomeUnknown: %v, want %v, and ErrAttempts", err, got, test.unknown)
			}
			client.CloseIdleConnections()
			service.Stop()
		})
	}
}

// patient tries every hour, for as long as it is let.
func patient() *riprap.Policy {
	p := even()
	p.Backoff.Base, p.Backoff.Max = time.Hour, time.Hour
	p.MaxAttempts, p.Timeout, p.MaxWait = -1, 100*time.Hour, -1
	p.Budget = &riprap.Budget{Reserve: 1000}
	return p
}

func TestKeyIsNotSentOnceTheServiceMayHaveForgottenIt(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	told := func(values ...string) func() *http.Response {
		return func() *http.Response {
			resp := response(503, "")
			resp.Header["Idempotency-Retention"] = values
			return resp
		}
	}
	for _, test := range []struct {
		name  string
		kept  time.Duration // as the Transport has it
		steps []any
		sent  int
	}{
		{"a day", 0, []any{errWire}, 24},
		{"as configured", 5 * time.Hour, []any{errWire}, 5},
		{"as published", 0, []any{told("18000"), errWire}, 5},
		{"as published late", 0, []any{errWire, errWire, errWire, told("18000"), errWire}, 5},
		{"as published, longer than a day", 0, []any{told("180000"), errWire}, 50},
		{"configured against published", 5 * time.Hour, []any{told("7200"), errWire}, 5},
		{"published nonsense", 0, []any{told("soon"), errWire}, 24},
		{"published emptiness", 0, []any{told(), errWire}, 24},
		{"published nothing at all", 0, []any{told("0"), errWire}, 24},
		{"published in another unit", 0, []any{told("86400000000000"), errWire}, 24},
		{"from the first that may have been processed", 5 * time.Hour, []any{refused, refused, 429, errWire}, 3 + 5},
		{"never processed", 5 * time.Hour, []any{refused}, 100},
		{"for ever", -1, []any{errWire}, 100},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			var log events
			service := script(test.steps...)
			client := &riphttp.Transport{Base: service, Policy: traced(patient(), &log), KeyRetention: test.kept}
			start := time.Now()
			_, err := roundTrip(t, client, pay(t))
			wantCalls(t, service, test.sent)
			if took := time.Since(start); took >= time.Duration(test.sent)*time.Hour {
				t.Errorf("the call took %v, want it to end with attempt %d", took, test.sent)
			}
			if test.sent < 100 {
				wantUnknown(t, &log, err, true, riphttp.ErrOutcomeUnknown)
			}
		})
	}
}

func TestRetentionConcernsOnlyWhatIsKnownByItsKey(t *testing.T) {
	for _, method := range []string{"PUT", "POST"} {
		inBubble(t, method, func(t *testing.T) {
			service := script(errWire)
			client := &riphttp.Transport{Base: service, Policy: patient(), KeyRetention: time.Hour}
			client.Repeatable = func(*http.Request) bool { return true }
			roundTrip(t, client, newRequest(t, method, serviceURL, "x"))
			wantCalls(t, service, 100)
		})
	}
}

// All of its own attempts are lost, and what the service said before holds.
func TestRetentionThatAServicePublishedHoldsForLaterRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(201, "", "Idempotency-Retention", "7200"), reply(200, "", "Idempotency-Retention", "60"), errWire)
		client := &riphttp.Transport{Base: service, Policy: patient()}
		wantAnswer(t, client, pay(t), 201, "")
		wantAnswer(t, client, newRequest(t, "POST", serviceURL, "no key"), 200, "")
		_, err := roundTrip(t, client, pay(t))
		if wantCalls(t, service, 2+2); !errors.Is(err, riphttp.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want ErrOutcomeUnknown", err)
		}
		service.play = script(errWire).play
		other := newRequest(t, "POST", "http://other.test/", "pay", "Idempotency-Key", "k")
		if roundTrip(t, client, other); service.calls() != 4+24 {
			t.Errorf("another service got %d requests, want those of a day", service.calls()-4)
		}
	})
}

func TestWaitThatTakesLongerThanDecidedDoesNotOutliveTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := patient()
		policy.Trace = &riprap.Trace{Retry: func(context.Context, riprap.Event) { time.Sleep(3 * time.Hour) }}
		service := script(errWire, 201)
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy, KeyRetention: 3 * time.Hour}, pay(t))
		if wantCalls(t, service, 1); !errors.Is(err, riphttp.ErrOutcomeUnknown) || !errors.Is(err, errWire) {
			t.Errorf("err = %v, want ErrOutcomeUnknown and %v", err, errWire)
		}
	})
}

func TestRetentionCountsWithoutAnyOtherBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := patient()
		policy.Timeout, policy.AttemptTimeout = -1, -1
		service := script(errWire)
		client := &riphttp.Transport{Base: service, Policy: policy, ReadTimeout: -1, KeyRetention: 5 * time.Hour}
		_, err := roundTrip(t, client, pay(t))
		if wantCalls(t, service, 5); !errors.Is(err, riphttp.ErrOutcomeUnknown) {
			t.Errorf("err = %v, want ErrOutcomeUnknown", err)
		}
	})
}
