package live

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// healthyAfter is how long it takes from the end of the trigger until, for ten steps, calls are answered as they come. It is negative if that never happens.
func healthyAfter(o *sim.Scenario, r *sim.Result) time.Duration {
	_, until := o.Fault()
	first := int(until / r.Step)
	for i := first; i+10 <= len(r.Series); i++ {
		if share(r.Series[i:i+10]) >= 0.95 {
			return time.Duration(i-first) * r.Step
		}
	}
	return -s
}

// More candidates, a bigger service, nearer to what it can do: the verdicts agree, and where the service recovers, it
// takes as long as in one simulation or another, give or take a quarter and two seconds.
func TestSoakLiveOutagesEndAsSimulated(t *testing.T) {
	if os.Getenv("RIPRAP_SOAK") == "" {
		t.Skip("a long test: run make soak")
	}
	o := outage(28, 40, 10*s, 90*s)
	served := func(name string, a sim.Admission) sim.Candidate {
		return sim.Candidate{Name: name, Policy: atOnce.Policy, Admission: &a}
	}
	twice := sim.Candidate{Name: "at-once-2", Policy: atOnce.Policy}
	twice.Policy.MaxAttempts = 2
	candidates := []sim.Candidate{
		{Name: "no-retries", Policy: riprap.Policy{MaxAttempts: 1}},
		twice,
		atOnce,
		{Name: "jitter-1s", Policy: riprap.Policy{Backoff: riprap.Backoff{Base: s, Max: 20 * s}}},
		ours,
		{Name: "riprap-deadline", Budget: &sim.Budget{}, Admission: &sim.Admission{Drop: true, Margin: 150 * ms}},
		served("drop-margin", sim.Admission{Drop: true, Margin: 150 * ms}),
		served("room-20", sim.Admission{Room: 20}),
		served("room-80", sim.Admission{Room: 80}),
		served("lifo", sim.Admission{LIFO: true}),
	}
	t.Logf("%-16s %-9s %-9s %-26s %s   %s", "", "simulated", "live", "healthy after (-1s: never)", "live", "attempts/call simulated, live")
	for pair := range slices.Chunk(candidates, 2) {
		for i, r := range runAll(t, o, pair, 2.5) {
			compare(t, o, &pair[i], &r.Result)
		}
	}
}

// compare checks a live run of a candidate against simulations.
func compare(t *testing.T, o *sim.Scenario, c *sim.Candidate, r *sim.Result) {
	var after []time.Duration
	var calls, attempts int
	for seed := range uint64(40) {
		simulated := sim.Run(t.Context(), o, c, seed)
		after = append(after, healthyAfter(o, simulated))
		calls += simulated.Calls
		attempts += simulated.Attempts
	}
	least, most := slices.Min(after), slices.Max(after)
	want, got, took := predict(t, o, c), judge(o, r), healthyAfter(o, r)
	t.Logf("%-16s %-9s %-9s %11v to %9v %6v   %.2f %.2f", c.Name, want, got, least, most, took,
		ratio(attempts, calls), ratio(r.Attempts, r.Calls))
	if got != want {
		t.Errorf("%s: live verdict %q, want %q as simulated", c.Name, got, want)
	}
	if want == recovers && (took < 0 || took < least-least/4-2*s || took > most+most/4+2*s) {
		t.Errorf("%s: healthy %v after the cut, want about as simulated, %v to %v", c.Name, took, least, most)
	}
}

func ratio(a, b int) float64 { return float64(a) / float64(max(b, 1)) }
