package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// An axis is a number of a scenario that may be a list: then there is a group of rows for each value.
type axis struct {
	name, about string
	example     string // of a list
	set         func(*sim.Scenario, float64) error
}

var axes = []axis{
	{"processes", "how many processes call, each with its own budget", "1,20,280", func(s *sim.Scenario, x float64) error {
		s.Processes = int(x)
		return whole(x)
	}},
	{"rate", "open arrivals: so many calls a second, whatever becomes of them", "100,200,300", func(s *sim.Scenario, x float64) error {
		s.Arrivals = sim.Arrivals{Rate: x}
		return nil
	}},
	{"clients", "closed arrivals: so many clients, each with one call at a time", "10,50,100", func(s *sim.Scenario, x float64) error {
		s.Arrivals.Rate, s.Arrivals.Clients = 0, int(x)
		return whole(x)
	}},
	{"capacity", "how many attempts a second the service can serve, of those with a queue", "300,400,500", func(s *sim.Scenario, x float64) error {
		last := &s.Services[len(s.Services)-1]
		if last.Kind != sim.Queue {
			return fmt.Errorf("the service of the scenario %s has no queue: outage, layers and threads have", s.Name)
		}
		if x < 0.001 || x > 1e6 {
			return errors.New("want 0.001 to 1000000")
		}
		last.Work.Mean = time.Duration(float64(max(last.Workers, 1)) / x * float64(time.Second))
		return nil
	}},
	{"fails", "chance of an attempt to fail, of the scenario flaky", "0.1,0.3,0.5", func(s *sim.Scenario, x float64) error {
		last := &s.Services[len(s.Services)-1]
		if last.Kind != sim.Coin {
			return fmt.Errorf("the scenario %s has no such chance, only flaky has", s.Name)
		}
		if x < 0 || x > 1 {
			return errors.New("want 0 to 1")
		}
		last.Fails = x
		return nil
	}},
	{"layers", "callers above the last service, each of which retries", "1,2,3", func(s *sim.Scenario, x float64) error {
		if err := whole(x); err != nil {
			return err
		}
		if x > 20 {
			return errors.New("want 20 at most")
		}
		last := s.Services[len(s.Services)-1]
		s.Services = append(slices.Repeat([]sim.Service{{Kind: sim.Relay}}, int(x)-1), last)
		return nil
	}},
}

func whole(x float64) error {
	if x != math.Trunc(x) || x < 1 || x > 1<<20 {
		return errors.New("want a whole number from 1 to 1048576")
	}
	return nil
}

// spread makes the groups: one, or one for each value of the only list.
func (q *request) spread(lists []*string, candidates []sim.Candidate) error {
	listed := -1
	values := make([][]float64, len(axes))
	for i, a := range axes {
		if *lists[i] == "" {
			continue
		}
		for text := range strings.SplitSeq(*lists[i], ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				return fmt.Errorf("-%s %s: %q is not a number from 0", a.name, *lists[i], text)
			}
			values[i] = append(values[i], x)
		}
		if len(values[i]) == 1 {
			continue
		}
		if listed >= 0 {
			return fmt.Errorf("-%s and -%s are both lists, and only one can be", axes[listed].name, a.name)
		}
		listed, q.list = i, a.name
	}
	rows := 1
	if listed >= 0 {
		rows = len(values[listed])
	}
	for row := range rows {
		s := q.study.Scenario
		s.Services = slices.Clone(s.Services)
		g := group{}
		for i, a := range axes {
			if len(values[i]) == 0 {
				continue
			}
			x := values[i][0]
			if i == listed {
				x = values[i][row]
				g.label, g.value = fmt.Sprintf("%s %v", a.name, x), x
			}
			if err := a.set(&s, x); err != nil {
				return fmt.Errorf("-%s %v: %w", a.name, x, err)
			}
		}
		if err := s.Check(); err != nil {
			return err
		}
		if _, until := s.Fault(); until > 0 && s.Length > 0 && s.Length-until < sim.Watch {
			return fmt.Errorf("the trigger is over at %v of %v: want %v more, to see whether the service recovers (-for)", until, s.Length, sim.Watch)
		}
		for i := range candidates {
			g.trials = append(g.trials, trial{&s, &candidates[i]})
		}
		q.groups = append(q.groups, g)
	}
	return nil
}
