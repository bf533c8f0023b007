package lab

import (
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// oneWorld runs a candidate of a scenario, changed by with.
func oneWorld(t *testing.T, scenario, candidate string, with func(*sim.Scenario)) *sim.Result {
	t.Helper()
	for i := range studies {
		if studies[i].Name != scenario {
			continue
		}
		s := studies[i].Scenario
		with(&s)
		for _, c := range studies[i].candidates {
			if c.Name == candidate {
				return sim.Run(t.Context(), &s, &c, 1)
			}
		}
	}
	t.Fatalf("there is no %s in the scenario %s", candidate, scenario)
	return nil
}

func TestBudgetsByTheMinuteBurstTogether(t *testing.T) {
	bursts := func(candidate string) (share float64) {
		r := oneWorld(t, "outage", candidate, func(s *sim.Scenario) { s.Processes, s.Length = 20, 300*time.Second })
		first, all := 0, 0
		for i, b := range r.Series[120:] { // two minutes on, the network is back for long
			if all += int(b.Retries); i%60 < 5 {
				first += int(b.Retries)
			}
		}
		return float64(first) / float64(max(all, 1))
	}
	if got := bursts("periodic"); got < 0.95 {
		t.Errorf("20 processes with 60 retries a minute each: got %.2f of the retries in the first 5 s of a minute, want nearly all", got)
	}
	if got := bursts("finagle"); got > 0.5 {
		t.Errorf("20 processes whose deposits expire one by one: got %.2f of the retries in the first 5 s of a minute, want no rhythm of minutes", got)
	}
}

func TestJitterThatIsAddedAndClippedIsAsSlowAsNone(t *testing.T) {
	took := func(candidate string) float64 {
		return oneWorld(t, "contention", candidate, func(*sim.Scenario) {}).Last.Seconds()
	}
	none, added, full := took("exponential"), took("added"), took("full")
	if added < none/2 || added < 5*full {
		t.Errorf("100 clients: got %.1f s with jitter added and clipped, %.1f s without, %.1f s with full jitter; want about the first two alike",
			added, none, full)
	}
}

func TestCircuitBreakerAnswersLessThanNoRetriesWhereHalfFails(t *testing.T) {
	answered := func(candidate string) float64 {
		r := oneWorld(t, "flaky", candidate, func(s *sim.Scenario) {
			s.Services = []sim.Service{{Kind: sim.Coin, Fails: 0.5}}
			s.Length = 60 * time.Second
		})
		return share(r.Answered, r.Answered+r.GaveUp)
	}
	breaker, never, ours := answered("circuit-breaker"), answered("no-retries"), answered("riprap")
	if breaker > never/2 || ours < never {
		t.Errorf("half of the attempts fail: got %.2f answered with a circuit breaker, %.2f without retries, %.2f with riprap; want the breaker far below",
			breaker, never, ours)
	}
}
