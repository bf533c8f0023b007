package riprap_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

// fails returns an operation that fails n times, each time with another error, and then succeeds. It counts its calls.
func fails(n int, calls *int) func(context.Context) error {
	return func(context.Context) error {
		if *calls++; *calls <= n {
			return fmt.Errorf("failure %d: %w", *calls, errFlaky)
		}
		return nil
	}
}

// gaveUp returns the *Error in err and fails the test if there is none.
func gaveUp(t *testing.T, err error) *riprap.Error {
	t.Helper()
	e, ok := errors.AsType[*riprap.Error](err)
	if !ok {
		t.Fatalf("got error %v of type %T, want an *Error", err, err)
	}
	return e
}

func TestDoCountsTheFirstTryAsAnAttempt(t *testing.T) {
	const always = math.MaxInt
	for _, tt := range []struct {
		name     string
		policy   *riprap.Policy
		failures int
		calls    int
		reason   error
	}{
		{"a success is called once", nil, 0, 1, nil},
		{"a nil policy makes four", nil, always, 4, riprap.ErrAttempts},
		{"the zero policy makes four", &riprap.Policy{}, always, 4, riprap.ErrAttempts},
		{"the fourth may succeed", nil, 3, 4, nil},
		{"one means never again", &riprap.Policy{MaxAttempts: 1}, always, 1, riprap.ErrAttempts},
		{"three means two retries", &riprap.Policy{MaxAttempts: 3}, always, 3, riprap.ErrAttempts},
		{"the third of three may succeed", &riprap.Policy{MaxAttempts: 3}, 2, 3, nil},
		{"negative means no limit", &riprap.Policy{MaxAttempts: -1}, 500, 501, nil},
		{"bounds change nothing", &riprap.Policy{MaxAttempts: 3, Timeout: time.Hour, AttemptTimeout: time.Minute}, always, 3, riprap.ErrAttempts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				err := riprap.Do(t.Context(), tt.policy, fails(tt.failures, &calls))
				if calls != tt.calls {
					t.Errorf("Do called op %d times, want %d", calls, tt.calls)
				}
				if tt.reason == nil {
					if err != nil {
						t.Errorf("Do = %v, want nil", err)
					}
					return
				}
				if e := gaveUp(t, err); e.Reason != tt.reason || e.Attempts != tt.calls {
					t.Errorf("Do gave up after %d attempts because of %v, want %d and %v", e.Attempts, e.Reason, tt.calls, tt.reason)
				}
			})
		})
	}
}

func TestDoReturnsTheLastFailureAndTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := errors.New("the third failure")
		calls := 0
		err := riprap.Do(t.Context(), &riprap.Policy{MaxAttempts: 3}, func(context.Context) error {
			if calls++; calls == 3 {
				return last
			}
			return errFlaky
		})
		if !errors.Is(err, last) || !errors.Is(err, riprap.ErrAttempts) {
			t.Errorf("Do = %v, want an error that is both %v and ErrAttempts", err, last)
		}
		if errors.Is(err, errFlaky) {
			t.Errorf("Do = %v, want nothing of the earlier failures", err)
		}
		want := "gave up after 3 attempts: no attempts left: the third failure"
		if err.Error() != want {
			t.Errorf("Do's error says %q, want %q", err, want)
		}
	})
}

func TestDoValueReturnsTheValueOfTheLastAttempt(t *testing.T) {
	for _, tt := range []struct {
		name     string
		attempts int
		failures int
		want     string
		ok       bool
	}{
		{"the first try's", 3, 0, "value 1", true},
		{"a retry's", 3, 2, "value 3", true},
		{"also with an error", 3, 5, "value 3", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				op := fails(tt.failures, &calls)
				got, err := riprap.DoValue(t.Context(), &riprap.Policy{MaxAttempts: tt.attempts}, func(ctx context.Context) (string, error) {
					err := op(ctx)
					return fmt.Sprint("value ", calls), err
				})
				if got != tt.want || (err == nil) != tt.ok {
					t.Errorf("DoValue = %q, %v, want %q and success %v", got, err, tt.want, tt.ok)
				}
			})
		})
	}
}

func TestDoWaitsBetweenAttemptsAsTheBackoffSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &riprap.Policy{
			MaxAttempts: 5,
			Backoff:     riprap.Backoff{Base: time.Second, Max: 3 * time.Second, Jitter: riprap.None},
		}
		begin := time.Now()
		var at []time.Duration
		riprap.Do(t.Context(), p, func(context.Context) error {
			at = append(at, time.Since(begin))
			return errFlaky
		})
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 6 * time.Second, 9 * time.Second}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("attempts began at %v, want %v", at, want)
		}
		if got := time.Since(begin); got != 9*time.Second {
			t.Errorf("Do took %v, want 9s: no wait follows the last attempt", got)
		}
	})
}

func TestTenThousandAttemptsLeaveAGapEachTime(t *testing.T) {
	const base = 100 * time.Millisecond
	for _, tt := range []struct {
		jitter riprap.Jitter
		least  time.Duration
	}{
		{riprap.Full, 1},
		{riprap.Equal, base / 2},
		{riprap.Decorrelated, base},
		{riprap.None, base},
	} {
		t.Run(tt.jitter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const longest = 20 * time.Second
				p := &riprap.Policy{MaxAttempts: 10_000, Backoff: riprap.Backoff{Base: base, Max: longest, Jitter: tt.jitter}}
				calls, before := 0, time.Now()
				riprap.Do(t.Context(), p, func(context.Context) error {
					gap := time.Since(before)
					if calls++; calls > 1 && (gap < tt.least || gap > longest) {
						t.Fatalf("the wait before attempt %d was %v, want %v to %v", calls, gap, tt.least, longest)
					}
					before = time.Now()
					return errFlaky
				})
				if calls != 10_000 {
					t.Errorf("Do called op %d times, want 10000", calls)
				}
			})
		})
	}
}

func TestDoWaitsAtLeastAsLongAsTheServiceAsks(t *testing.T) {
	none := riprap.Backoff{Base: 10 * time.Second, Jitter: riprap.None}
	short := riprap.Backoff{Base: time.Millisecond, Max: time.Millisecond}
	for _, tt := range []struct {
		name        string
		asked       time.Duration
		policy      riprap.Policy
		u           float64
		least, most time.Duration
	}{
		{"asked for longer than its own backoff", 5 * time.Second, riprap.Policy{Backoff: short}, 0, 5 * time.Second, 5 * time.Second},
		{"up to a fifth is added at random", 5 * time.Second, riprap.Policy{Backoff: short}, 1, 6 * time.Second, 6 * time.Second},
		{"half of that in between", 5 * time.Second, riprap.Policy{Backoff: short}, 0.5, 5500 * time.Millisecond, 5500 * time.Millisecond},
		{"its own backoff is longer", time.Second, riprap.Policy{Backoff: none}, 0.5, 10 * time.Second, 10 * time.Second},
		{"asked for nothing", 0, riprap.Policy{Backoff: none}, 0.5, 10 * time.Second, 10 * time.Second},
		{"asked for less than nothing", -time.Hour, riprap.Policy{Backoff: none}, 0.5, 10 * time.Second, 10 * time.Second},
		{"exactly the most that is allowed", time.Minute, riprap.Policy{Backoff: short}, 0, time.Minute, time.Minute},
		{"a wait without a limit", 48 * time.Hour, riprap.Policy{Backoff: short, MaxWait: -1}, 0, 48 * time.Hour, 48 * time.Hour},
		{"no sensible random number", 5 * time.Second, riprap.Policy{Backoff: short}, math.NaN(), 5 * time.Second, 6 * time.Second},
		{"a random number below zero", 5 * time.Second, riprap.Policy{Backoff: short}, -7, 5 * time.Second, 6 * time.Second},
		{"a random number above one", 5 * time.Second, riprap.Policy{Backoff: short}, 7, 5 * time.Second, 6 * time.Second},
		{"the longest there is", math.MaxInt64, riprap.Policy{Backoff: short, MaxWait: -1}, 1, math.MaxInt64, math.MaxInt64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.policy.Rand = func() float64 { return tt.u }
			o := riprap.Operation{Policy: &tt.policy}
			o.Begin(time.Time{})
			got, stop := o.Next(time.Time{}, riprap.After(tt.asked, errFlaky))
			if got < tt.least || got > tt.most || stop != nil {
				t.Errorf("Next(After(%v)) = %v, %v, want a wait of %v to %v", tt.asked, got, stop, tt.least, tt.most)
			}
		})
	}
}

func TestDoSleepsThroughTheWaitThatWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, calls := time.Now(), 0
		err := riprap.Do(t.Context(), nil, func(context.Context) error {
			if calls++; calls == 1 {
				return fmt.Errorf("throttled: %w", riprap.After(30*time.Second, errFlaky))
			}
			return nil
		})
		if got := time.Since(begin); err != nil || got < 30*time.Second || got > 36*time.Second {
			t.Errorf("Do = %v after %v, want nil after 30s to 36s", err, got)
		}
	})
}

func TestClientsThatWereToldTheSameWaitDoNotReturnTogether(t *testing.T) {
	const asked = 5 * time.Second
	var windows [100]int // of a hundredth of the fifth that is added
	for range 10_000 {
		o := riprap.Operation{Policy: &riprap.Policy{}}
		o.Begin(time.Time{})
		wait, _ := o.Next(time.Time{}, riprap.After(asked, errFlaky))
		windows[min((wait-asked)*100/(asked/5), 99)]++
	}
	for i, n := range windows {
		if n > 500 {
			t.Errorf("%d of 10000 clients return in the same hundredth (number %d) of the spread", n, i)
		}
	}
}

func TestDoEndsAtOnceWhenTheServiceAsksForTooLong(t *testing.T) {
	for _, tt := range []struct {
		name    string
		maxWait time.Duration
		asked   time.Duration
	}{
		{"more than a minute by default", 0, time.Minute + 1},
		{"more than the policy allows", time.Second, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, calls := time.Now(), 0
				err := riprap.Do(t.Context(), &riprap.Policy{MaxWait: tt.maxWait}, func(context.Context) error {
					calls++
					return riprap.After(tt.asked, io.ErrClosedPipe)
				})
				e := gaveUp(t, err)
				if e.Reason != riprap.ErrWait || e.Wait != tt.asked || e.Err != io.ErrClosedPipe || calls != 1 {
					t.Errorf("Do = %#v after %d calls, want ErrWait, a Wait of %v and one call", e, calls, tt.asked)
				}
				if got := time.Since(begin); got != 0 {
					t.Errorf("Do took %v, want no time", got)
				}
				if !strings.Contains(err.Error(), tt.asked.String()) {
					t.Errorf("Do's error says %q, want the wait of %v in it", err, tt.asked)
				}
			})
		})
	}
}

func TestASuccessOfDoDepositsIfItIsTheFirstAttempts(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   riprap.Policy
		failures int
		want     int
	}{
		{"without bounds", riprap.Policy{}, 0, 1},
		{"with bounds", riprap.Policy{Timeout: time.Hour}, 0, 1},
		{"with a trace", riprap.Policy{Trace: &riprap.Trace{}}, 0, 1},
		{"at the second attempt, without bounds", riprap.Policy{}, 1, -1},
		{"at the second attempt, with bounds", riprap.Policy{Timeout: time.Hour}, 1, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.policy.Budget = &riprap.Budget{Ratio: 1}
				calls := 0
				err := riprap.Do(t.Context(), &tt.policy, fails(tt.failures, &calls))
				if got := tt.policy.Budget.Left(time.Now()) - 10; got != tt.want || err != nil {
					t.Errorf("Do = %v and changes the budget by %d, want success and %d", err, got, tt.want)
				}
			})
		})
	}
}

func TestASuccessAllocatesNothing(t *testing.T) {
	for name, p := range map[string]*riprap.Policy{
		"nil policy":      nil,
		"zero policy":     {},
		"with a budget":   {Budget: &riprap.Budget{}},
		"with a parent":   {Budget: &riprap.Budget{Parent: &riprap.Budget{}}},
		"negative bounds": {Timeout: -1, AttemptTimeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if got := testing.AllocsPerRun(1000, func() { riprap.Do(ctx, p, succeed) }); got != 0 {
				t.Errorf("Do allocates %v times for a success, want 0", got)
			}
		})
	}
}

func TestABoundAllocatesNoMoreThanItsContext(t *testing.T) {
	ctx := t.Context()
	bare := testing.AllocsPerRun(1000, func() {
		bound, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		succeed(bound)
	})
	for name, p := range map[string]*riprap.Policy{
		"attempt": {AttemptTimeout: time.Hour},
		"total":   {Timeout: time.Hour},
		"both":    {AttemptTimeout: time.Hour, Timeout: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(1000, func() { riprap.Do(ctx, p, succeed) }); got > bare {
				t.Errorf("Do allocates %v times for a success, want at most the %v of context.WithTimeout", got, bare)
			}
		})
	}
}

func TestARetryAllocatesNoMoreThanItsTimer(t *testing.T) {
	ctx := t.Context()
	p := &riprap.Policy{MaxAttempts: -1, Backoff: riprap.Backoff{Base: 1, Max: 1}, Budget: &riprap.Budget{Ratio: math.Inf(1)}}
	for _, retries := range []int{1, 2, 10} {
		calls := 0
		op := func(context.Context) error {
			if calls++; calls%(retries+1) != 0 {
				return errFlaky
			}
			return nil
		}
		timer := testing.AllocsPerRun(100, func() { time.NewTimer(1).Stop() })
		if got := testing.AllocsPerRun(100, func() { riprap.Do(ctx, p, op) }); got > timer {
			t.Errorf("Do allocates %v times with %d retries, want at most the %v of one timer", got, retries, timer)
		}
	}
}
