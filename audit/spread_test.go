package audit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// draw returns the waits of as many runs as the audit makes, each drawn by f.
func draw(seed uint64, f func(*rand.Rand) time.Duration) []time.Duration {
	r := rand.New(rand.NewPCG(seed, 1))
	waits := make([]time.Duration, spreadRuns)
	for i := range waits {
		waits[i] = f(r)
	}
	return waits
}

func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Float64()*float64(high-low))
}

// disturbed adds what a machine adds: a little always, and to one wait in eight much more.
func disturbed(r *rand.Rand, wait time.Duration) time.Duration {
	if r.Float64() < disturbedShare {
		return wait + between(r, 0, wait)
	}
	return wait + between(r, 0, wait/25)
}

func TestSpreadTellsJitterFromNone(t *testing.T) {
	const seeds = 5000
	tests := map[string]struct {
		draw   func(*rand.Rand) time.Duration
		always Verdict // for all seeds, empty if it need not be
		never  Verdict // for none
	}{
		"full jitter":              {func(r *rand.Rand) time.Duration { return between(r, 0, time.Second) }, Pass, Fail},
		"equal jitter":             {func(r *rand.Rand) time.Duration { return between(r, 500*time.Millisecond, time.Second) }, Pass, Fail},
		"a fifth":                  {func(r *rand.Rand) time.Duration { return between(r, 900*time.Millisecond, 1100*time.Millisecond) }, "", Fail},
		"a fifth, short waits":     {func(r *rand.Rand) time.Duration { return between(r, 90*time.Millisecond, 110*time.Millisecond) }, "", Fail},
		"the same wait, disturbed": {func(r *rand.Rand) time.Duration { return disturbed(r, time.Second) }, "", Pass},
		"the same wait":            {func(r *rand.Rand) time.Duration { return time.Second + between(r, 0, 10*time.Millisecond) }, Fail, Pass},
		"the same short wait":      {func(r *rand.Rand) time.Duration { return 50*time.Millisecond + between(r, 0, 3*time.Millisecond) }, "", Pass},
		"no wait":                  {func(r *rand.Rand) time.Duration { return between(r, 0, 2*time.Millisecond) }, Fail, Pass},
		"no wait, a busy machine":  {func(r *rand.Rand) time.Duration { return between(r, time.Millisecond, 60*time.Millisecond) }, "", Pass},
		"jitter cut to whole seconds": {func(r *rand.Rand) time.Duration {
			return between(r, 0, 3*time.Second).Truncate(time.Second) + between(r, 0, 8*time.Millisecond)
		}, Fail, Pass},
		"clipped to the cap, mostly": {func(r *rand.Rand) time.Duration {
			return min(between(r, 900*time.Millisecond, 2*time.Second), time.Second)
		}, "", Pass},
		"decorrelated":                  {func(r *rand.Rand) time.Duration { return between(r, 100*time.Millisecond, 300*time.Millisecond) }, Pass, Fail},
		"full jitter over five seconds": {func(r *rand.Rand) time.Duration { return between(r, 0, 5*time.Second) }, Pass, Fail},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			count := map[Verdict]int{}
			for seed := range uint64(seeds) {
				count[spreadOf(draw(seed, tt.draw)).verdict(alpha)]++
			}
			if tt.always != "" && count[tt.always] != seeds {
				t.Errorf("verdicts of %d draws: %v, want %s always", seeds, count, tt.always)
			}
			if count[tt.never] > 0 {
				t.Errorf("verdicts of %d draws: %v, want %s never", seeds, count, tt.never)
			}
		})
	}
}

func TestTheLevelOfTheSpreadTestIsKept(t *testing.T) {
	// The verdict depends on counts only, so that its error is a sum over them and needs no simulation.
	for n := 2; n <= 64; n++ {
		wrong := 0.0
		for out := range n + 1 { // waits out of the fullest window, when only the disturbed fall out of it
			s := spread{n: n, mean: time.Second, window: 50 * time.Millisecond, densest: n - out, inThree: 0}
			if s.verdict(alpha) == Pass {
				wrong += exactly(out, n, disturbedShare)
			}
		}
		if wrong > alpha {
			t.Errorf("%d waits without jitter, an eighth disturbed: pass with probability %g, want %g at most", n, wrong, alpha)
		}
	}
}

func TestThirtyTwoRunsAreEnoughToTell(t *testing.T) {
	verdict := func(densest int) Verdict {
		return spread{n: spreadRuns, mean: time.Second, window: 50 * time.Millisecond, densest: densest, inThree: 0}.verdict(alpha)
	}
	if got := verdict(16); got != Pass {
		t.Errorf("16 of 32 waits together: %s, want pass", got)
	}
	if got := verdict(24); got != Fail {
		t.Errorf("24 of 32 waits together: %s, want fail", got)
	}
	if got := verdict(20); got != Inconclusive {
		t.Errorf("20 of 32 waits together: %s, want inconclusive", got)
	}
}

func TestFewWaitsTellNothing(t *testing.T) {
	for n := range 6 {
		for _, most := range []time.Duration{time.Second, 2 * time.Millisecond} {
			waits := draw(1, func(r *rand.Rand) time.Duration { return between(r, 0, most) })[:n]
			if got := spreadOf(waits).verdict(alpha); got != Inconclusive {
				t.Errorf("%d waits of up to %v: %s, want inconclusive", n, most, got)
			}
		}
	}
}

func TestAtLeastIsTheTailOfTheBinomial(t *testing.T) {
	for _, p := range []float64{0.01, 0.125, 0.25, 0.5, 0.9} {
		for n := range 40 {
			for k := range n + 2 {
				want := 0.0
				for i := k; i <= n; i++ {
					want += exactly(i, n, p)
				}
				if got := atLeast(k, n, p); math.Abs(got-want) > 1e-9 {
					t.Fatalf("atLeast(%d, %d, %v) = %g, want %g", k, n, p, got, want)
				}
			}
		}
	}
}

// exactly is the probability of k events of n, by products.
func exactly(k, n int, p float64) float64 {
	result := 1.0
	for i := range k {
		result *= float64(n-i) / float64(i+1) * p
	}
	for range n - k {
		result *= 1 - p
	}
	return result
}

func TestTheFullestWindowHoldsTheMost(t *testing.T) {
	for seed := range uint64(200) {
		waits := slices.Sorted(slices.Values(draw(seed, func(r *rand.Rand) time.Duration { return between(r, 0, time.Second) })))
		const width = 70 * time.Millisecond
		want := 0
		for i := range waits {
			n := 0
			for _, w := range waits[i:] {
				if w-waits[i] <= width {
					n++
				}
			}
			want = max(want, n)
		}
		count, at := fullest(waits, width)
		if count != want || waits[at+count-1]-waits[at] > width {
			t.Fatalf("fullest(%v, %v) = %d at %d, want %d", waits, width, count, at, want)
		}
	}
}

func TestFullJitterThatDoesNotGrowSeldomPassesForGrowth(t *testing.T) {
	const seeds = 5000
	passed := map[float64]int{}
	for _, growth := range []float64{1, 2} {
		for seed := range uint64(seeds) {
			first := draw(2*seed, func(r *rand.Rand) time.Duration { return between(r, 0, time.Second) })
			last := draw(2*seed+1, func(r *rand.Rand) time.Duration { return between(r, 0, time.Duration(growth*float64(time.Second))) })
			if float64(quantile(last, growthQuantile)) >= growthLeast*float64(quantile(first, growthQuantile)) {
				passed[growth]++
			}
		}
	}
	if passed[1] > seeds/200 || passed[2] < seeds*95/100 {
		t.Errorf("of %d clients %d passed whose waits do not grow, and %d whose waits double", seeds, passed[1], passed[2])
	}
}
