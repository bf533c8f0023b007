package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

const (
	gutter       = 10 // columns for the names beside the picture
	retriesRows  = 3  // of a side's picture
	inFlightRows = 2
)

// text is the report for people: the verdict, the picture that shows it, the figures, and how they came about.
func (r report) text(on terminal.Screen) string {
	var b strings.Builder
	width, p := on.Width, on.Palette
	for _, line := range terminal.Wrap(r.verdict(), width) {
		fmt.Fprintln(&b, p.Strong(line))
	}
	if len(r.Sides) == 0 {
		return b.String()
	}
	fmt.Fprintln(&b)
	r.picture(&b, width, p)
	fmt.Fprintln(&b)
	r.table(&b, p)
	fmt.Fprintln(&b)
	for _, line := range terminal.Wrap(r.method(), width) {
		fmt.Fprintln(&b, p.Quiet(line))
	}
	return b.String()
}

// picture draws the retries, the clicks in flight and those paid of each side over time, all sides on one scale.
func (r report) picture(b *strings.Builder, width int, p terminal.Palette) {
	s := terminal.Strip{Bins: index(r.Scenario.Length), Width: width - gutter}
	retries, inFlight := 0, 0
	for _, o := range r.Sides {
		retries = max(retries, slices.Max(append(o.Series.each(retried), 0)))
		inFlight = max(inFlight, o.Figures.InFlight)
	}
	capacity := int(math.Round(r.Scenario.capacity() * step.Seconds()))
	caption := fmt.Sprintf("In 100 ms: retries in all layers (full height: %d), clicks in flight (%d), both sides on one scale, and clicks paid (%d, the capacity).",
		retries, inFlight, capacity)
	if n := s.PerColumn(); n > 1 {
		caption += fmt.Sprintf(" A column shows the highest of %d.", n)
	}
	for _, line := range terminal.Wrap(caption, width) {
		fmt.Fprintln(b, line)
	}
	for _, o := range r.Sides {
		fmt.Fprintln(b)
		for i, line := range terminal.Bars(s, o.Series.each(retried), retries, retriesRows) {
			name := ""
			switch i {
			case 0:
				name = o.Name
			case retriesRows - 1:
				name = "retries"
			}
			row(b, name, p.Retries(strings.TrimRight(line, " ")))
		}
		for i, line := range terminal.Bars(s, o.Series.inFlight(), inFlight, inFlightRows) {
			name := ""
			if i == inFlightRows-1 {
				name = "in flight"
			}
			row(b, name, p.Quiet(strings.TrimRight(line, " ")))
		}
		row(b, "paid", p.Good(strings.TrimRight(terminal.Bars(s, o.Series.each(answered), capacity, 1)[0], " ")))
	}
	reached := r.Scenario.Faults
	for len(reached) > 0 && reached[len(reached)-1].From >= r.Sides[0].Figures.Elapsed {
		reached = reached[:len(reached)-1]
	}
	spans, names := underline(s, reached)
	row(b, "faults", spans)
	row(b, "", names)
	row(b, "time", p.Quiet(axis(s)))
}

func row(b *strings.Builder, name, line string) {
	fmt.Fprintln(b, strings.TrimRight(terminal.Pad(name, gutter)+line, " "))
}

// A line of the table is one figure of each side.
type line struct {
	name  string
	value func(figures) string
	good  func(figures) bool // what its color says of a side that ran to its end; nil: nothing
}

var lines = []line{
	{"paid in time", func(f figures) string { return terminal.Percent(f.AnsweredShare) }, nil},
	{`told "failed"`, func(f figures) string { return fmt.Sprint(f.Failed) }, nil},
	{`told "unknown"`, func(f figures) string { return fmt.Sprint(f.Unknown) }, nil},
	{"charged twice", func(f figures) string { return fmt.Sprint(f.Account.Twice) }, func(f figures) bool { return f.Account.Twice == 0 }},
	{`charged, told "failed"`, func(f figures) string { return fmt.Sprint(f.Account.ChargedFailed) }, func(f figures) bool { return f.Account.ChargedFailed == 0 }},
	{`charged, told "unknown"`, func(f figures) string { return fmt.Sprint(f.Account.ChargedUnsure) }, nil},
	{"healthy after outage", figures.recovery, func(f figures) bool { return f.Recovered }},
	{"paid at the end", func(f figures) string { return ifWhole(f, terminal.Percent(f.EndShare)) }, nil},
	{"payments calls per click", func(f figures) string { return fmt.Sprintf("%.2f", f.SentPerCall) }, nil},
	{"most in flight", func(f figures) string { return fmt.Sprint(f.InFlight) }, nil},
	{"load at worst", func(f figures) string { return fmt.Sprintf("%.1f × capacity", f.WorstLoad) }, nil},
	{"work for callers gone", func(f figures) string { return terminal.Percent(f.WastedShare) }, nil},
}

// table lists the figures, a column for each side.
func (r report) table(b *strings.Builder, p terminal.Palette) {
	const first, column = 24, 18 // as wide as the narrowest screen
	head := terminal.Pad("", first)
	for _, o := range r.Sides {
		head += terminal.Left(o.Name, column)
	}
	fmt.Fprintln(b, head)
	for _, l := range lines {
		text := terminal.Pad(l.name, first)
		for _, o := range r.Sides {
			cell := terminal.Left(l.value(o.Figures), column)
			switch {
			case l.good == nil || !o.Figures.Whole:
			case l.good(o.Figures):
				cell = p.Good(cell)
			default:
				cell = p.Bad(cell)
			}
			text += cell
		}
		fmt.Fprintln(b, text)
	}
}

func (f figures) recovery() string {
	switch {
	case !f.Outage || !f.Whole && !f.Again:
		return "not known"
	case !f.Again:
		return "not within the run"
	case f.Whole && !f.Recovered:
		return seconds(f.HealthyAfter) + ", then lost"
	case f.HealthyAfter < step:
		return "at once"
	}
	return seconds(f.HealthyAfter)
}

func ifWhole(f figures, text string) string {
	if !f.Whole {
		return "not known"
	}
	return text
}
