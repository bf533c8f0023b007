package riprap_test

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

// until waits for the end of the context, as an operation does that is cut off.
func until(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAnAttemptCarriesTheEarliestOfAllDeadlines(t *testing.T) {
	const never = 0
	for _, tt := range []struct {
		name                   string
		caller, total, attempt time.Duration
		want                   time.Duration
		same                   bool // the caller's own context
	}{
		{"no bound at all", never, never, never, never, true},
		{"negative bounds are none", never, -1, -1, never, true},
		{"the attempt's alone", never, never, time.Second, time.Second, false},
		{"the total alone", never, time.Second, never, time.Second, false},
		{"the caller's alone", time.Second, never, never, time.Second, true},
		{"the attempt's before the total", never, 2 * time.Second, time.Second, time.Second, false},
		{"the total before the attempt's", never, time.Second, 2 * time.Second, time.Second, false},
		{"the attempt's before the caller's", 2 * time.Second, never, time.Second, time.Second, false},
		{"the caller's before the attempt's", time.Second, never, 2 * time.Second, time.Second, true},
		{"the caller's with the attempt's", time.Second, never, time.Second, time.Second, true},
		{"the caller's with the total", time.Second, time.Second, never, time.Second, true},
		{"the caller's before both", time.Second, 2 * time.Second, 3 * time.Second, time.Second, true},
		{"the total before both", 3 * time.Second, time.Second, 2 * time.Second, time.Second, false},
		{"bounds without end", never, math.MaxInt64, math.MaxInt64, math.MaxInt64, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, ctx := time.Now(), t.Context()
				if tt.caller != never {
					bound, cancel := context.WithTimeout(ctx, tt.caller)
					defer cancel()
					ctx = bound
				}
				err := riprap.Do(ctx, &riprap.Policy{Timeout: tt.total, AttemptTimeout: tt.attempt}, func(given context.Context) error {
					deadline, ok := given.Deadline()
					if got := deadline.Sub(begin); ok != (tt.want != never) || ok && got != tt.want {
						t.Errorf("the attempt's deadline is %v after the beginning (there: %v), want %v", got, ok, tt.want)
					}
					if same := given == ctx; same != tt.same {
						t.Errorf("the attempt has the caller's very context: %v, want %v", same, tt.same)
					}
					return nil
				})
				if err != nil {
					t.Errorf("Do = %v, want nil", err)
				}
			})
		})
	}
}

func TestEachAttemptHasAContextOfItsOwnThatEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before []context.Context
		p := &riprap.Policy{MaxAttempts: 4, AttemptTimeout: time.Minute, Timeout: time.Hour}
		riprap.Do(t.Context(), p, func(ctx context.Context) error {
			if ctx.Err() != nil {
				t.Errorf("attempt %d begins with a context that is over: %v", len(before)+1, ctx.Err())
			}
			for n, old := range before {
				if old == ctx {
					t.Errorf("attempts %d and %d have the same context", n+1, len(before)+1)
				}
				if old.Err() != context.Canceled {
					t.Errorf("after attempt %d its context says %v, want context.Canceled", n+1, old.Err())
				}
			}
			before = append(before, ctx)
			return errFlaky
		})
		if n := len(before); n != 4 || before[n-1].Err() != context.Canceled {
			t.Errorf("after Do the context of the last of %d attempts is not cancelled", n)
		}
	})
}

func TestAnAttemptThatIsCutOffIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &riprap.Policy{
			MaxAttempts: 3, AttemptTimeout: 2 * time.Second,
			Backoff: riprap.Backoff{Base: time.Second, Factor: 1, Jitter: riprap.None},
		}
		begin := time.Now()
		err := riprap.Do(t.Context(), p, until)
		if got := time.Since(begin); got != 8*time.Second {
			t.Errorf("Do took %v, want 8s: three attempts of 2s and two waits of 1s", got)
		}
		e := gaveUp(t, err)
		if e.Reason != riprap.ErrAttempts || e.Err != context.DeadlineExceeded || e.Attempts != 3 || !e.Timeout() {
			t.Errorf("Do = %#v, want ErrAttempts after three attempts of which the last timed out", e)
		}
	})
}

func TestWhoseTimeRanOutStaysClear(t *testing.T) {
	for _, tt := range []struct {
		name   string
		caller time.Duration
		policy riprap.Policy
		reason error
	}{
		{"the caller's", time.Second, riprap.Policy{}, context.DeadlineExceeded},
		{"the caller's, earlier than ours", time.Second, riprap.Policy{Timeout: 2 * time.Second, AttemptTimeout: 3 * time.Second}, context.DeadlineExceeded},
		{"the caller's, with ours", time.Second, riprap.Policy{Timeout: time.Second, AttemptTimeout: time.Second}, context.DeadlineExceeded},
		{"the operation's", time.Hour, riprap.Policy{Timeout: time.Second}, riprap.ErrDeadline},
		{"the operation's, with the attempt's", time.Hour, riprap.Policy{Timeout: time.Second, AttemptTimeout: time.Second}, riprap.ErrDeadline},
		{"the attempt's", time.Hour, riprap.Policy{AttemptTimeout: time.Second, MaxAttempts: 1}, riprap.ErrAttempts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.caller)
				defer cancel()
				begin := time.Now()
				err := riprap.Do(ctx, &tt.policy, until)
				if got := time.Since(begin); got != time.Second {
					t.Errorf("Do took %v, want 1s", got)
				}
				e := gaveUp(t, err)
				if e.Reason != tt.reason || e.Attempts != 1 {
					t.Errorf("Do gave up after %d attempts because of %v, want one attempt and %v", e.Attempts, e.Reason, tt.reason)
				}
				if !errors.Is(err, context.DeadlineExceeded) || !e.Timeout() {
					t.Errorf("Do = %v, want a timeout that is context.DeadlineExceeded", err)
				}
				if over := ctx.Err() != nil; over != (tt.reason == context.DeadlineExceeded) {
					t.Errorf("the caller's context says %v, which does not go with %v", ctx.Err(), tt.reason)
				}
			})
		})
	}
}

func TestTheCauseOfTheCallersDeadlineIsInTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errShutdown)
		defer cancel()
		err := riprap.Do(ctx, nil, until)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errShutdown) {
			t.Errorf("Do = %v, want context.DeadlineExceeded and its cause", err)
		}
	})
}

func TestDoDoesNotSleepTowardsADeadline(t *testing.T) {
	steady := func(wait time.Duration) riprap.Backoff {
		return riprap.Backoff{Base: wait, Max: wait, Jitter: riprap.None}
	}
	for _, tt := range []struct {
		name   string
		wait   time.Duration // of its own
		asked  time.Duration
		least  time.Duration // MinAttempt
		made   int           // attempts
		reason error
	}{
		{"the wait is longer than the time left", 3 * time.Second, 0, 0, 1, riprap.ErrDeadline},
		{"the service asks for longer", time.Second, 10 * time.Second, 0, 1, riprap.ErrDeadline},
		{"the wait ends with the time", 2 * time.Second, 0, 0, 1, riprap.ErrDeadline},
		{"the wait leaves a nanosecond", 2*time.Second - 1, 0, 0, 2, riprap.ErrDeadline},
		{"a negative least attempt is none", 2*time.Second - 1, 0, -time.Hour, 2, riprap.ErrDeadline},
		{"the wait leaves too little for an attempt", 1900 * time.Millisecond, 0, 300 * time.Millisecond, 1, riprap.ErrDeadline},
		{"the wait leaves a nanosecond too little", 1900 * time.Millisecond, 0, 100*time.Millisecond + 1, 1, riprap.ErrDeadline},
		{"the wait leaves just enough", 1900 * time.Millisecond, 0, 100 * time.Millisecond, 2, riprap.ErrDeadline},
		{"the least attempt is longer than anything", 1, 0, math.MaxInt64, 1, riprap.ErrDeadline},
	} {
		for _, whose := range []string{"the operation's", "the caller's", "the caller's, before the operation's"} {
			t.Run(tt.name+"/"+whose, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					budget := &riprap.Budget{}
					p := &riprap.Policy{Backoff: steady(tt.wait), MinAttempt: tt.least, Budget: budget}
					ctx := t.Context()
					if whose != "the operation's" {
						bound, cancel := context.WithTimeout(ctx, 2*time.Second)
						defer cancel()
						ctx = bound
					}
					switch whose {
					case "the operation's":
						p.Timeout = 2 * time.Second
					case "the caller's, before the operation's":
						p.Timeout = time.Hour
					}
					begin, calls := time.Now(), 0
					err := riprap.Do(ctx, p, func(context.Context) error {
						calls++
						return riprap.After(tt.asked, errFlaky)
					})
					e := gaveUp(t, err)
					if calls != tt.made || e.Reason != tt.reason || e.Err != errFlaky {
						t.Errorf("Do = %#v after %d calls, want %d calls and %v", e, calls, tt.made, tt.reason)
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Do = %v, want it to be context.DeadlineExceeded", err)
					}
					if got, want := time.Since(begin), time.Duration(tt.made-1)*tt.wait; got != want {
						t.Errorf("Do took %v, want %v", got, want)
					}
					if got, want := budget.Left(time.Now()), 10-(tt.made-1); got != want {
						t.Errorf("Left = %d, want %d: a retry that is not made costs nothing", got, want)
					}
				})
			})
		}
	}
}

func TestATimeoutBoundsAttemptsAndWaitsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &riprap.Policy{
			MaxAttempts: -1, Timeout: 250 * time.Millisecond, AttemptTimeout: 100 * time.Millisecond,
			Backoff: riprap.Backoff{Base: 10 * time.Millisecond, Factor: 1, Jitter: riprap.None},
		}
		var bounds []time.Duration
		begin := time.Now()
		err := riprap.Do(t.Context(), p, func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			bounds = append(bounds, time.Until(deadline))
			return until(ctx)
		})
		want := [...]time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 30 * time.Millisecond}
		if len(bounds) != 3 || [3]time.Duration(bounds) != want {
			t.Errorf("attempts had %v, want %v", bounds, want)
		}
		if got := time.Since(begin); got != p.Timeout || !errors.Is(err, riprap.ErrDeadline) {
			t.Errorf("Do = %v after %v, want ErrDeadline after %v", err, got, p.Timeout)
		}
	})
}

// A hook may be slow, and a machine may sleep: then the deadline passes while the operation waits.
func TestNoAttemptBeginsAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		p := &riprap.Policy{
			Timeout: time.Minute,
			Trace:   &riprap.Trace{Retry: func(context.Context, riprap.Event) { time.Sleep(time.Hour) }},
		}
		err := riprap.Do(t.Context(), p, func(context.Context) error {
			calls++
			return io.EOF
		})
		if calls != 1 || !errors.Is(err, riprap.ErrDeadline) || !errors.Is(err, io.EOF) {
			t.Errorf("Do made %d attempts and returned %v, want one, ErrDeadline and EOF", calls, err)
		}
	})
}
