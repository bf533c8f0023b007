package lab

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// Retries of one layer are calls to the next: k attempts at each of n layers are k to the power n at the last service. The
// example of "Site Reliability Engineering" (Beyer and others, 2016, chapter 22) is 4 to the power 3.
func TestLayersMultiplyTheirAttempts(t *testing.T) {
	t.Parallel()
	for _, layers := range []int{1, 2, 3} {
		for policy, k := range map[string]int{"no-retries": 1, "at-once-3": 3, "at-once": 4} {
			q := known(t, "layers")
			setLayers(t, q, layers)
			q.study.Length = 125 * time.Second // a little more than until C is back
			want := math.Pow(float64(k), float64(layers))
			for i, r := range results(t, &q.study.Scenario, q.policy(t, policy), 1) {
				if got := r.Recovery.During; got != want {
					t.Errorf("%d layers, %s, seed %d: %.4f attempts at the last service for each call while it is down, want %v", layers, policy, i+1, got, want)
				}
			}
		}
	}
}

func setLayers(t *testing.T, q *request, n int) {
	t.Helper()
	for _, a := range axes {
		if a.name == "layers" {
			if err := a.set(&q.study.Scenario, float64(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLayersOfRiprapDoNotMultiply(t *testing.T) {
	t.Parallel()
	q := known(t, "layers")
	for i, r := range results(t, &q.study.Scenario, q.policy(t, "riprap"), 6) {
		if got := r.Recovery.During; got < 1 || got > 1.2 {
			t.Errorf("seed %d: %.3f attempts at C for each call while it is down, want 1 to 1.2", i+1, got)
		}
	}
}

// The example of the same chapter: 1000 threads, 1000 calls a second of 100 ms each, and 5 % that take 100 s. A thread is
// held for 5.095 s on average, so that 196 calls a second find one.
func threads(t *testing.T, cycles, seeds int) {
	t.Helper()
	const hold = 0.05*100 + 0.95*0.1
	if got := fmt.Sprintf("%.1f %%", 100/hold); got != "19.6 %" {
		t.Errorf("1000 threads of %v s each for 1000 calls/s = %s, want 19.6 %%", hold, got)
	}

	// Those that hang together are freed together, and a thread takes 5.095 s / 0.05 from one to the next. Whole cycles
	// are what the formula is about. How many calls there are for so many that hang is a matter of chance.
	q := known(t, "threads")
	const quiet = 90 // seconds, in which few threads are freed
	until := quiet + int(math.Round(float64(cycles)*hold/0.05))
	q.study.Length = time.Duration(until+1) * time.Second
	admitted := sampled(results(t, &q.study.Scenario, q.policy(t, "100s"), seeds), func(r *sim.Result) float64 {
		bins := r.Series[quiet:until]
		refused := rate(bins, func(b *sim.Bin) int { return b.Refused })
		return 1 - refused/rate(bins, func(b *sim.Bin) int { return b.Reached })
	})
	theory(1/hold, 1/hold*math.Sqrt(0.95/float64(1000*cycles))).check(t, "share of the calls that find a thread", admitted)
}

func TestThreadsAdmitTheShareOfTheFormula(t *testing.T) {
	t.Parallel()
	threads(t, 3, 1)
}

func TestSoakThreadsAdmitTheShareOfTheFormula(t *testing.T) {
	soak(t)
	threads(t, 10, 8)
}

// With a deadline of a second those that hang hold a thread no longer than that, and there are threads for all.
func TestThreadsAreEnoughUnderAShortDeadline(t *testing.T) {
	t.Parallel()
	q := known(t, "threads")
	q.study.Length = 60 * time.Second
	for _, s := range simulate(t.Context(), []trial{
		{&q.study.Scenario, q.policy(t, "1s")},
		{&q.study.Scenario, q.policy(t, "riprap-1s")},
	}, 1, 1, func() {}) {
		if got := s.admitted.mean(); got < 0.9999 {
			t.Errorf("%s: share of the attempts that find a thread = %.4f, want all", s.candidate.Name, got)
		}
	}
}
