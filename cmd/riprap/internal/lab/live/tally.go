package live

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// A tally counts while a scenario runs, in the scenario's time. It may be used by many goroutines at once.
type tally struct {
	start time.Time
	speed float64

	mu   sync.Mutex // guards what follows
	sums sim.Result
	lags []time.Duration // by which things happened too late
}

func newTally(s *sim.Scenario, speed float64) *tally {
	t := &tally{start: time.Now(), speed: speed}
	t.sums.Step = cmp.Or(s.Step, time.Second)
	t.sums.Series = make([]sim.Bin, s.Length/t.sums.Step)
	t.sums.Last = s.Length
	return t
}

// now is the time since the beginning.
func (t *tally) now() time.Duration {
	return time.Duration(float64(time.Since(t.start)) * t.speed)
}

// wait returns at the time given. It reports whether ctx let it.
func (t *tally) wait(ctx context.Context, at time.Duration) bool {
	left := time.Duration(float64(at-t.now()) / t.speed)
	if left <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// count lets add count something that happens now, in the present step. What happens after the end of the run is not
// counted.
func (t *tally) count(add func(*sim.Bin)) {
	i := int(t.now() / t.sums.Step)
	t.mu.Lock()
	defer t.mu.Unlock()
	if i < len(t.sums.Series) {
		add(&t.sums.Series[i])
	}
}

// late notes that something happens now that was due at the time given.
func (t *tally) late(due time.Duration) {
	lag := t.now() - due
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lags = append(t.lags, lag)
}

// waited notes the wait after an attempt, which is in real time.
func (t *tally) waited(attempt int, wait time.Duration) {
	wait = time.Duration(float64(wait) * t.speed)
	t.count(func(*sim.Bin) {
		for len(t.sums.Waits) < attempt {
			t.sums.Waits = append(t.sums.Waits, sim.Waits{})
		}
		t.sums.Waits[attempt-1].Add(sim.Waits{Count: 1, Sum: float64(wait)})
	})
}

// result returns what was counted, once nobody counts any more.
func (t *tally) result() *Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Result{Result: t.sums}
	r.Total()
	if n := len(t.lags); n > 0 {
		slices.Sort(t.lags)
		r.Late, r.Latest = t.lags[(n*19-1)/20], t.lags[n-1]
	}
	return r
}
