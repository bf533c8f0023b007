package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// text is the report for people: the answer, the table or the picture that shows it, and how it came about.
func (r *report) text(on terminal.Screen) string {
	var b strings.Builder
	p := on.Palette
	for _, line := range terminal.Wrap(r.verdict(), on.Width) {
		fmt.Fprintln(&b, p.Strong(line))
	}
	if r.simulated() == 0 {
		return b.String()
	}
	if r.verb == "run" {
		for _, s := range r.all() {
			fmt.Fprintln(&b)
			r.detail(&b, s, on)
		}
	} else {
		fmt.Fprintln(&b)
		fmt.Fprint(&b, r.table(on))
		fmt.Fprintln(&b)
		for _, line := range terminal.Wrap(r.legend(on), on.Width) {
			fmt.Fprintln(&b, p.Quiet(line))
		}
	}
	fmt.Fprintln(&b)
	for _, line := range terminal.Wrap(r.method(), on.Width) {
		fmt.Fprintln(&b, p.Quiet(line))
	}
	return b.String()
}

// simulated is how many simulations there were.
func (r *report) simulated() (n int) {
	for _, s := range r.all() {
		n += s.seeds
	}
	return n
}

func (r *report) wanted() int { return len(r.all()) * r.seeds }

// verdict is the answer in a sentence or two.
func (r *report) verdict() string {
	var b strings.Builder
	if n := r.simulated(); r.stopped && n < r.wanted() {
		fmt.Fprintf(&b, "Stopped after %d of %d simulations. ", n, r.wanted())
		if n == 0 {
			return b.String() + "Nothing is known."
		}
	}
	rows := slices.DeleteFunc(r.all(), func(s *summary) bool { return s.seeds == 0 })
	var sure, never, between int
	for _, s := range rows {
		switch {
		case !s.triggered(): // nobody knows
		case s.recovered == s.seeds:
			sure++
		case s.recovered == 0:
			never++
		default:
			between++
		}
	}
	if len(rows) == 1 {
		return b.String() + r.sentence(rows[0]) + overloaded(rows)
	}
	spoken := 0
	for _, name := range slices.Compact(append(slices.Clip(r.own), ours.Name)) { // first what was asked about
		same := slices.DeleteFunc(slices.Clone(rows), func(s *summary) bool { return s.candidate.Name != name })
		if len(same) > 2 { // the ends of a list
			same = []*summary{same[0], same[len(same)-1]}
		}
		for _, s := range same {
			b.WriteString(r.sentence(s) + " ")
			spoken++
		}
	}
	if sure+between+never > 0 {
		b.WriteString(count(sure, between, never))
	} else if spoken == 0 {
		fmt.Fprintf(&b, "%s.", upper(r.study.About))
	}
	return strings.TrimSpace(b.String()) + overloaded(rows)
}

// count says in how many rows the service recovers.
func count(sure, between, never int) string {
	var parts []string
	all := sure + between + never
	for i, n := range []int{sure, between, never} {
		where := []string{"in every seed", "in some seeds", "in no seed"}[i]
		switch {
		case n == 0:
		case n == all:
			return fmt.Sprintf("In all %d rows the service recovers %s.", all, where)
		case len(parts) == 0:
			parts = append(parts, fmt.Sprintf("in %d of %d rows %s", n, all, where))
		default:
			parts = append(parts, fmt.Sprintf("in %d %s", n, where))
		}
	}
	return "The service recovers " + strings.Join(parts, ", ") + "."
}

// overloaded says that no policy is to blame, where that is so.
func overloaded(rows []*summary) string {
	for _, s := range rows {
		if rate, capacity := s.scenario.Arrivals.Rate, s.scenario.Capacity(); capacity > 0 && rate > capacity+0.5 {
			return fmt.Sprintf(" %v calls/s are more than the %.0f/s that the service can serve, whatever the policy.", rate, capacity)
		}
	}
	return ""
}

// sentence says whether one policy recovers.
func (r *report) sentence(s *summary) string {
	switch {
	case !s.triggered():
		unknown := ""
		if len(s.overshoot) > 0 {
			unknown = " Whether the service recovers is not known: nothing was answered before the trigger."
		}
		return fmt.Sprintf("%s: %s of the calls answered, with %s attempts for each.", r.name(s), exact(s.answered.mean()), factor(s.amplification.mean())) + unknown
	case s.recovered == 0:
		return fmt.Sprintf("%s: the service never recovered, in %s.", r.name(s), seeds(s.seeds))
	case s.recovered < s.seeds:
		return fmt.Sprintf("%s: the service recovered in %d of %s.", r.name(s), s.recovered, seeds(s.seeds))
	case s.after.median() < 1:
		return fmt.Sprintf("%s: the service was healthy as soon as the trigger was over, in %s.", r.name(s), inAll(s.seeds))
	}
	return fmt.Sprintf("%s: the service was healthy again %.0f s after the trigger was over, in %s.", r.name(s), s.after.median(), inAll(s.seeds))
}

func seeds(n int) string {
	if n == 1 {
		return "1 seed"
	}
	return fmt.Sprintf("%d seeds", n)
}

func inAll(n int) string {
	if n == 1 {
		return seeds(n)
	}
	return "all of " + seeds(n)
}

// name is the row's name, with the value of the list that it belongs to.
func (r *report) name(s *summary) string {
	for _, g := range r.groups {
		if g.label != "" && slices.Contains(g.rows, s) {
			return s.candidate.Name + " with " + g.label
		}
	}
	return s.candidate.Name
}

// method says how the figures came about.
func (r *report) method() string {
	events := 0.0
	for _, s := range r.all() {
		for _, n := range s.events {
			events += n
		}
	}
	s := r.all()[0].scenario
	setting := describe(s, r.all()...)
	if r.list != "" {
		setting += "; " + r.list + " as in the table"
	}
	if !r.changed { // what it says about itself would contradict the figures
		setting = s.About + ". " + upper(setting)
	}
	simulated := seeds(r.seeds) + " of each"
	if n := r.simulated(); n < r.wanted() {
		simulated = fmt.Sprintf("%d of %d times", n, r.wanted())
	}
	return fmt.Sprintf("%s: %s. Simulated, %s, %.1f million events. Again: %s",
		upper(s.Name), setting, simulated, events/1e6, r.repeated)
}

// describe is a scenario's figures in words, as they hold for the rows.
func describe(s *sim.Scenario, rows ...*summary) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch a := s.Arrivals; {
	case a.Rate > 0:
		add("%v calls/s", a.Rate)
	case a.Once:
		add("%d clients, one call each, all at once", a.Clients)
	default:
		add("%d clients with a pause of %s between calls", a.Clients, duration(a.Pause.Mean))
	}
	if s.Processes > 1 {
		add("%d processes", s.Processes)
	}
	if n := len(s.Services); n > 1 {
		add("%d callers above the last service", n)
	}
	if s.Timeout > 0 {
		add("%s for an attempt%s", duration(s.Timeout), unless(rows))
	}
	switch last := s.Services[len(s.Services)-1]; last.Kind {
	case sim.Queue:
		add("capacity %.0f/s", s.Capacity())
	case sim.Crowd:
		add("an attempt among n takes %s + n·%s", duration(last.Base), duration(last.Each))
	case sim.Coin:
		add("an attempt fails with probability %v", last.Fails)
	}
	for _, t := range s.Triggers {
		factor := ""
		switch t.Kind {
		case sim.Slow, sim.Spike, sim.Ramp:
			factor = fmt.Sprintf(" ×%v", t.Factor)
		case sim.Lost:
			factor = " " + terminal.Percent(t.Factor)
		}
		add("%s%s from %s to %s", t.Kind, factor, duration(t.From), duration(t.From+t.For))
	}
	if s.Length > 0 {
		add("%s in all", duration(s.Length))
	}
	return strings.Join(parts, ", ")
}

// unless names the policies to which the scenario's timeout does not apply.
func unless(rows []*summary) string {
	var names []string
	for _, s := range rows {
		if name := s.candidate.Name; s.candidate.Policy.AttemptTimeout > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return " unless the policy says otherwise (" + strings.Join(names, ", ") + ")"
}

// duration is a time in seconds, or in milliseconds if it is shorter than one.
func duration(d time.Duration) string {
	unit, name := time.Second, " s"
	if 0 < d && d < time.Second {
		unit, name = time.Millisecond, " ms"
	}
	return strconv.FormatFloat(float64(d)/float64(unit), 'f', -1, 64) + name
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
