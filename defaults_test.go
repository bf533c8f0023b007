package riprap_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// A candidate is a choice of the two figures that decide what a retry can ride out. The zero candidate is the
// default.
type candidate struct {
	attempts int
	base     time.Duration
}

// calls makes 1000 calls a second to a service that has been well for longer than a budget's window and goes down for
// so long, and hands over what became of each. They come until the instant given.
func (c candidate) calls(w *world, budget bool, outage, until time.Duration, over func(*call)) {
	cl := &client{world: w, policy: riprap.Policy{
		MaxAttempts: c.attempts,
		Backoff:     riprap.Backoff{Base: c.base},
		Rand:        w.random.Float64,
	}}
	if budget {
		cl.policy.Budget = &riprap.Budget{}
	} else {
		w.now = outageBegins // what was before leaves no trace
	}
	s := w.failing(between(outageBegins, outageBegins+outage))
	w.poisson(1000, until, func() { cl.call(s, over) })
	w.run(time.Hour)
}

const outageBegins = 12 * time.Second

// rideOut returns the share of the calls whose first attempt fell into an outage that were answered in the end.
func (c candidate) rideOut(w *world, budget bool, outage time.Duration) float64 {
	var rescued share
	until := outageBegins + outage
	if budget {
		until += 5 * time.Second // what comes afterwards deposits again
	}
	c.calls(w, budget, outage, until, func(c *call) {
		if c.firstFailed() {
			rescued.count(c.err == nil)
		}
	})
	return rescued.value()
}

// wasted returns the waits, mean and 99th percentile, of the calls that come in the first ten seconds of an outage
// without an end: what the retries cost a caller who gets an error anyway.
func (c candidate) wasted(w *world, budget bool) (mean, p99 time.Duration) {
	var waits []time.Duration
	c.calls(w, budget, time.Hour, outageBegins+10*time.Second, func(c *call) {
		if c.err != nil {
			waits = append(waits, c.waits)
			mean += c.waits
		}
	})
	slices.Sort(waits)
	return mean / time.Duration(len(waits)), waits[len(waits)*99/100]
}

// An outcome is what a candidate came to.
type outcome struct {
	candidate
	rescued   [3]float64
	mean, p99 time.Duration
}

var outages = [3]time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second}

func (c candidate) outcome(budget bool) outcome {
	o := outcome{candidate: c}
	const worlds = 2
	for i, d := range outages {
		for seed := range uint64(worlds) {
			o.rescued[i] += c.rideOut(newWorld(seed), budget, d) / worlds
		}
	}
	o.mean, o.p99 = c.wasted(newWorld(0), budget)
	return o
}

// outcomes holds those of all candidates, without a budget and with one.
var outcomes = sync.OnceValue(func() (all [][2]outcome) {
	for _, attempts := range []int{3, 4, 5} {
		for _, ms := range []time.Duration{50, 100, 250, 500, 1000, 2000} {
			c := candidate{attempts, ms * time.Millisecond}
			all = append(all, [2]outcome{c.outcome(false), c.outcome(true)})
		}
	}
	return all
})

// The zero Policy is one of the candidates, the one that the page chooses.
func TestZeroPolicyIsTheCandidateChosen(t *testing.T) {
	chosen := candidate{4, 500 * time.Millisecond}
	for _, budget := range []bool{false, true} {
		got, want := candidate{}.outcome(budget), chosen.outcome(budget)
		if got.candidate = chosen; got != want {
			t.Errorf("the zero Policy came to %+v, want %+v", got, want)
		}
	}
}

func TestDefaultsRideOutASecondAndATutorialsBaseDoesNot(t *testing.T) {
	const worlds = 10
	for _, tc := range []struct {
		candidate
		budget      bool
		least, most float64
	}{
		{candidate{}, true, 0.84, 0.90},
		{candidate{}, false, 0.94, 0.98},
		{candidate{3, 100 * time.Millisecond}, true, 0.07, 0.13},
		{candidate{4, 100 * time.Millisecond}, true, 0, 0.04},
	} {
		var rescued sample
		for seed := range uint64(worlds) {
			rescued = append(rescued, tc.rideOut(newWorld(100+seed), tc.budget, time.Second))
		}
		if got, slack := rescued.mean(), 4*rescued.err(); got < tc.least-slack || got > tc.most+slack {
			t.Errorf("%d attempts from %v, budget %v: rescued %.3f ± %.3f of a second's calls, want %.2f to %.2f",
				tc.attempts, tc.base, tc.budget, got, rescued.err(), tc.least, tc.most)
		}
	}
}

func TestDefaultsTable(t *testing.T) {
	head := []string{"attempts, base", "0.3 s", "1 s", "2 s", "waits: mean", "99 %"}
	tables := [2][][]string{{head}, {head}}
	for _, o := range outcomes() {
		for i := range tables {
			row := []string{fmt.Sprintf("%d, %v", o[i].attempts, o[i].base)}
			for _, share := range o[i].rescued {
				row = append(row, fmt.Sprintf("%.0f %%", 100*share))
			}
			for _, d := range []time.Duration{o[i].mean, o[i].p99} {
				row = append(row, fmt.Sprintf("%.2f s", d.Seconds()))
			}
			tables[i] = append(tables[i], row)
		}
	}
	checkTable(t, "defaults.md", "no budget", tables[0])
	checkTable(t, "defaults.md", "budget", tables[1])
}
