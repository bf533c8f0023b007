package lab

import (
	"errors"
	"fmt"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/chart"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

const panels = 6 // that one picture can show

// svg is the report as a picture: lines where there is a list of values, bars of the attempts at the end of a row of
// services, and else the first seed over time.
func (r *report) svg() (string, error) {
	switch rows := r.all(); {
	case r.simulated() < r.wanted():
		return "", errors.New("no picture: not all was simulated")
	case len(r.groups) > 1:
		return r.lines().SVG(), nil
	case r.study.columns[0].name == duringFault.name:
		return r.bars().SVG(), nil
	case len(rows) > panels:
		return "", fmt.Errorf("a picture shows %d policies at most: choose them with -policies", panels)
	}
	return r.storm().SVG(), nil
}

func (r *report) storm() *chart.Storm {
	rows := r.all()
	s := rows[0].scenario
	c := &chart.Storm{
		Title:       upper(r.study.Name) + ": " + names(rows),
		Description: upper(describe(s)) + ".",
		Step:        rows[0].step,
		Capacity:    s.Capacity(),
	}
	for _, t := range s.Triggers {
		c.Faults = append(c.Faults, chart.Span{From: t.From, To: t.From + t.For, Label: string(t.Kind)})
	}
	for _, row := range rows {
		title := row.candidate.Name
		if row.candidate.Rival != nil {
			title += " (not riprap)"
		}
		c.Panels = append(c.Panels, chart.Panel{
			Title:   title,
			Caption: row.caption(),
			First:   row.rate(func(b *sim.Bin) int32 { return b.Tries }),
			Retries: row.rate(func(b *sim.Bin) int32 { return b.Retries }),
			Goodput: row.rate(func(b *sim.Bin) int32 { return b.Good }),
		})
	}
	return c
}

// caption is what became of a policy, in a line below its name.
func (s *summary) caption() string {
	if _, until := s.scenario.Fault(); until == 0 {
		return exact(s.answered.mean()) + " answered, " + factor(s.amplification.mean()) + " attempts a call"
	}
	switch {
	case s.recovered == 0:
		return "never recovers"
	case s.recovered < s.seeds:
		return fmt.Sprintf("recovers in %d of %s", s.recovered, seeds(s.seeds))
	case s.after.median() < 1:
		return "recovers at once"
	}
	return fmt.Sprintf("recovers after %.0f s", s.after.median())
}

func (s *summary) rate(f func(*sim.Bin) int32) []float64 {
	out := make([]float64, len(s.series))
	for i := range s.series {
		out[i] = float64(f(&s.series[i])) / s.step.Seconds()
	}
	return out
}

func names(rows []*summary) string {
	out := make([]string, len(rows))
	for i, s := range rows {
		out[i] = s.candidate.Name
	}
	return strings.Join(out, ", ")
}

// lines has one for each policy: the scenario's first figure against the values of the list.
func (r *report) lines() *chart.Lines {
	axis, _, _ := strings.Cut(r.request.groups[0].label, " ")
	what := struct {
		label, unit string
		value       func(*summary) float64
	}{"answered", " %", func(s *summary) float64 { return 100 * s.answered.mean() }}
	switch r.study.columns[0].name {
	case attempts.name:
		what.label, what.unit, what.value = "attempts", "", func(s *summary) float64 { return s.attempts.mean() }
	case recovery.name:
		what.label, what.value = "recovers", func(s *summary) float64 { return 100 * share(s.recovered, s.seeds) }
	case duringFault.name:
		what.label, what.unit, what.value = duringFault.about, "", func(s *summary) float64 { return s.during.mean() }
	}
	c := &chart.Lines{
		Title:       upper(r.study.Name) + ": " + what.label + " by " + axis,
		Description: upper(r.study.About) + ".",
		X:           chart.Axis{Label: axis},
		Y:           chart.Axis{Label: what.label, Unit: what.unit},
	}
	for i, first := range r.groups[0] {
		line := chart.Series{Name: first.candidate.Name, Dots: true}
		if first.candidate.Rival != nil {
			line.Name += " (not riprap)"
		}
		for j, g := range r.groups {
			line.Points = append(line.Points, chart.Point{X: r.request.groups[j].value, Y: what.value(g[i])})
		}
		c.Series = append(c.Series, line)
	}
	return c
}

func (r *report) bars() *chart.Bars {
	c := &chart.Bars{
		Title:       upper(r.study.Name) + ": attempts at the last service",
		Description: upper(describe(r.all()[0].scenario)) + ".",
		Label:       duringFault.about,
	}
	for _, s := range r.all() {
		name := s.candidate.Name
		if s.candidate.Rival != nil {
			name += " (not riprap)"
		}
		c.Bars = append(c.Bars, chart.Bar{Label: name, Value: s.during.mean(), Meaning: chart.Retries})
	}
	return c
}
