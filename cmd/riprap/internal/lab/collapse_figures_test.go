package lab

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// The collapse is that of a simulator by Marc Brooker (simple_collapse_sim, 2022): a service that is the slower the more it
// does, and calls that double for five seconds. The figures are those of 300 runs of its model of 200 s each, and where all
// of them agree there is no deviation.
var collapseFigures = []struct {
	policy        string
	recovered     float64 // share of the runs
	goodput       float64 // answers a second between the seconds 60 and 80
	amplification float64
}{
	{"no-retries", 1, 40, 1},
	{"at-once", 0.28, 11.4, 2.21},
	{"jitter-20s", 1, 40.1, 1.02},
	{"jitter-2s", 0.46, 18.3, 1.91},
	{"success-bucket", 1, 39.9, 1},
	{"call-bucket-20", 1, 40.1, 1.02},
	{"cancels", 0.30, 11.9, 2.19},
}

// collapseTable simulates until so many seconds: few runs where all should agree, and many where they should not.
func collapseTable(t *testing.T, until, few, many int) {
	t.Helper()
	const published = 300
	for _, f := range collapseFigures {
		q := known(t, "collapse")
		q.study.Length = time.Duration(until) * time.Second
		seeds := few
		if f.recovered < 1 {
			seeds = many
		}
		all := results(t, &q.study.Scenario, q.policy(t, f.policy), seeds)

		// A run recovers or does not, which is all that makes runs differ by much.
		split := math.Sqrt(f.recovered * (1 - f.recovered))
		finding{mean: f.recovered, sd: split, runs: published, rounded: 0.005}.check(t, f.policy+": share of the runs that recover",
			sampled(all, func(r *sim.Result) float64 {
				if untrapped(r, 40) {
					return 1
				}
				return 0
			}))
		// Where it does, answers come as calls do, at random.
		sd := 40*split + math.Sqrt(40.0/20)
		finding{mean: f.goodput, sd: sd, runs: published, rounded: 0.05}.check(t, f.policy+": answers a second from 60 s to 80 s",
			sampled(all, func(r *sim.Result) float64 { return rate(r.Series[60:80], good) }))
		if until < 200 {
			continue // a storm adds attempts for as long as it lasts
		}
		sd = 1.7*split + 0.01
		finding{mean: f.amplification, sd: sd, runs: published, rounded: 0.005}.check(t, f.policy+": attempts for each call",
			sampled(all, func(r *sim.Result) float64 { return share(r.Attempts, r.Calls) }))
	}
}

// untrapped reports whether there are answers at the end. In a run that is trapped there are none, so that half of the
// usual tells them apart, and no chance of a few answers more or less does.
func untrapped(r *sim.Result, usual float64) bool {
	return rate(r.Series[len(r.Series)-20:], good) > usual/2
}

func TestCollapseTrapsAsManyRunsAsPublished(t *testing.T) {
	t.Parallel()
	collapseTable(t, 80, 4, 32)
}

func TestSoakCollapseTrapsAsManyRunsAsPublished(t *testing.T) {
	soak(t)
	collapseTable(t, 200, 40, 200)
}

// Calls that rise to twice as many, and fall again over as long a time, trap every run that has no budget: long waits only
// put the retries off.
func ramps(t *testing.T, seeds int) {
	t.Helper()
	for policy, want := range map[string]bool{"at-once": false, "jitter-20s": false, "no-retries": true, "success-bucket": true} {
		q := known(t, "ramp")
		q.study.Length = 100 * time.Second
		for i, r := range results(t, &q.study.Scenario, q.policy(t, policy), seeds) {
			if got := untrapped(r, 40); got != want {
				t.Errorf("%s, seed %d: recovered = %v, want %v", policy, i+1, got, want)
			}
			for from, want := range map[int]float64{0: 48, 20: 76, 40: 48} { // 80 - 1.6·|t - 25| on average over ten seconds
				theory(want, math.Sqrt(want/10)).check(t, fmt.Sprintf("%s, seed %d: calls a second from %d s on", policy, i+1, from),
					sample{rate(r.Series[from:from+10], func(b *sim.Bin) int { return b.Calls })})
			}
			// The published runs have no answer from 25 s to 75 s; ours need a moment more until there is none.
			if answers := rate(r.Series[35:75], good); !want && answers > 0.5 {
				t.Errorf("%s, seed %d: %.1f answers a second from 35 s to 75 s, want nearly none", policy, i+1, answers)
			}
		}
	}
}

func TestRampTrapsEveryRunWithoutABudget(t *testing.T) {
	t.Parallel()
	ramps(t, 3)
}

func TestSoakRampTrapsEveryRunWithoutABudget(t *testing.T) {
	soak(t)
	ramps(t, 40)
}

// With three attempts for each call the service bears a third of the 64/s that it can answer within three seconds.
func TestSoakCollapseBelowAThirdOfTheCapacityIsNone(t *testing.T) {
	soak(t)
	for load, want := range map[float64]int{22: 60, 26: 0} {
		q := known(t, "collapse")
		q.study.Arrivals.Rate = load
		q.study.Triggers[0].Factor = 100 / load
		got := 0
		for _, r := range results(t, &q.study.Scenario, q.policy(t, "at-once"), 60) {
			if untrapped(r, load) {
				got++
			}
		}
		if got != want {
			t.Errorf("at %v/s %d of 60 runs recovered from five seconds with 100/s, want %d", load, got, want)
		}
	}
}
