package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

const (
	gutter = 9 // columns for the names beside the picture
	height = 4 // rows of a side's retries
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

// verdict is the answer in one sentence or two, with its figures, whatever was measured.
func (r report) verdict() string {
	if !r.whole() {
		total := time.Duration(len(sides)) * r.Scenario.Length
		return fmt.Sprintf("Stopped after %s of %s: no verdict. This is what is known so far.", seconds(r.elapsed()), seconds(total))
	}
	naive, riprap := r.Sides[0].Figures, r.Sides[1].Figures
	answers := fmt.Sprintf(" Answered in time: %s of the calls with riprap, %s with the naive loop.",
		terminal.Percent(riprap.AnsweredShare), terminal.Percent(naive.AnsweredShare))
	if !riprap.Recovered && riprap.Late > busy {
		return fmt.Sprintf("This machine was too busy for a verdict: it made or did calls up to %s late.", seconds(riprap.Late)) + answers
	}
	if late := r.late(); late > busy {
		answers += fmt.Sprintf(" But this machine was busy and made or did calls up to %s late: these are not the scenario's figures.", seconds(late))
	}
	switch {
	case !riprap.Recovered:
		return fmt.Sprintf("With riprap the service did not recover in this run: of the calls made in the last seconds %s were answered, %s would be healthy.",
			terminal.Percent(riprap.EndShare), terminal.Percent(healthy)) + answers
	case naive.Recovered:
		return fmt.Sprintf("The service recovered on both sides of this run: with riprap %s, with the naive loop %s.",
			after(riprap.HealthyAfter), after(naive.HealthyAfter)) + answers
	case naive.Again:
		return fmt.Sprintf("With riprap the service was healthy again %s and stayed so; with the naive loop it was, %s, and was lost again.",
			after(riprap.HealthyAfter), after(naive.HealthyAfter)) + answers
	}
	return fmt.Sprintf("With riprap the service was healthy again %s; with the naive loop it was still failing when the run ended, %s later.",
		after(riprap.HealthyAfter), seconds(r.Scenario.Length-r.Scenario.Faults[0].until())) + answers
}

func after(d time.Duration) string {
	if d < step {
		return "as soon as the outage was over"
	}
	return seconds(d) + " after the outage"
}

// picture draws the retries and the answers of each side over time, all sides on one scale.
func (r report) picture(b *strings.Builder, width int, p terminal.Palette) {
	s := terminal.Strip{Bins: index(r.Scenario.Length), Width: width - gutter}
	retries := 0
	for _, o := range r.Sides {
		retries = max(retries, slices.Max(append(o.Series.each(retried), 0)))
	}
	capacity := int(math.Round(r.Scenario.capacity() * step.Seconds()))
	caption := fmt.Sprintf("Retries in 100 ms, both sides on one scale (full height: %d), and calls answered (full height: %d, the capacity).", retries, capacity)
	if n := s.PerColumn(); n > 1 {
		caption += fmt.Sprintf(" A column shows the highest of %d.", n)
	}
	for _, line := range terminal.Wrap(caption, width) {
		fmt.Fprintln(b, line)
	}
	for _, o := range r.Sides {
		fmt.Fprintln(b)
		for i, line := range terminal.Bars(s, o.Series.each(retried), retries, height) {
			name := ""
			switch i {
			case 0:
				name = o.Name
			case height - 1:
				name = "retries"
			}
			row(b, name, p.Retries(strings.TrimRight(line, " ")))
		}
		row(b, "answers", p.Good(strings.TrimRight(terminal.Bars(s, o.Series.each(answered), capacity, 1)[0], " ")))
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

// table lists the figures, a column for each side.
func (r report) table(b *strings.Builder, p terminal.Palette) {
	const recovered = "healthy after outage"
	const first, column = 24, 18 // as wide as the narrowest screen
	lines := []struct {
		name  string
		value func(figures) string
	}{
		{"answered in time", func(f figures) string { return terminal.Percent(f.AnsweredShare) }},
		{recovered, figures.recovery},
		{"answered at the end", func(f figures) string { return ifWhole(f, terminal.Percent(f.EndShare)) }},
		{"load at worst", func(f figures) string { return fmt.Sprintf("%.1f × capacity", f.WorstLoad) }},
		{"requests sent per call", func(f figures) string { return fmt.Sprintf("%.2f", f.SentPerCall) }},
		{"work for callers gone", func(f figures) string { return terminal.Percent(f.WastedShare) }},
	}
	line := terminal.Pad("", first)
	for _, o := range r.Sides {
		line += terminal.Left(o.Name, column)
	}
	fmt.Fprintln(b, line)
	for _, l := range lines {
		line := terminal.Pad(l.name, first)
		for _, o := range r.Sides {
			cell := terminal.Left(l.value(o.Figures), column)
			if l.name == recovered && o.Figures.Whole {
				if o.Figures.Recovered {
					cell = p.Good(cell)
				} else {
					cell = p.Bad(cell)
				}
			}
			line += cell
		}
		fmt.Fprintln(b, line)
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

// method says what was done, so that the figures can be judged.
func (r report) method() string {
	s := r.Scenario
	text := fmt.Sprintf("Both sides: %d callers making %.0f calls a second at the same times (seed %d), a service that can answer %.0f, "+
		"%d attempts of %s at most, backoff from %s doubling, callers who wait %s. The outage: the service hangs for %s, then its process and its connections are gone for %s. "+
		"The naive loop has no jitter, no budget, and waits its own backoff after a 429.",
		s.Callers, s.rate(), r.Seed, s.capacity(), s.Attempts, seconds(s.AttemptTimeout), seconds(s.Backoff), seconds(s.Patience),
		seconds(s.Faults[0].Hangs), seconds(s.Faults[0].For-s.Faults[0].Hangs))
	var open []string
	for _, o := range r.Sides {
		if o.Figures.Open > 0 {
			open = append(open, fmt.Sprintf("%s %d of %d", o.Name, o.Figures.Open, o.Figures.Made))
		}
	}
	if len(open) > 0 {
		text += fmt.Sprintf(" Calls still waiting at the end of their side, counted neither as answered nor as failed: %s.", strings.Join(open, ", "))
	}
	return text + " The time series: riprap demo --json."
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%.1f s", d.Seconds())
}
