package ripotel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// Failing is an error whose type names it in error.type.
type Failing struct{ text string }

func (f *Failing) Error() string { return f.text }

const failing = "*ripotel_test.Failing"

// steps returns an operation that takes a second and fails with these errors in turn.
func steps(errs ...error) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(time.Second)
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func TestCallHasASpanOfItsOwnAboveThoseOfItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		err := riprap.Do(w.Start(t.Context(), "charge"), w.traced(),
			steps(riprap.After(10*time.Second, &Failing{}), fmt.Errorf("charging: %w", riprap.After(time.Millisecond, &riphttp.StatusError{Code: 503}))))
		if err != nil {
			t.Fatal(err)
		}
		w.wantStory(t, `
charge: internal 0s+14s attempts=3 service=charge
	- retry: 1s asked=10 attempts=1 error.type=`+failing+` wait.cause=asked wait=10
	- retry: 12s asked=0.001 attempts=2 error.type=503 wait.cause=backoff wait=1
	charge attempt: internal 0s+1s Error attempt=1 error.type=`+failing+`
	charge attempt: internal 11s+1s Error attempt=2 error.type=503
	charge attempt: internal 13s+1s attempt=3
`)
	})
}

func TestWaitThatIsStretchedAsFarAsItMayBeIsStillTheServices(t *testing.T) {
	for _, test := range []struct {
		asked time.Duration
		want  string
	}{
		{10 * time.Second, "asked=10 attempts=1 error.type=" + failing + " wait.cause=asked wait=12"},
		{time.Second / 10, "asked=0.1 attempts=1 error.type=" + failing + " wait.cause=backoff wait=1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch()
			p := w.traced()
			p.Rand = func() float64 { return 1 }
			riprap.Do(w.Start(t.Context(), "charge"), p, steps(riprap.After(test.asked, &Failing{})))
			if got := tags(w.span(t, "charge").Events[0].Attributes); got != " "+test.want {
				t.Errorf("after %v was asked for: the retry has%s, want %s", test.asked, got, test.want)
			}
		})
	}
}

func TestSpanInTheContextOfAnAttemptIsTheAttempts(t *testing.T) {
	w := newWatch()
	ctx := w.Start(t.Context(), "charge")
	call := trace.SpanContextFromContext(ctx)
	var inside trace.SpanContext
	riprap.Do(ctx, w.traced(), func(ctx context.Context) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	})
	if got := w.span(t, "charge"); got.SpanContext.SpanID() != call.SpanID() {
		t.Errorf("the span in the context of Start is %v, want the call's %v", call.SpanID(), got.SpanContext.SpanID())
	}
	if got := w.span(t, "charge attempt"); got.SpanContext.SpanID() != inside.SpanID() || got.Parent.SpanID() != call.SpanID() {
		t.Errorf("the attempt has the span %v under %v, want %v under %v", inside.SpanID(), got.Parent.SpanID(), got.SpanContext.SpanID(), call.SpanID())
	}
}

func TestCallSaysWhyItEnded(t *testing.T) {
	spent := &riprap.Budget{Reserve: -1, Ratio: -1}
	for _, test := range []struct {
		name   string
		change func(*riprap.Policy)
		errs   []error
		want   string
	}{
		{"success", nil, nil, "+1s attempts=1"},
		{"no attempts left", nil, []error{&Failing{}, &Failing{}, &Failing{}}, "+5s Error attempts=3 error.type=" + failing + " reason=attempts"},
		{"budget", func(p *riprap.Policy) { p.Budget = spent }, []error{&Failing{}}, "+1s Error attempts=1 error.type=" + failing + " reason=budget"},
		{"deadline", func(p *riprap.Policy) { p.Timeout = 1500 * time.Millisecond }, []error{&Failing{}},
			"+1s Error attempts=1 error.type=" + failing + " reason=deadline"},
		{"asked too long", nil, []error{riprap.After(time.Hour, &Failing{})}, "+1s Error attempts=1 error.type=" + failing + " reason=wait"},
		{"permanent", nil, []error{riprap.Permanent(&Failing{})}, "+1s Error attempts=1 error.type=" + failing},
		{"an error without a name", nil, []error{riprap.Permanent(errors.New("x"))}, "+1s Error attempts=1 error.type=_OTHER"},
		{"a timeout", func(p *riprap.Policy) { p.MaxAttempts = 1 }, []error{fmt.Errorf("x: %w", context.DeadlineExceeded)},
			"+1s Error attempts=1 error.type=timeout reason=attempts"},
		{"outcome unknown too", func(p *riprap.Policy) { p.MaxAttempts = 1 }, []error{fmt.Errorf("%w: %w", &Failing{}, riphttp.ErrOutcomeUnknown)},
			"+1s Error attempts=1 error.type=_OTHER outcome_unknown=true reason=attempts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch()
				p := w.traced()
				if test.change != nil {
					test.change(p)
				}
				riprap.Do(w.Start(t.Context(), "charge"), p, steps(test.errs...))
				s := w.span(t, "charge")
				got := fmt.Sprintf("+%v", s.EndTime.Sub(s.StartTime))
				if s.Status.Code != 0 {
					got += " " + s.Status.Code.String() + s.Status.Description
				}
				got += tags(s.Attributes)
				if want := test.want + " service=charge"; got != want {
					t.Errorf("the call's span is %q, want %q", got, want)
				}
				w.wantNoneOpen(t)
			})
		})
	}
}

func TestCallerWhoLeavesEndsTheCall(t *testing.T) {
	const head = "\ncharge: internal 0s+"
	for _, test := range []struct {
		name  string
		after time.Duration
		leave func(context.Context, time.Duration) (context.Context, context.CancelFunc)
		want  string
	}{
		{"in an attempt", 500 * time.Millisecond, cancelAfter, head + `500ms Error attempts=1 error.type=canceled reason=canceled service=charge
	charge attempt: internal 0s+500ms Error attempt=1 error.type=canceled
`},
		{"in a wait", 1500 * time.Millisecond, cancelAfter, head + `1.5s Error attempts=1 error.type=` + failing + ` reason=canceled service=charge
	- retry: 1s attempts=1 error.type=` + failing + ` wait.cause=backoff wait=1
	charge attempt: internal 0s+1s Error attempt=1 error.type=` + failing + `
`},
		{"by a deadline", 500 * time.Millisecond, context.WithTimeout, head + `500ms Error attempts=1 error.type=timeout reason=timeout service=charge
	charge attempt: internal 0s+500ms Error attempt=1 error.type=timeout
`},
		{"before the first attempt", 0, context.WithTimeout, head + `0s Error error.type=timeout reason=timeout service=charge
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch()
				ctx, cancel := test.leave(t.Context(), test.after)
				defer cancel()
				riprap.Do(w.Start(ctx, "charge"), w.traced(), func(ctx context.Context) error {
					select {
					case <-time.After(time.Second):
						return &Failing{}
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				w.wantStory(t, test.want)
			})
		})
	}
}

func cancelAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(d, cancel)
	return ctx, cancel
}

func TestAttemptThatPanicsEndsItsSpans(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("x") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch()
				calls := 0
				var ended sync.WaitGroup
				ended.Go(func() {
					defer func() { recover() }()
					riprap.Do(w.Start(t.Context(), "charge"), w.traced(), func(context.Context) error {
						if calls++; calls == 2 {
							end()
						}
						return &Failing{}
					})
				})
				ended.Wait()
				w.wantStory(t, `
charge: internal 0s+1s Error attempts=2 error.type=_OTHER reason=_OTHER service=charge
	- retry: 0s attempts=1 error.type=`+failing+` wait.cause=backoff wait=1
	charge attempt: internal 0s+0s Error attempt=1 error.type=`+failing+`
	charge attempt: internal 1s+0s Error attempt=2 error.type=_OTHER
`)
			})
		})
	}
}

func TestLoopWithinAnAttemptIsACallOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		p := w.traced()
		riprap.Do(w.Start(t.Context(), "outer"), p, func(ctx context.Context) error {
			riprap.Do(ctx, p, steps(&Failing{})) // nobody has started it
			return riprap.Do(w.Start(ctx, "inner"), p, steps())
		})
		w.wantStory(t, `
outer: internal 0s+4s attempts=1 service=outer
	outer attempt: internal 0s+4s attempt=1
		inner: internal 3s+1s attempts=1 service=inner
			inner attempt: internal 3s+1s attempt=1
`)
	})
}

func TestContextOfACallServesForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		ctx := w.Start(t.Context(), "charge")
		for range 2 {
			riprap.Do(ctx, w.traced(), steps(&Failing{}))
		}
		w.wantStory(t, `
charge: internal 0s+3s attempts=2 service=charge
	- retry: 1s attempts=1 error.type=`+failing+` wait.cause=backoff wait=1
	charge attempt: internal 0s+1s Error attempt=1 error.type=`+failing+`
	charge attempt: internal 2s+1s attempt=2
`)
		if got, want := w.figures(t, "riprap.call.duration"), "1 in 3s: service=charge"; got != want {
			t.Errorf("riprap.call.duration: %s, want %s", got, want)
		}
		if got, want := w.figures(t, "riprap.retry.wait"), "1 in 1s: error.type="+failing+" service=charge wait.cause=backoff"; got != want {
			t.Errorf("riprap.retry.wait: %s, want %s", got, want)
		}
	})
}

func TestCallsThatShareAContextLeaveNoSpanOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		ctx := w.Start(t.Context(), "charge")
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() { riprap.Do(ctx, w.traced(), steps(&Failing{})) })
			synctest.Wait()
		}
		calls.Wait()
		w.wantNoneOpen(t)
	})
}

func TestOperationThatNobodyStartedIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		riprap.Do(t.Context(), w.traced(), steps(&Failing{}))
		w.wantStory(t, "")
	})
}

func TestTraceThatWasThereIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type mine struct{}
		var told []string
		theirs := &riprap.Trace{
			Attempt: func(ctx context.Context, e riprap.Event) context.Context {
				told = append(told, fmt.Sprint("attempt ", e.Attempts))
				return context.WithValue(ctx, mine{}, e.Attempts)
			},
			Retry: func(_ context.Context, e riprap.Event) { told = append(told, fmt.Sprint("retry after ", e.Wait)) },
			Done:  func(_ context.Context, e riprap.Event) { told = append(told, fmt.Sprint("done ", e.Attempts)) },
		}
		w := newWatch()
		p := even()
		for _, trace := range []*riprap.Trace{theirs, {}, {Attempt: func(context.Context, riprap.Event) context.Context { return nil }}} {
			p.Trace = w.Trace(trace)
			fails := steps(&Failing{})
			err := riprap.Do(w.Start(t.Context(), "charge"), p, func(ctx context.Context) error {
				told = append(told, fmt.Sprint("context of ", ctx.Value(mine{})))
				return fails(ctx)
			})
			if err != nil {
				t.Error(err)
			}
		}
		want := []string{"attempt 1", "context of 1", "retry after 1s", "attempt 2", "context of 2", "done 2",
			"context of <nil>", "context of <nil>", "context of <nil>", "context of <nil>"}
		if got := fmt.Sprint(told); got != fmt.Sprint(want) {
			t.Errorf("told %v, want %v", got, want)
		}
		if n := len(w.spans.GetSpans()); n != 9 {
			t.Errorf("%d spans, want three of each call", n)
		}
	})
}
