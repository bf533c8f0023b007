package lab

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
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
	set         func(*sim.Scenario, float64) error
}

var axes = []axis{
	{"processes", "how many processes call, each with its own budget", func(s *sim.Scenario, x float64) error {
		s.Processes = int(x)
		return whole(x)
	}},
	{"rate", "open arrivals: so many calls a second, whatever becomes of them", func(s *sim.Scenario, x float64) error {
		s.Arrivals = sim.Arrivals{Rate: x}
		return nil
	}},
	{"clients", "closed arrivals: so many clients, each with one call at a time", func(s *sim.Scenario, x float64) error {
		s.Arrivals.Rate, s.Arrivals.Clients = 0, int(x)
		return whole(x)
	}},
	{"fails", "chance of an attempt to fail, of the scenario flaky", func(s *sim.Scenario, x float64) error {
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
	{"layers", "callers above the last service, each of which retries", func(s *sim.Scenario, x float64) error {
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

// parse makes a request of flags. A scenario may stand before, between or behind them.
func parse(verb string, args []string, help io.Writer) (*request, error) {
	q := &request{verb: verb}
	fs := flag.NewFlagSet("riprap lab "+verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	lists := make([]*string, len(axes))
	for i, a := range axes {
		lists[i] = fs.String(a.name, "", a.about+"; a list such as 10,50,100 gives a group of rows for each")
	}
	pause := fs.Duration("pause", 0, "of a client between its calls, on average")
	timeout := fs.Duration("timeout", 0, "longest wait for an attempt")
	length := fs.Duration("for", 0, "simulated time")
	server := fs.String("server", "", "how the service admits: fifo, lifo, room=N, drop, drop=MARGIN, cancels, joined by +")
	policies := fs.String("policies", "", "names of policies, as riprap lab list gives them (default: riprap for run, all for compare)")
	var own, triggers []string
	fs.Func("policy", "a policy of your own, NAME:key=value,… with the keys like, attempts, base, max, factor, jitter,\n"+
		"timeout, total, budget (none or RATIO/RESERVE/WINDOW) and server; may be repeated", collect(&own))
	fs.Func("trigger", "what goes wrong instead, KIND:FROM+FOR or KIND:FROM+FOR*FACTOR: down, cut, slow, spike, ramp, lost;\n"+
		"none for nothing; may be repeated", collect(&triggers))
	fs.IntVar(&q.seeds, "seeds", 0, "simulations of each policy (default: by scenario)")
	fs.Uint64Var(&q.seed, "seed", 1, "the first one")
	fs.BoolVar(&q.asJSON, "json", false, "print one JSON document with figures and series")
	fs.BoolVar(&q.asCSV, "csv", false, "print comma-separated figures (compare) or series (run)")
	fs.StringVar(&q.svgFile, "svg", "", "also draw a picture into this `file`: the first seed over time, or a figure")
	figure := fs.String("figure", "", "figure that the picture shows by policy, or against the values of a list, named as in -csv")

	var names []string
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprintf(help, "usage: riprap lab %s SCENARIO [flags]\n\n", verb)
				fs.SetOutput(help)
				fs.PrintDefaults()
			}
			return nil, err
		}
		if fs.NArg() == 0 {
			break
		}
		names, rest = append(names, fs.Arg(0)), fs.Args()[1:]
	}
	if len(names) != 1 {
		return nil, fmt.Errorf("want the name of one scenario: %s", scenarioNames())
	}
	if err := q.choose(names[0]); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["seeds"] && (q.seeds < 1 || q.seeds > 1e6) {
		return nil, fmt.Errorf("-seeds %d: want 1 to 1000000", q.seeds)
	}
	q.seeds = cmp.Or(q.seeds, q.study.seeds)
	var err error
	if q.figure, err = findFigure(cmp.Or(*figure, q.study.figure)); err != nil {
		return nil, fmt.Errorf("-figure: %w", err)
	}
	q.asBars = given["figure"] || q.study.bars
	if q.asJSON && q.asCSV {
		return nil, errors.New("-json and -csv exclude each other")
	}

	s := &q.study.Scenario
	for name, d := range map[string]struct {
		from time.Duration
		to   *time.Duration
	}{"timeout": {*timeout, &s.Timeout}, "for": {*length, &s.Length}, "pause": {*pause, &s.Arrivals.Pause.Mean}} {
		if !given[name] {
			continue
		}
		if d.from < 0 {
			return nil, fmt.Errorf("-%s %v: want no negative time", name, d.from)
		}
		*d.to = d.from
	}
	if given["pause"] {
		s.Arrivals.Pause.Kind, s.Arrivals.Once = sim.Exponential, false
	}
	if given["server"] {
		a, err := parseAdmission(*server)
		if err != nil {
			return nil, fmt.Errorf("-server %q: %w", *server, err)
		}
		s.Services[len(s.Services)-1].Admission = a
	}
	if given["trigger"] {
		s.Triggers = nil
		for _, text := range triggers {
			t, err := parseTrigger(text)
			if err != nil {
				return nil, fmt.Errorf("-trigger %q: %w", text, err)
			}
			if t.Kind != "" {
				s.Triggers = append(s.Triggers, t)
			}
		}
	}
	var candidates []sim.Candidate
	candidates, err = q.pick(*policies, own)
	if err != nil {
		return nil, err
	}
	if err := q.spread(lists, candidates); err != nil {
		return nil, err
	}
	q.repeated = "riprap lab " + verb + " " + quoted(args)
	return q, nil
}

func collect(into *[]string) func(string) error {
	return func(s string) error {
		*into = append(*into, s)
		return nil
	}
}

// quoted is arguments as a shell takes them.
func quoted(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.ContainsAny(a, " *?()'\"$&;|<>") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}

func scenarioNames() string {
	names := make([]string, len(studies))
	for i := range studies {
		names[i] = studies[i].Name
	}
	return strings.Join(names, ", ")
}

// choose takes a copy of a study, whose parts may then be changed.
func (q *request) choose(name string) error {
	i := slices.IndexFunc(studies, func(st study) bool { return st.Name == name })
	if i < 0 {
		return fmt.Errorf("unknown scenario %q: there are %s", name, scenarioNames())
	}
	q.study = studies[i]
	q.study.Services = slices.Clone(q.study.Services)
	q.study.Triggers = slices.Clone(q.study.Triggers)
	return nil
}

// pick returns the candidates that are asked for.
func (q *request) pick(policies string, own []string) ([]sim.Candidate, error) {
	candidates := q.study.candidates
	if q.verb == "run" {
		candidates = []sim.Candidate{ours}
	}
	if policies != "" || len(own) > 0 && q.verb == "run" {
		candidates = nil
	}
	for name := range strings.SplitSeq(policies, ",") {
		if name == "" && policies == "" {
			break
		}
		c, err := q.candidate(name)
		if err != nil {
			return nil, fmt.Errorf("-policies %s: %w", policies, err)
		}
		candidates = append(candidates, *c)
	}
	for _, text := range own {
		c, err := q.parsePolicy(text)
		if err != nil {
			return nil, fmt.Errorf("-policy %q: %w", text, err)
		}
		candidates = append(slices.Clip(candidates), c)
	}
	return candidates, nil
}

func (q *request) candidate(name string) (*sim.Candidate, error) {
	var names []string
	for i := range q.study.candidates {
		if q.study.candidates[i].Name == name {
			return &q.study.candidates[i], nil
		}
		names = append(names, q.study.candidates[i].Name)
	}
	if name == ours.Name {
		return &ours, nil
	}
	return nil, fmt.Errorf("the scenario %s has no policy %q: there are %s", q.study.Name, name, strings.Join(names, ", "))
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
				return fmt.Errorf("-%s %s: %q is not a number", a.name, *lists[i], text)
			}
			values[i] = append(values[i], x)
		}
		if len(values[i]) > 1 && listed >= 0 {
			return fmt.Errorf("-%s and -%s are both lists, and only one can be", axes[listed].name, a.name)
		}
		if len(values[i]) > 1 {
			listed, q.list = i, a.name
		}
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
		for i := range candidates {
			g.trials = append(g.trials, trial{&s, &candidates[i]})
		}
		q.groups = append(q.groups, g)
	}
	return nil
}
