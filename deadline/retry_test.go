package deadline_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

func TestAFailureSaysThatARetryIsUselessOnlyIfItIs(t *testing.T) {
	late := func(r *http.Request) { <-r.Context().Done() }
	giveUp := func(r *http.Request) { deadline.GiveUp(r.Context()) }
	inTime := func(r *http.Request) { time.Sleep(time.Second - 1) }
	for _, test := range []struct {
		name   string
		before func(*http.Request)
		code   int
		says   string // by the handler itself
		want   string
	}{
		{"in time", inTime, 503, "", "-"},
		{"late", late, 503, "", "false"},
		{"late 500", late, 500, "", "false"},
		{"late 429", late, 429, "", "false"},
		{"late 404", late, 404, "", "-"},
		{"late 499", late, 499, "", "-"},
		{"late 200", late, 200, "", "-"},
		{"late, but it says true", late, 503, "true", "true"},
		{"given up", giveUp, 503, "", "false"},
		{"given up 500", giveUp, 500, "", "false"},
		{"given up 429", giveUp, 429, "", "false"},
		{"given up 404", giveUp, 404, "", "-"},
		{"given up 200", giveUp, 200, "", "-"},
		{"given up, but it says true", giveUp, 503, "true", "true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serve(deadline.Middleware{Limit: time.Second}, func(w http.ResponseWriter, r *http.Request) {
					test.before(r)
					if test.says != "" {
						w.Header().Set("X-Should-Retry", test.says)
					}
					http.Error(w, "the handler's own", test.code)
				})
				if got := retryVerdict(w); w.Code != test.code || got != test.want {
					t.Errorf("answer %d with X-Should-Retry %q, want %d with %q", w.Code, got, test.code, test.want)
				}
				if w.Body.String() != "the handler's own\n" || w.Header().Get("X-Deadline-Exceeded") != "" {
					t.Errorf("answer %q with %q, want the handler's own", w.Body, w.Header())
				}
			})
		})
	}
}

func TestAHandlerMayHoldTheVerdictBack(t *testing.T) {
	w := serve(deadline.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		deadline.GiveUp(r.Context())
		w.Header()["X-Should-Retry"] = nil // as net/http has it for Date
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if values := w.Result().Header["X-Should-Retry"]; len(values) > 0 {
		t.Errorf("X-Should-Retry is %q, want none", values)
	}
}

func TestGivingUpAfterTheHeaderIsTooLate(t *testing.T) {
	w := serve(deadline.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		deadline.GiveUp(r.Context())
		w.Write([]byte("more"))
		w.WriteHeader(http.StatusServiceUnavailable) // a mistake, but none of ours
	})
	if _, ok := w.Header()["X-Should-Retry"]; ok {
		t.Errorf("header %q was changed after it was sent", w.Header())
	}
}

func TestAnyGoroutineMayGiveUpAtAnyTime(t *testing.T) {
	var all sync.WaitGroup
	release := make(chan struct{})
	w := serve(deadline.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		var before sync.WaitGroup
		ctx := r.Context()
		for range 8 {
			before.Go(func() { deadline.GiveUp(ctx) })
			all.Go(func() { deadline.GiveUp(ctx) })
			all.Go(func() {
				<-release // after the handler has returned
				deadline.GiveUp(ctx)
			})
		}
		before.Wait()
		http.Error(w, "down", http.StatusServiceUnavailable)
	})
	close(release)
	all.Wait()
	if got := retryVerdict(w); got != "false" {
		t.Errorf("X-Should-Retry is %q, want false", got)
	}
}

func TestARequestKnowsWhetherItIsARetry(t *testing.T) {
	for _, test := range []struct {
		header  []string
		attempt int
		retried bool
	}{
		{nil, 0, false},
		{[]string{"1"}, 1, false},
		{[]string{"2"}, 2, true},
		{[]string{"999999999"}, 999999999, true},
		{[]string{"1", "3", "2"}, 3, true},
		{[]string{"x", "2"}, 2, true},
		{[]string{"0"}, 0, false},
		{[]string{"-3"}, 0, false},
		{[]string{"+3"}, 0, false},
		{[]string{"2.5"}, 0, false},
		{[]string{"1e3"}, 0, false},
		{[]string{"0x2"}, 0, false},
		{[]string{"true"}, 0, false},
		{[]string{"1000000000"}, 0, false},
		{[]string{"99999999999999999999"}, 0, false},
	} {
		var header []string
		for _, value := range test.header {
			header = append(header, deadline.AttemptHeader, value)
		}
		inHandler(t, func(ctx context.Context) {
			if attempt, retried := deadline.Attempt(ctx), deadline.Retried(ctx); attempt != test.attempt || retried != test.retried {
				t.Errorf("%q: attempt %d, retried %t; want %d, %t", test.header, attempt, retried, test.attempt, test.retried)
			}
		}, header...)
	}
}

func TestOutsideAMiddlewareNothingIsKnown(t *testing.T) {
	ctx := t.Context()
	deadline.GiveUp(ctx)
	if deadline.Retried(ctx) || deadline.Attempt(ctx) != 0 || deadline.CorrelationID(ctx) != "" {
		t.Errorf("retried %t, attempt %d, id %q; want nothing", deadline.Retried(ctx), deadline.Attempt(ctx), deadline.CorrelationID(ctx))
	}
}

// Nobody above tries again what goes on after the answer.
func TestWorkThatOutlivesTheRequestKeepsItsNameAndMayBeTriedAgain(t *testing.T) {
	for name, end := range map[string]func(){"it returns": func() {}, "it panics": func() { panic(http.ErrAbortHandler) }} {
		var ctx context.Context
		func() {
			defer func() { recover() }()
			inHandler(t, func(r context.Context) {
				ctx = context.WithoutCancel(r)
				if !deadline.Retried(ctx) {
					t.Errorf("%s: before that Retried is false, want true", name)
				}
				end()
			}, deadline.CorrelationHeader, "id", deadline.AttemptHeader, "2")
		}()
		if id := deadline.CorrelationID(ctx); id != "id" || deadline.Retried(ctx) || deadline.Left(ctx) != endless {
			t.Errorf("%s: id %q, retried %t, %v left; want id, false, no bound", name, id, deadline.Retried(ctx), deadline.Left(ctx))
		}
	}
}
