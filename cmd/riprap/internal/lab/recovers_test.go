package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// A fault is what a service has to recover from, and how.
type fault struct {
	study  string
	kind   sim.TriggerKind // instead of the study's; empty keeps it
	factor float64
	length int  // seconds of simulated time that are enough to see it
	naive  bool // whether immediate retries recover too: then it is no storm
}

// There is none of these that no policy survives, since a service without retries survives all.
var faults = []fault{
	{"outage", "", 0, 380, false},
	{"collapse", "", 0, 110, false},
	{"ramp", "", 0, 130, false},
	{"layers", "", 0, 400, true},
	{"outage", sim.Down, 0, 130, true},
	{"outage", sim.Slow, 10, 380, false},
	{"outage", sim.Spike, 3, 560, false},
	{"outage", sim.Lost, 1, 130, false},
	{"collapse", sim.Down, 0, 110, true},
	{"collapse", sim.Cut, 0, 110, false},
	{"collapse", sim.Slow, 10, 150, false},
	{"collapse", sim.Spike, 3, 110, false},
	{"collapse", sim.Lost, 1, 110, false},
}

func (f fault) scenario(t *testing.T) (*request, string) {
	t.Helper()
	q := known(t, f.study)
	who := f.study
	if f.kind != "" {
		q.study.Triggers[0].Kind, q.study.Triggers[0].Factor = f.kind, f.factor
		who = fmt.Sprintf("%s, %s*%v", f.study, f.kind, f.factor)
	}
	q.study.Length = time.Duration(f.length) * time.Second
	return q, who
}

// recovers simulates riprap as it comes, and says who else recovers if it does not.
func (f fault) recovers(t *testing.T, seeds int) {
	t.Helper()
	q, who := f.scenario(t)
	s := simulate(t.Context(), []trial{{&q.study.Scenario, &ours}}, 1, seeds, func() {})[0]
	low, _ := wilson(s.recovered, s.seeds)
	if s.recovered == s.seeds || low > 0.8 {
		return
	}
	var others []string
	for i := range q.study.candidates {
		c := &q.study.candidates[i]
		o := simulate(t.Context(), []trial{{&q.study.Scenario, c}}, 1, seeds, func() {})[0]
		others = append(others, fmt.Sprintf("%s %d", c.Name, o.recovered))
	}
	t.Errorf("%s: riprap recovered in %d of %d runs, want all; of the others: %s", who, s.recovered, s.seeds, strings.Join(others, ", "))
}

func TestRiprapRecoversWhereverAnybodyDoes(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		seeds := 4
		if f.study == "outage" {
			seeds = 1
		}
		f.recovers(t, seeds)
	}
	for i := range studies {
		st := &studies[i]
		if _, until := st.Fault(); until == 0 {
			continue
		}
		tested := false
		for _, f := range faults {
			tested = tested || f.study == st.Name && f.kind == ""
		}
		if !tested {
			t.Errorf("the scenario %s has a fault that is not among those tested", st.Name)
		}
	}
}

func TestSoakRiprapRecoversWhereverAnybodyDoes(t *testing.T) {
	soak(t)
	for _, f := range faults {
		f.recovers(t, 16)
	}
}

// However many processes call, each with a budget of its own.
func TestSoakRiprapRecoversWithAnyNumberOfProcesses(t *testing.T) {
	soak(t)
	for _, processes := range []int{1, 10, 20, 100, 280} {
		q := known(t, "outage")
		q.study.Processes = processes
		s := simulate(t.Context(), []trial{{&q.study.Scenario, &ours}}, 1, 8, func() {})[0]
		if s.recovered < s.seeds {
			t.Errorf("%d processes: recovered in %d of %d runs, want all", processes, s.recovered, s.seeds)
		}
	}
}

// A fault after which immediate retries come back to health too would say nothing about riprap.
func TestSoakImmediateRetriesAreTrappedByTheStorms(t *testing.T) {
	soak(t)
	for _, f := range faults {
		q, who := f.scenario(t)
		s := simulate(t.Context(), []trial{{&q.study.Scenario, q.policy(t, "at-once")}}, 1, 4, func() {})[0]
		if got := s.recovered > s.seeds/2; got != f.naive {
			t.Errorf("%s: immediate retries recovered in %d of %d runs, want most = %v", who, s.recovered, s.seeds, f.naive)
		}
	}
}
