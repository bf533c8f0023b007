package lab

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/internal/suggest"
)

// flags are what somebody has typed behind run or compare. What concerns a scenario waits until its name is known.
type flags struct {
	*flag.FlagSet
	lists                    []*string // for each axis
	pause, timeout, length   time.Duration
	server, policies, figure string
	own, triggers            []string
}

// newFlags defines the flags. Those that need no scenario go into the request.
func newFlags(q *request) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("riprap lab "+q.verb, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	for _, a := range axes {
		f.lists = append(f.lists, f.String(a.name, "", a.about+"; a list such as "+a.example+" gives a group of rows for each"))
	}
	f.Var((*suggest.Duration)(&f.pause), "pause", "of a client between its calls, on average")
	f.Var((*suggest.Duration)(&f.timeout), "timeout", "longest wait for an attempt")
	f.Var((*suggest.Duration)(&f.length), "for", "simulated time")
	f.StringVar(&f.server, "server", "", "how the service admits: fifo, lifo, room=N, drop, drop=MARGIN, cancels, joined by +")
	f.StringVar(&f.policies, "policies", "", "names of policies, as riprap lab list gives them (default: riprap for run, all for compare)")
	f.Func("policy", "a policy of your own, NAME:key=value,…, which is riprap's default or what like names, but for the keys:\n"+
		"like (a policy of the scenario), attempts (the first included), base, max, factor, jitter (full, equal,\n"+
		"decorrelated, none), timeout (of an attempt), total (of a call), budget (none or RATIO/RESERVE/WINDOW: retries\n"+
		"for each success, retries in reserve), server (as -server); may be repeated", collect(&f.own))
	f.Func("trigger", "what goes wrong instead, KIND:FROM+FOR or KIND:FROM+FOR*FACTOR, such as slow:60s+15s*4. The kinds: down (attempts\n"+
		"fail at once), cut (the network holds all and then delivers it), slow (work takes FACTOR times as long),\n"+
		"spike (FACTOR times the calls), ramp (as many, rising and falling), lost (so large a share of the answers);\n"+
		"none for nothing; may be repeated", collect(&f.triggers))
	f.IntVar(&q.seeds, "seeds", 0, "simulations of each policy (default: by scenario)")
	f.Uint64Var(&q.seed, "seed", 1, "the first one")
	f.BoolVar(&q.asJSON, "json", false, "print one JSON document with figures and series")
	f.BoolVar(&q.asCSV, "csv", false, "print comma-separated figures (compare) or series (run)")
	f.StringVar(&q.svgFile, "svg", "", "also draw a picture into this `file`: the first seed over time, or a figure")
	f.StringVar(&f.figure, "figure", "", "figure that the picture shows by policy, or against the values of a list, named as in -csv")
	return f
}

// parse makes a request of arguments.
func parse(verb string, args []string, help io.Writer) (*request, error) {
	q := &request{verb: verb, repeated: "riprap lab " + verb + " " + quoted(args)}
	f := newFlags(q)
	name, err := f.scenario(args, help)
	if err != nil {
		return nil, err
	}
	if err := q.choose(name); err != nil {
		return nil, err
	}
	if f.given("seeds") && (q.seeds < 1 || q.seeds > 1e6) {
		return nil, fmt.Errorf("-seeds %d: want 1 to 1000000", q.seeds)
	}
	q.seeds = cmp.Or(q.seeds, q.study.seeds)
	if q.figure, err = findFigure(cmp.Or(f.figure, q.study.figure)); err != nil {
		return nil, fmt.Errorf("-figure: %w", err)
	}
	if f.given("figure") && q.svgFile == "" {
		return nil, errors.New("-figure: it is of a picture, and there is none without -svg")
	}
	q.asBars = f.given("figure") || q.study.bars
	if q.asJSON && q.asCSV {
		return nil, errors.New("-json and -csv exclude each other")
	}
	if err := f.change(&q.study.Scenario); err != nil {
		return nil, err
	}
	candidates, err := q.pick(f.policies, f.own)
	if err != nil {
		return nil, err
	}
	if err := q.spread(f.lists, candidates); err != nil {
		return nil, err
	}
	if n := len(candidates); q.svgFile != "" && len(q.groups) == 1 && !q.asBars && n > panels {
		return nil, fmt.Errorf("-svg: a picture over time shows %d policies at most, and these are %d: choose some with -policies, or give a -figure", panels, n)
	}
	q.changed = f.given("trigger") || f.given("capacity") || f.given("layers")
	return q, nil
}

// scenario parses the flags and returns the only argument that is none, which may stand before, between or behind them.
func (f *flags) scenario(args []string, help io.Writer) (string, error) {
	var names []string
	for rest := args; ; {
		if err := f.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprintf(help, "usage: %s SCENARIO [flags]\n\n", f.Name())
				f.SetOutput(help)
				f.PrintDefaults()
			}
			return "", err
		}
		if f.NArg() == 0 {
			break
		}
		names, rest = append(names, f.Arg(0)), f.Args()[1:]
	}
	if len(names) != 1 {
		return "", fmt.Errorf("want the name of one scenario: %s", scenarioNames())
	}
	return names[0], nil
}

// given reports whether a flag was typed: for some, what is not is not what is zero.
func (f *flags) given(name string) (given bool) {
	f.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// change makes the scenario the one that is asked for. What may be a list is left to spread.
func (f *flags) change(s *sim.Scenario) error {
	for _, d := range []struct {
		name string
		from time.Duration
		to   *time.Duration
	}{{"timeout", f.timeout, &s.Timeout}, {"for", f.length, &s.Length}, {"pause", f.pause, &s.Arrivals.Pause.Mean}} {
		if d.from < 0 {
			return fmt.Errorf("-%s %v: want no negative time", d.name, d.from)
		}
		if f.given(d.name) {
			*d.to = d.from
		}
	}
	if f.given("pause") {
		if s.Arrivals.Rate > 0 && !f.given("clients") {
			return fmt.Errorf("-pause %v: the calls of the scenario %s come whatever becomes of them: want -clients too", f.pause, s.Name)
		}
		s.Arrivals.Pause.Kind, s.Arrivals.Once = sim.Exponential, false
	}
	if f.given("server") {
		a, err := admission(s, f.server)
		if err != nil {
			return fmt.Errorf("-server %q: %w", f.server, err)
		}
		s.Services[len(s.Services)-1].Admission = a
	}
	if f.given("trigger") {
		s.Triggers = nil
	}
	for _, text := range f.triggers {
		t, err := trigger(s, text)
		if err != nil {
			return fmt.Errorf("-trigger %q: %w", text, err)
		}
		if t.Kind != "" {
			s.Triggers = append(s.Triggers, t)
		}
	}
	return nil
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
		if a == "" || strings.ContainsFunc(a, special) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}

// special reports whether a rune may mean something to a shell.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.,:+=/%@", r)
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
func (q *request) pick(policies string, own []string) (candidates []sim.Candidate, err error) {
	switch {
	case policies != "":
		for name := range strings.SplitSeq(policies, ",") {
			c, err := q.candidate(name)
			if err != nil {
				return nil, fmt.Errorf("-policies %s: %w", policies, err)
			}
			candidates = append(candidates, *c)
		}
	case q.verb == "compare":
		candidates = slices.Clone(q.study.candidates)
	case len(own) == 0:
		candidates = []sim.Candidate{ours}
	}
	for _, text := range own {
		c, err := q.parsePolicy(text)
		if err != nil {
			return nil, fmt.Errorf("-policy %q: %w", text, err)
		}
		candidates = append(candidates, c)
		q.own = append(q.own, c.Name)
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
