package live

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

const s = time.Second

// outage is a queue and a network that holds everything for a while and then delivers it.
func outage(rate, capacity int, cut, length time.Duration) *sim.Scenario {
	return &sim.Scenario{
		Name:     "outage",
		Arrivals: sim.Arrivals{Rate: float64(rate)},
		Timeout:  s,
		Services: []sim.Service{{Kind: sim.Queue, Work: sim.Spread{Kind: sim.Exponential, Mean: s / time.Duration(capacity)}}},
		Triggers: []sim.Trigger{{Kind: sim.Cut, From: 3 * s, For: cut}},
		Length:   length,
	}
}

var (
	atOnce = sim.Candidate{Name: "at-once", Policy: riprap.Policy{Backoff: riprap.Backoff{Base: 1, Max: 1}}}
	ours   = sim.Candidate{Name: "riprap", Budget: &sim.Budget{}}
)

// A verdict says what became of a service after its trigger.
type verdict string

const (
	recovers verdict = "recovers"
	never    verdict = "never"
	between  verdict = "neither nor"
)

// share is the part of the calls made in some steps that was answered, more or less: a few were made before or are
// answered after. It depends less on chance than a rate does.
func share(bins []sim.Bin) float64 {
	calls, good := 0, 0
	for _, b := range bins {
		calls += int(b.Calls)
		good += int(b.Good)
	}
	return float64(good) / float64(max(calls, 1))
}

// judge looks at the last third of the time after the trigger.
func judge(o *sim.Scenario, r *sim.Result) verdict {
	_, until := o.Fault()
	n := len(r.Series)
	switch end := share(r.Series[n-(n-int(until/r.Step))/3:]); {
	case end >= 0.9:
		return recovers
	case end <= 0.1:
		return never
	}
	return between
}

// predict returns the verdict of the simulator, about which all seeds must agree: close to a threshold there would be
// nothing to compare.
func predict(t *testing.T, o *sim.Scenario, c *sim.Candidate) verdict {
	t.Helper()
	all := map[verdict]int{}
	for seed := range uint64(20) {
		all[judge(o, sim.Run(t.Context(), o, c, seed))]++
	}
	if len(all) > 1 || all[between] > 0 {
		t.Fatalf("%s in 20 simulations: %v, want one verdict", c.Name, all)
	}
	for v := range all {
		return v
	}
	panic("unreachable")
}

// busy reports whether the machine was too slow for a run to tell anything. The verdicts are far apart, so that it may be
// late by what does not make an answer in time one that is late.
func busy(o *sim.Scenario, r *Result) bool { return r.Late > o.Timeout/4 || r.Latest > 2*o.Timeout }

// runAll runs the scenario with each of the candidates, at the same time. If the machine is too busy for that, it tries
// again at half the speed.
func runAll(t *testing.T, o *sim.Scenario, candidates []sim.Candidate, speed float64) []*Result {
	t.Helper()
	results := make([]*Result, len(candidates))
	for range 4 {
		errs := make([]error, len(candidates))
		var running sync.WaitGroup
		for i := range candidates {
			running.Go(func() { results[i], errs[i] = Run(t.Context(), o, &candidates[i], 1, speed) })
		}
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(results, func(r *Result) bool { return busy(o, r) }) {
			return results
		}
		for i, r := range results {
			t.Logf("%s at speed %v: 1 of 20 things happened more than %v late, and one %v, with a timeout of %v",
				candidates[i].Name, speed, r.Late, r.Latest, o.Timeout)
		}
		speed /= 2
	}
	t.Fatalf("the machine is too busy: after four tries things still happen too late for a verdict")
	return nil
}

// What the simulator says about a policy is worth something only if real servers and clients do it.
func TestOutageEndsAsSimulated(t *testing.T) {
	o := outage(10, 20, 5*s, 30*s)
	candidates := []sim.Candidate{atOnce, ours}
	want := []verdict{never, recovers}
	for i, r := range runAll(t, o, candidates, 2.5) {
		c := &candidates[i]
		simulated, lived := predict(t, o, c), judge(o, &r.Result)
		t.Logf("%s: simulated %q, live %q: %d calls, %d attempts, %d answered, %d of %d served in vain, late by %v",
			c.Name, simulated, lived, r.Calls, r.Attempts, r.Answered, r.Wasted, r.Served, r.Late)
		if simulated != want[i] {
			t.Errorf("%s: simulated verdict %q, want %q", c.Name, simulated, want[i])
		}
		if lived != simulated {
			t.Errorf("%s: live verdict %q, want %q as simulated", c.Name, lived, simulated)
		}
	}
}

func TestWhatOnlyASimulationHasIsRefused(t *testing.T) {
	for name, change := range map[string]func(*sim.Scenario, *sim.Candidate){
		"one service": func(o *sim.Scenario, _ *sim.Candidate) {
			o.Services = append([]sim.Service{{Kind: sim.Relay}}, o.Services...)
		},
		"a queue":       func(o *sim.Scenario, _ *sim.Candidate) { o.Services = []sim.Service{{Kind: sim.Crowd}} },
		"open arrivals": func(o *sim.Scenario, _ *sim.Candidate) { o.Arrivals = sim.Arrivals{Clients: 3} },
		"network":       func(o *sim.Scenario, _ *sim.Candidate) { o.Network.Mean = s },
		"a cut":         func(o *sim.Scenario, _ *sim.Candidate) { o.Triggers[0].Kind = sim.Lost },
		"no end":        func(o *sim.Scenario, _ *sim.Candidate) { o.Length = 0 },
		"riprap alone":  func(_ *sim.Scenario, c *sim.Candidate) { c.Rival = func() sim.Rival { return nil } },
	} {
		o, c := outage(10, 20, s, 9*s), ours
		change(o, &c)
		if _, err := Run(t.Context(), o, &c, 1, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Run: error %v, want one about %q", err, name)
		}
	}
}

func TestRunWithoutSpeedIsRefused(t *testing.T) {
	for _, speed := range []float64{0, -1, math.NaN()} {
		if _, err := Run(t.Context(), outage(10, 20, s, 9*s), &ours, 1, speed); err == nil {
			t.Errorf("Run at speed %v: no error, want one", speed)
		}
	}
}

// With calls in the queue, held by the network, and on their way through retries.
func TestRunLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	o := outage(20, 10, s, 100*s)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	timer := time.AfterFunc(s/2, func() { cancel(stopped) })
	defer timer.Stop()
	if r, err := Run(ctx, o, &atOnce, 1, 7); r != nil || !errors.Is(err, stopped) {
		t.Errorf("Run = %v, %v; want nil and the cause of its end, %v", r, err, stopped)
	}
	// The connections' own goroutines take a moment to see that they are closed.
	for until := time.Now().Add(10 * s); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines after the run, %d before", runtime.NumGoroutine(), before)
		}
	}
}
