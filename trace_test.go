package riprap_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

var quiet = log.New(io.Discard, "", 0)

// record returns a Trace that writes down what it is told.
func record(lines *[]string) *riprap.Trace {
	note := func(what string, e riprap.Event) {
		*lines = append(*lines, fmt.Sprintf("%s attempts=%d err=%v reason=%v wait=%v asked=%v",
			what, e.Attempts, e.Err, e.Reason, e.Wait, e.Asked))
	}
	return &riprap.Trace{
		Attempt: func(_ context.Context, e riprap.Event) context.Context { note("attempt", e); return nil },
		Retry:   func(_ context.Context, e riprap.Event) { note("retry", e) },
		Done:    func(_ context.Context, e riprap.Event) { note("done", e) },
	}
}

func TestATraceIsToldEachAttemptEachRetryAndTheEnd(t *testing.T) {
	type call = func(n int, cancel context.CancelFunc) error
	for _, tt := range []struct {
		name string
		op   call
		want []string
	}{
		{"a success", func(int, context.CancelFunc) error { return nil }, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"done attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
		}},
		{"a success after two retries", func(n int, _ context.CancelFunc) error {
			if n < 3 {
				return errFlaky
			}
			return nil
		}, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"retry attempts=1 err=flaky reason=<nil> wait=1s asked=0s",
			"attempt attempts=2 err=<nil> reason=<nil> wait=0s asked=0s",
			"retry attempts=2 err=flaky reason=<nil> wait=2s asked=0s",
			"attempt attempts=3 err=<nil> reason=<nil> wait=0s asked=0s",
			"done attempts=3 err=<nil> reason=<nil> wait=2s asked=0s",
		}},
		{"every attempt fails, and the last is not followed by a retry", func(int, context.CancelFunc) error { return errFlaky }, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"retry attempts=1 err=flaky reason=<nil> wait=1s asked=0s",
			"attempt attempts=2 err=<nil> reason=<nil> wait=0s asked=0s",
			"retry attempts=2 err=flaky reason=<nil> wait=2s asked=0s",
			"attempt attempts=3 err=<nil> reason=<nil> wait=0s asked=0s",
			"done attempts=3 err=flaky reason=no attempts left wait=2s asked=0s",
		}},
		{"the caller leaves during the second wait", func(n int, cancel context.CancelFunc) error {
			if n == 2 {
				time.AfterFunc(time.Millisecond, cancel)
			}
			return riprap.After(5*time.Second, errFlaky)
		}, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"retry attempts=1 err=flaky reason=<nil> wait=5.5s asked=5s",
			"attempt attempts=2 err=<nil> reason=<nil> wait=0s asked=0s",
			"retry attempts=2 err=flaky reason=<nil> wait=5.5s asked=5s",
			"done attempts=2 err=flaky reason=context canceled wait=5.5s asked=5s",
		}},
		{"a permanent failure is no giving up", func(int, context.CancelFunc) error { return riprap.Permanent(errFlaky) }, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"done attempts=1 err=flaky reason=<nil> wait=0s asked=0s",
		}},
		{"nor is the error of an inner loop", func(int, context.CancelFunc) error { return &riprap.Error{Reason: riprap.ErrBudget, Err: io.EOF} }, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"done attempts=1 err=gave up after 0 attempts: retry budget spent: EOF reason=<nil> wait=0s asked=0s",
		}},
		{"the service asks for too long", func(int, context.CancelFunc) error { return riprap.After(time.Hour, errFlaky) }, []string{
			"attempt attempts=1 err=<nil> reason=<nil> wait=0s asked=0s",
			"done attempts=1 err=flaky reason=the service asks for a longer wait than allowed wait=0s asked=1h0m0s",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				p := &riprap.Policy{
					MaxAttempts: 3, Trace: record(&lines), Rand: func() float64 { return 0.5 },
					Backoff: riprap.Backoff{Base: time.Second, Jitter: riprap.None},
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n := 0
				riprap.Do(ctx, p, func(given context.Context) error {
					if given != ctx {
						t.Errorf("attempt %d runs in %v, want the caller's context", n+1, given)
					}
					n++
					return tt.op(n, cancel)
				})
				if !slices.Equal(lines, tt.want) {
					t.Errorf("the trace was told\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(tt.want, "\n"))
				}
			})
		})
	}
}

func TestATraceIsToldOfACallerThatWasGoneBefore(t *testing.T) {
	var lines []string
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	riprap.Do(ctx, &riprap.Policy{Trace: record(&lines)}, succeed)
	want := []string{"done attempts=0 err=<nil> reason=context canceled wait=0s asked=0s"}
	if !slices.Equal(lines, want) {
		t.Errorf("the trace was told %q, want %q", lines, want)
	}
}

func TestTheWaitThatATraceIsToldIsTheWaitThatIsSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told time.Time // when the next attempt should begin
		p := &riprap.Policy{MaxAttempts: 20, Trace: &riprap.Trace{
			Retry: func(_ context.Context, e riprap.Event) { told = time.Now().Add(e.Wait) },
		}}
		calls := 0
		riprap.Do(t.Context(), p, func(context.Context) error {
			if calls++; calls > 1 && !time.Now().Equal(told) {
				t.Errorf("attempt %d begins at %v, want %v", calls, time.Now(), told)
			}
			return errFlaky
		})
	})
}

func TestAnAttemptRunsInTheContextOfItsHook(t *testing.T) {
	type key struct{}
	for name, p := range map[string]riprap.Policy{"without a bound": {}, "with a bound": {AttemptTimeout: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p.MaxAttempts = 3
				p.Trace = &riprap.Trace{Attempt: func(ctx context.Context, e riprap.Event) context.Context {
					if ctx.Value(key{}) != nil {
						t.Errorf("the hook of attempt %d is given the context of attempt %v", e.Attempts, ctx.Value(key{}))
					}
					return context.WithValue(ctx, key{}, e.Attempts)
				}}
				calls := 0
				riprap.Do(t.Context(), &p, func(ctx context.Context) error {
					calls++
					if got := ctx.Value(key{}); got != calls {
						t.Errorf("attempt %d runs in the context of attempt %v", calls, got)
					}
					return errFlaky
				})
			})
		})
	}
}

func TestLogWritesALineForEachRetryAndForGivingUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		tell func(*riprap.Trace)
		want string
	}{
		{"a retry", func(l *riprap.Trace) {
			l.Retry(t.Context(), riprap.Event{Attempts: 1, Err: errFlaky, Wait: time.Second})
		}, "level=INFO msg=retry attempts=1 wait=1s error=flaky\n"},
		{"a retry of a service that asked for a wait", func(l *riprap.Trace) {
			l.Retry(t.Context(), riprap.Event{Name: "https://h.test", Attempts: 2, Sends: 3, Err: errFlaky, Wait: 5 * time.Second, Asked: 4 * time.Second})
		}, "level=INFO msg=retry attempts=2 service=https://h.test sends=3 asked=4s wait=5s error=flaky\n"},
		{"as many sends as attempts are no news", func(l *riprap.Trace) {
			l.Retry(t.Context(), riprap.Event{Attempts: 2, Sends: 2, Err: errFlaky, Wait: time.Second})
		}, "level=INFO msg=retry attempts=2 wait=1s error=flaky\n"},
		{"giving up", func(l *riprap.Trace) {
			l.Done(t.Context(), riprap.Event{Attempts: 4, Err: errFlaky, Reason: riprap.ErrAttempts, Wait: time.Second})
		}, "level=WARN msg=\"gave up\" attempts=4 reason=\"no attempts left\" error=flaky\n"},
		{"a caller that ran out of time", func(l *riprap.Trace) {
			l.Done(t.Context(), riprap.Event{Attempts: 1, Reason: context.DeadlineExceeded})
		}, "level=WARN msg=\"gave up\" attempts=1 reason=\"context deadline exceeded\"\n"},
		{"a caller that left", func(l *riprap.Trace) {
			l.Done(t.Context(), riprap.Event{Reason: fmt.Errorf("%w: %w", context.Canceled, errShutdown)})
		}, "level=INFO msg=\"gave up\" attempts=0 reason=\"context canceled: the process shuts down\"\n"},
		{"a success", func(l *riprap.Trace) { l.Done(t.Context(), riprap.Event{Attempts: 1}) }, ""},
		{"a permanent failure is its caller's to log", func(l *riprap.Trace) { l.Done(t.Context(), riprap.Event{Attempts: 1, Err: errFlaky}) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var lines bytes.Buffer
			tt.tell(riprap.Log(logger(&lines)))
			if got := lines.String(); got != tt.want {
				t.Errorf("logged %q, want %q", got, tt.want)
			}
		})
	}
}

// logger writes lines without the time.
func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLogShowsNoSecretsOfAnAddress(t *testing.T) {
	for name, err := range leaky() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines bytes.Buffer
				p := &riprap.Policy{MaxAttempts: 2, Trace: riprap.Log(logger(&lines)), Retryable: func(error) bool { return true }}
				riprap.Do(t.Context(), p, func(context.Context) error { return err })
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(err)
				riprap.Do(ctx, p, succeed)
				if n := strings.Count(lines.String(), "\n"); n != 3 {
					t.Errorf("logged %d lines, want a retry and two ends:\n%s", n, &lines)
				}
				for _, secret := range secrets {
					if strings.Contains(lines.String(), secret) {
						t.Errorf("the log tells %q:\n%s", secret, &lines)
					}
				}
			})
		})
	}
}

func TestLogWithoutALoggerAsksForTheDefaultAtEachLine(t *testing.T) {
	trace := riprap.Log(nil)
	before := slog.Default()
	defer slog.SetDefault(before)
	var lines bytes.Buffer
	slog.SetDefault(logger(&lines))
	trace.Retry(t.Context(), riprap.Event{Attempts: 1})
	if got := lines.String(); !strings.Contains(got, "msg=retry") {
		t.Errorf("the default logger got %q, want the line of a retry", got)
	}
}
