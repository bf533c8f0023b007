package riprap_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

var errShutdown = errors.New("the process shuts down")

func TestDoDoesNotCallOpWhenTheCallerIsGoneBefore(t *testing.T) {
	for name, p := range map[string]*riprap.Policy{
		"nil policy":    nil,
		"with bounds":   {Timeout: time.Hour, AttemptTimeout: time.Minute},
		"with a budget": {Budget: &riprap.Budget{}},
		"with a trace":  {Trace: &riprap.Trace{}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errShutdown)
			calls := 0
			err := riprap.Do(ctx, p, fails(0, &calls))
			if calls != 0 {
				t.Errorf("Do called op %d times, want 0", calls)
			}
			if !errors.Is(err, context.Canceled) || !errors.Is(err, errShutdown) {
				t.Errorf("Do = %v, want context.Canceled and its cause", err)
			}
			if e := gaveUp(t, err); e.Attempts != 0 || e.Err != nil {
				t.Errorf("Do = %#v, want no attempt and no failure", e)
			}
			want := "gave up after 0 attempts: context canceled: the process shuts down"
			if err.Error() != want {
				t.Errorf("Do's error says %q, want %q", err, want)
			}
		})
	}
}

func TestDoValueReturnsTheZeroValueWhenTheCallerIsGoneBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := riprap.DoValue(ctx, nil, func(context.Context) (int, error) { return 7, nil })
	if got != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("DoValue = %d, %v, want 0 and context.Canceled", got, err)
	}
}

func TestACancelDuringAWaitReturnsAtOnceWithBothErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &riprap.Budget{Reserve: 2000}
		p := &riprap.Policy{MaxWait: -1, Budget: budget}
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		var calls sync.WaitGroup
		for range 1000 {
			calls.Go(func() {
				attempts := 0
				err := riprap.Do(ctx, p, func(context.Context) error {
					attempts++
					return riprap.After(time.Hour, errFlaky)
				})
				if got := time.Since(begin); got != 50*time.Millisecond {
					t.Errorf("Do returned after %v, want 50ms", got)
				}
				for _, want := range []error{errFlaky, context.Canceled, errShutdown} {
					if !errors.Is(err, want) {
						t.Errorf("Do = %v, want it to be %v too", err, want)
					}
				}
				if e := gaveUp(t, err); attempts != 1 || e.Attempts != 1 || e.Err != errFlaky || e.Wait != time.Hour {
					t.Errorf("Do = %#v after %d attempts, want one attempt, its failure and the wait of 1h", e, attempts)
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		if got := budget.Left(time.Now()); got != 1000 {
			t.Errorf("during the waits Left = %d, want 1000: the retries are held", got)
		}
		cancel(errShutdown)
		calls.Wait()
		if got := budget.Left(time.Now()); got != 2000 {
			t.Errorf("after the cancel Left = %d, want 2000: the retries went back", got)
		}
	})
}

func TestACauseThatSaysAsMuchIsNotRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := riprap.Do(ctx, nil, succeed)
	if e := gaveUp(t, err); e.Reason != context.Canceled {
		t.Errorf("Do's reason is %#v, want context.Canceled itself", e.Reason)
	}
}

// A tardy context is cancelled while somebody sets out to wait for it, for so long that every timer has fired.
type tardy struct {
	context.Context
	cancel func()
}

func (c tardy) Done() <-chan struct{} {
	time.Sleep(time.Hour)
	c.cancel()
	return c.Context.Done()
}

func TestNoAttemptFollowsACancelThatComesWithTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := riprap.Do(tardy{ctx, cancel}, nil, fails(1, &calls))
			if calls != 1 || !errors.Is(err, context.Canceled) {
				t.Fatalf("Do called op %d times and returned %v, want one call and context.Canceled", calls, err)
			}
		}
	})
}

func TestACancelDuringAnAttemptIsAskedOfTheCallersContext(t *testing.T) {
	for name, p := range map[string]*riprap.Policy{
		"without bounds": {},
		"with bounds":    {Timeout: time.Hour, AttemptTimeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := riprap.Do(ctx, p, func(context.Context) error {
				calls++
				cancel()
				return errFlaky // says nothing of the cancel
			})
			if calls != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, errFlaky) {
				t.Errorf("Do = %v after %d calls, want one call, context.Canceled and the failure", err, calls)
			}
		})
	}
}

func TestACanceledErrorOfAnAttemptIsNotTheCallersCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := riprap.Do(t.Context(), nil, func(context.Context) error {
			if calls++; calls == 1 {
				return context.Canceled // the service's own
			}
			return nil
		})
		if err != nil || calls != 2 {
			t.Errorf("Do = %v after %d calls, want a success at the second", err, calls)
		}
	})
}

func TestASuccessIsASuccessAlsoForACallerThatIsGone(t *testing.T) {
	for name, p := range map[string]*riprap.Policy{
		"without bounds": nil,
		"with bounds":    {Timeout: time.Hour},
		"with a trace":   {Trace: &riprap.Trace{}},
	} {
		for attempt := 1; attempt <= 2; attempt++ { // the one that succeeds
			t.Run(fmt.Sprint(name, ", attempt ", attempt), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					calls := 0
					err := riprap.Do(ctx, p, func(context.Context) error {
						if calls++; calls < attempt {
							return errFlaky
						}
						cancel()
						return nil
					})
					if err != nil {
						t.Errorf("Do = %v, want nil", err)
					}
				})
			})
		}
	}
}
