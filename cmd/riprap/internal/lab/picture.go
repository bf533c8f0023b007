package lab

import (
	"errors"
	"fmt"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/chart"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

const panels = 6 // that one picture can show

// svg is the report as a picture: lines where there is a list of values, bars where a figure is asked for or the study
// has one, and else the first seed over time.
func (r *report) svg() (string, error) {
	switch {
	case r.simulated() < r.wanted():
		return "", errors.New("no picture: not all was simulated")
	case len(r.groups) > 1:
		return r.lines().SVG(), nil
	case r.asBars:
		return r.bars().SVG(), nil
	}
	return r.storm().SVG(), nil
}

func (r *report) storm() *chart.Storm {
	rows := r.all()
	s := rows[0].scenario
	c := &chart.Storm{
		Title:       upper(r.study.Name) + ": " + names(rows),
		Description: upper(describe(s, rows...)) + ".",
		Step:        rows[0].step,
		Capacity:    s.Capacity(),
	}
	for _, t := range s.Triggers {
		c.Faults = append(c.Faults, chart.Span{From: t.From, To: t.From + t.For, Label: string(t.Kind)})
	}
	for _, row := range rows {
		c.Panels = append(c.Panels, chart.Panel{
			Title:   label(row),
			Caption: row.caption(),
			First:   row.rate(func(b *sim.Bin) int { return b.Tries }),
			Retries: row.rate(func(b *sim.Bin) int { return b.Retries }),
			Goodput: row.rate(func(b *sim.Bin) int { return b.Good }),
		})
	}
	return c
}

// caption is what became of a policy, in a line below its name.
func (s *summary) caption() string {
	if !s.triggered() {
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

func (s *summary) rate(f func(*sim.Bin) int) []float64 {
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

// lines has one for each policy: a figure against the values of the list.
func (r *report) lines() *chart.Lines {
	c := &chart.Lines{
		Title:       upper(r.study.Name) + ": " + r.figure.label + " by " + r.list,
		Description: upper(r.study.About) + ".",
		X:           chart.Axis{Label: r.list},
		Y:           chart.Axis{Label: r.figure.label, Unit: r.figure.unit},
	}
	for i, first := range r.groups[0].rows {
		line := chart.Series{Name: label(first)}
		for _, g := range r.groups {
			line.Points = append(line.Points, chart.Point{X: g.value, Y: r.figure.shown(g.rows[i])})
		}
		c.Series = append(c.Series, line)
	}
	return c
}

// bars has one for each policy.
func (r *report) bars() *chart.Bars {
	c := &chart.Bars{
		Title:       upper(r.study.Name) + ": " + r.figure.label,
		Description: upper(describe(r.all()[0].scenario, r.all()...)) + ".",
		Label:       r.figure.label,
		Unit:        r.figure.unit,
	}
	for _, s := range r.all() {
		bar := chart.Bar{Label: label(s), Value: r.figure.shown(s)}
		if r.figure.interval != nil {
			low, high := r.figure.interval(s)
			bar.Low, bar.High = r.figure.scale()*low, r.figure.scale()*high
		}
		c.Bars = append(c.Bars, bar)
	}
	return c
}

// label is a policy's name in a picture.
func label(s *summary) string {
	if s.candidate.Rival != nil {
		return s.candidate.Name + " (not riprap)"
	}
	return s.candidate.Name
}
