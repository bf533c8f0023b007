package riprap_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

// An operation may end by a panic or by runtime.Goexit, in op or in any function that a Policy has.
func TestAnOperationThatIsTornDownLeavesNothingBehind(t *testing.T) {
	for _, tt := range []struct {
		where string
		spent int // retries
		done  riprap.Event
	}{
		{"first attempt", 0, riprap.Event{Attempts: 1}},
		{"second attempt", 1, riprap.Event{Attempts: 2, Err: errFlaky, Wait: time.Second}},
		{"hook of the first attempt", 0, riprap.Event{Attempts: 1}},
		{"hook of the retry", 0, riprap.Event{Attempts: 1, Err: errFlaky, Wait: time.Second}},
		{"Retryable", 0, riprap.Event{Attempts: 1, Err: errFlaky}},
		{"Rand", 0, riprap.Event{Attempts: 1, Err: errFlaky}},
		{"Done", 0, riprap.Event{Attempts: 1}},
	} {
		for how, end := range map[string]func(){
			"panic":  func() { panic("torn down") },
			"Goexit": runtime.Goexit,
		} {
			t.Run(tt.where+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					at := func(where string) {
						if where == tt.where {
							end()
						}
					}
					budget := &riprap.Budget{}
					var done []riprap.Event
					p := &riprap.Policy{
						Budget: budget, AttemptTimeout: time.Minute,
						Backoff:   riprap.Backoff{Base: time.Second, Jitter: riprap.None},
						Retryable: func(error) bool { at("Retryable"); return true },
						Rand:      func() float64 { at("Rand"); return 0 },
						Trace: &riprap.Trace{
							Attempt: func(ctx context.Context, e riprap.Event) context.Context { at("hook of the first attempt"); return ctx },
							Retry:   func(context.Context, riprap.Event) { at("hook of the retry") },
							Done: func(_ context.Context, e riprap.Event) {
								done = append(done, e)
								at("Done")
							},
						},
					}
					calls := 0
					var given []context.Context
					returned := false
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() { recover() }()
						riprap.Do(t.Context(), p, func(ctx context.Context) error {
							given = append(given, ctx)
							calls++
							if at("first attempt"); calls == 2 {
								at("second attempt")
							}
							if tt.where == "Done" {
								return nil
							}
							return errFlaky
						})
						returned = true
					}()
					<-ended
					if returned {
						t.Fatal("Do returned")
					}
					if len(done) != 1 {
						t.Fatalf("Done was called %d times, want once", len(done))
					}
					if reason := done[0].Reason; (reason == nil) != (tt.where == "Done") {
						t.Errorf("the reason in the Done event is %v", reason)
					}
					done[0].Reason = nil
					if !slices.Equal(done, []riprap.Event{tt.done}) {
						t.Errorf("the Done event is %+v, want %+v", done[0], tt.done)
					}
					if got, want := budget.Left(time.Now()), 10-tt.spent; got != want {
						t.Errorf("Left = %d, want %d", got, want)
					}
					for n, ctx := range given {
						if ctx.Err() != context.Canceled {
							t.Errorf("the context of attempt %d says %v, want context.Canceled", n+1, ctx.Err())
						}
					}
				})
			})
		}
	}
}

func TestAPanicGoesThroughToTheCaller(t *testing.T) {
	for name, p := range map[string]*riprap.Policy{"nil policy": nil, "with a bound": {Timeout: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != errFlaky {
					t.Errorf("recovered %v, want what op panicked with", got)
				}
			}()
			riprap.Do(t.Context(), p, func(context.Context) error { panic(errFlaky) })
		})
	}
}
