package riprap_test

import (
	"math"
	"sort"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// weather is a service whose chance to fail changes every seven seconds.
func weather(w *world) service {
	chances := map[time.Duration]float64{}
	return w.failing(func(now time.Duration) float64 {
		spell := now / (7 * time.Second)
		if _, ok := chances[spell]; !ok {
			chances[spell] = []float64{0, 0, 0.05, 0.2, 0.5, 1}[w.random.IntN(6)]
		}
		return chances[spell]
	})
}

// In whatever interval, the retries are at most the reserve, and what the calls of the interval and of one window
// before it deposited.
func TestRetriesStayWithinReserveAndDeposits(t *testing.T) {
	for name, tc := range map[string]struct {
		budget           *riprap.Budget
		ratio            float64
		reserve          int
		window, perRetry time.Duration
	}{
		"zero":       {&riprap.Budget{}, 0.2, 10, 10 * time.Second, 6 * time.Minute},
		"short":      {&riprap.Budget{Ratio: 0.5, Reserve: 3, Window: 2 * time.Second}, 0.5, 3, 2 * time.Second, 20 * time.Minute},
		"no reserve": {&riprap.Budget{Ratio: 0.1, Reserve: -1}, 0.1, 0, 10 * time.Second, math.MaxInt64},
		"no deposit": {&riprap.Budget{Ratio: -1, Reserve: 60}, 0, 60, 10 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			c := &client{world: w, policy: riprap.Policy{Budget: tc.budget, Rand: w.random.Float64}}
			var deposits, retries []time.Duration
			c.retry = func() { retries = append(retries, w.now) }
			s := weather(w)
			w.poisson(30, 10*time.Minute, func() {
				c.call(s, func(c *call) {
					if !c.firstFailed() {
						deposits = append(deposits, w.now)
					}
				})
			})
			w.run(time.Hour)
			if len(retries) < 50 {
				t.Fatalf("%d retries, want enough to see", len(retries))
			}

			until := make([]int, len(retries)) // deposits until then
			for i, at := range retries {
				until[i] = sort.Search(len(deposits), func(j int) bool { return deposits[j] > at })
			}
			least := math.Inf(1)
			for i, from := range retries {
				before := sort.Search(len(deposits), func(j int) bool { return deposits[j] >= from-tc.window })
				for j := i; j < len(retries); j++ {
					// A retry may have been complete but for a fraction, and the reserve fills with time.
					limit := float64(tc.reserve) + tc.ratio*float64(until[j]-before) + 1 + float64(retries[j]-from)/float64(tc.perRetry)
					if n := j - i + 1; float64(n) > limit {
						t.Fatalf("%d retries from %v to %v, want at most %.1f", n, from, retries[j], limit)
					} else {
						least = min(least, limit-float64(n))
					}
				}
			}
			// The limit is not far off: there are intervals in which all that is allowed happens.
			if least > 5 {
				t.Errorf("never fewer than %.1f retries below the limit: it says nothing", least)
			}
		})
	}
}

// A budget whose retries are all granted and then cancelled has as many left as one that nobody asked.
func TestCancelledWaitsLoseNothing(t *testing.T) {
	w := newWorld(1)
	used := &client{world: w, policy: riprap.Policy{Budget: &riprap.Budget{}, Rand: w.random.Float64}}
	idle := &client{world: w, policy: riprap.Policy{Budget: &riprap.Budget{}, Rand: w.random.Float64}}
	answer := func(_ int, ended func(error)) { ended(nil) }

	waiting, cancelled, compared := 0, 0, 0
	cancel := func(o *riprap.Operation) {
		o.Cancel(errDown, errDown)
		waiting--
		cancelled++
		if waiting > 0 {
			return
		}
		compared++
		if got, want := used.policy.Budget.Left(w.time()), idle.policy.Budget.Left(w.time()); got != want {
			t.Errorf("after %v: %d left, want %d as without the %d cancelled waits", w.now, got, want, cancelled)
		}
	}
	const until, longest = 5 * time.Minute, 300 * time.Millisecond
	busy := func(at time.Duration) bool { return at%(40*time.Second) < 20*time.Second }
	w.poisson(50, until, func() { // both get the same deposits, with lulls in which all but the reserve expires
		if busy(w.now) {
			used.call(answer, func(*call) {})
			idle.call(answer, func(*call) {})
		}
	})
	w.poisson(5, until, func() {
		o := &riprap.Operation{Policy: &used.policy}
		o.Begin(w.time())
		if used.policy.Budget.Left(w.time()) <= 10 && (busy(w.now) || busy(w.now+longest)) {
			return // a deposit may fill the reserve meanwhile, so that what left it finds no room to go back to
		}
		if wait, _ := o.Next(w.time(), errDown); wait > 0 {
			waiting++
			w.after(time.Duration(w.random.Int64N(int64(longest))), func() { cancel(o) })
		}
	})
	w.run(time.Hour)
	if compared < 100 {
		t.Errorf("compared %d times, want more", compared)
	}
}

// bursts returns the retries of each second of a brownout, of twenty processes that began together.
func bursts(r regime) []int {
	const seconds = 120
	w := newWorld(1)
	counts := make([]int, seconds)
	budget := r(false)
	p := &process{w, func(dest int, c *client) {
		budget(dest, c)
		c.retry = func() {
			if second := w.now / time.Second; second < seconds {
				counts[second]++
			}
		}
	}, map[int]*client{}}
	p.load(1000, seconds*time.Second, 20, every(w.failing(always(0.5))), func(int, *call) {})
	return counts
}

// rhythm returns the strongest autocorrelation of a series and its lag.
func rhythm(series []int) (strongest float64, lag int) {
	mean := 0.0
	for _, x := range series {
		mean += float64(x) / float64(len(series))
	}
	product := func(lag int) (sum float64) {
		for i := range len(series) - lag {
			sum += (float64(series[i]) - mean) * (float64(series[i+lag]) - mean)
		}
		return sum
	}
	for l := 2; l <= 30; l++ {
		if r := product(l) / product(0); r > strongest {
			strongest, lag = r, l
		}
	}
	return strongest, lag
}

// A budget that gives back all at once makes its clients return together, all processes at the same moment.
func TestRetriesHaveNoRhythm(t *testing.T) {
	counts := bursts(budgets(zeroBudget))[1:] // in the first second the reserves go
	// Of 1000 calls a second a half succeeds at once, and each fifth of them pays for a retry.
	const want = 100
	for second, n := range counts {
		if math.Abs(float64(n-want)) > 5*math.Sqrt(want) {
			t.Errorf("second %d: %d retries, want about %d", second+1, n, want)
		}
	}
	// Of 29 lags in noise one may well reach three times the spread of 1/√n.
	limit := 4 / math.Sqrt(float64(len(counts)))
	if r, lag := rhythm(counts); r > limit {
		t.Errorf("the retries repeat every %d s (correlation %.2f, want at most %.2f)", lag, r, limit)
	}
	// The test can see a rhythm: a sliding window that forgets its withdrawals all at once has that of the window.
	if r, lag := rhythm(bursts(floors10)); r <= limit || lag != 10 {
		t.Errorf("a floor: the strongest rhythm is %d s with a correlation of %.2f, want 10 s above %.2f", lag, r, limit)
	}
}

// floors10 is ten retries a second for each process.
func floors10(bool) func(int, *client) {
	return func(_ int, c *client) { c.floor = &floor{perSecond: 10} }
}
