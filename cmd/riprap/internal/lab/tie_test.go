package lab

import (
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// plainly is riprap with waits that hang on nothing but its Backoff: Base, twice that, and so on.
func plainly(base time.Duration) *sim.Candidate {
	return &sim.Candidate{Name: "plain", Policy: riprap.Policy{
		Rand:    func() float64 { return 0 },
		Backoff: riprap.Backoff{Base: base, Max: time.Hour, Jitter: riprap.None},
	}}
}

// What the lab says about riprap is worth something only if it is riprap's own Backoff that makes callers wait, in every
// scenario.
func TestDoublingTheBaseDoublesTheWaitsOfEveryScenario(t *testing.T) {
	t.Parallel()
	const base = 200 * time.Millisecond
	for i := range studies {
		s := studies[i].Scenario
		if from, until := s.Fault(); until > 0 {
			s.Length = min(s.Length, until+5*time.Second) // by then there are failures enough
			if from > 0 {
				s.Length = min(s.Length, from+20*time.Second)
			}
		} else if s.Length > 0 {
			s.Length = min(s.Length, 30*time.Second)
		}
		once := simulate(t.Context(), []trial{{&s, plainly(base)}}, 1, 1, func() {})[0]
		twice := simulate(t.Context(), []trial{{&s, plainly(2 * base)}}, 1, 1, func() {})[0]
		if len(once.waits) == 0 || len(twice.waits) == 0 {
			t.Errorf("%s: no call was tried again, so that nothing is known of its waits", s.Name)
			continue
		}
		for n := range min(len(once.waits), len(twice.waits)) {
			a, b := once.waits[n], twice.waits[n]
			want := base << n
			if got := a.Mean(); got != want {
				t.Errorf("%s: wait %d with a Base of %v = %v on average, want %v", s.Name, n+1, base, got, want)
			}
			if got := b.Mean(); got != 2*want {
				t.Errorf("%s: wait %d with a Base of %v = %v on average, want %v", s.Name, n+1, 2*base, got, 2*want)
			}
		}
	}
}

// Nor is it enough to count the waits: the attempts must be so far apart. One client calls once, the service is down for
// good, and nothing else takes time.
func TestDoublingTheBaseDoublesTheTimeOfACallInEveryScenario(t *testing.T) {
	t.Parallel()
	const base = 200 * time.Millisecond
	for i := range studies {
		s := studies[i].Scenario
		s.Arrivals = sim.Arrivals{Clients: 1, Once: true}
		s.Network, s.Timeout, s.Length = sim.Spread{}, 0, 0
		s.Triggers = []sim.Trigger{{Kind: sim.Down, For: 24 * time.Hour}}
		last := func(base time.Duration) time.Duration {
			return sim.Run(t.Context(), &s, plainly(base), 1).Last
		}
		// Four attempts are 1+2+4 times the base apart. Each layer above makes four attempts of that, and waits in between.
		want := time.Duration(0)
		for range s.Services {
			want = 4*want + 7*base
		}
		if got := last(base); got != want {
			t.Errorf("%s: a call that fails with a Base of %v took %v, want %v", s.Name, base, got, want)
		}
		if got := last(2 * base); got != 2*want {
			t.Errorf("%s: a call that fails with a Base of %v took %v, want %v", s.Name, 2*base, got, 2*want)
		}
	}
}
