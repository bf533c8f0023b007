package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// A figure is one number of a row.
type figure struct {
	name  string // by which programs know it
	label string // for an axis
	unit  string // "%" for a share
	value func(*summary) float64

	interval func(*summary) (low, high float64) // nil means none is known

	// Of those that are in tables.
	head  string
	about string                // what it says, for the legend
	cell  func(*summary) string // nil means the value alone
	roomy bool                  // left out where there is little room for many
}

// figures is every number of a row, in the order of a CSV file's columns.
var figures = []figure{
	{name: "recovered", label: "seeds in which the service recovers", unit: "%",
		value: func(s *summary) float64 {
			if !s.triggered() {
				return math.NaN()
			}
			return share(s.recovered, s.seeds)
		},
		interval: (*summary).interval,

		head:  "recovers",
		about: "share of the seeds in which the service was healthy again after the trigger, and stayed so, with its 95 % interval",
		cell: func(s *summary) string {
			if !s.triggered() {
				return "–"
			}
			low, high := s.interval()
			return fmt.Sprintf("%s (%.0f–%.0f)", brief(share(s.recovered, s.seeds)), 100*low, 100*high)
		}},
	{name: "recovered_low", label: "the same, lower end of the interval", unit: "%",
		value: func(s *summary) float64 { low, _ := s.interval(); return low }},
	{name: "recovered_high", label: "the same, upper end of the interval", unit: "%",
		value: func(s *summary) float64 { _, high := s.interval(); return high }},
	{name: "recovery_seconds", label: "time to recover, median", unit: " s",
		value: func(s *summary) float64 { return s.after.median() },
		head:  "after",
		about: "how long that took from the end of the trigger, the median",
		cell: func(s *summary) string {
			switch {
			case !s.triggered():
				return "–"
			case len(s.after) == 0:
				return "never"
			}
			return fmt.Sprintf("%.0f s", s.after.median())
		}},
	{name: "recovery_seconds_least", label: "least time to recover", unit: " s",
		value: func(s *summary) float64 { return s.after.least() }},
	{name: "recovery_seconds_most", label: "most time to recover", unit: " s",
		value: func(s *summary) float64 { return s.after.most() }},
	{name: "overshoot", label: "highest load, in capacities",
		value: func(s *summary) float64 { return s.overshoot.mean() },
		head:  "peak",
		about: "highest load sent since the trigger began, in capacities of the service, or in usual loads if it has none"},
	{name: "attempts_per_call", label: "attempts per call",
		value: func(s *summary) float64 { return s.amplification.mean() },
		head:  "att/call",
		about: "attempts for each call, over the whole run"},
	{name: "attempts_per_call_in_fault", label: "attempts at the last service for each call made during the trigger",
		value: func(s *summary) float64 { return s.during.mean() },
		head:  "at C",
		about: "attempts at the last service for each call that was made during the trigger"},
	{name: "wasted", label: "work wasted", unit: "%",
		value: func(s *summary) float64 { return s.wasted.mean() },
		head:  "wasted",
		about: "share of the service's work whose caller had left before it was done",
		roomy: true},
	{name: "lost", label: "calls lost", unit: "%",
		value: func(s *summary) float64 { return s.lost.mean() },
		head:  "lost",
		about: "share of the calls since the trigger began that were not answered and usually would have been"},
	{name: "answered", label: "calls answered", unit: "%",
		value: func(s *summary) float64 { return s.answered.mean() },
		head:  "answered",
		about: "share of the calls that were answered, of those that were over",
		cell:  func(s *summary) string { return exact(s.answered.mean()) }},
	{name: "admitted", label: "attempts admitted", unit: "%",
		value: func(s *summary) float64 { return s.admitted.mean() },
		head:  "admitted",
		about: "share of the attempts that found a thread, in the second half of the time",
		cell:  func(s *summary) string { return exact(s.admitted.mean()) }},
	{name: "calls", label: "calls",
		value: func(s *summary) float64 { return s.calls.mean() }},
	{name: "attempts", label: "attempts",
		value: func(s *summary) float64 { return s.attempts.mean() },
		head:  "attempts",
		about: "of all clients together, and their standard deviation over the seeds",
		cell:  func(s *summary) string { return fmt.Sprintf("%.1f ± %.1f", s.attempts.mean(), s.attempts.sd()) }},
	{name: "attempts_sd", label: "attempts, standard deviation",
		value: func(s *summary) float64 { return s.attempts.sd() }},
	{name: "completion_seconds", label: "time until the last client is done", unit: " s",
		value: func(s *summary) float64 { return s.completion.mean() },
		head:  "completion",
		about: "when the last client was done, and its standard deviation over the seeds",
		cell:  func(s *summary) string { return fmt.Sprintf("%.2f ± %.2f s", s.completion.mean(), s.completion.sd()) }},
	{name: "completion_seconds_sd", label: "the same, standard deviation", unit: " s",
		value: func(s *summary) float64 { return s.completion.sd() }},
	{name: "events", label: "events simulated",
		value: func(s *summary) float64 { return s.events.mean() }},
}

// tabled is the figure as a table shows it.
func (f *figure) tabled(s *summary) string {
	switch x := f.value(s); {
	case f.cell != nil:
		return f.cell(s)
	case math.IsNaN(x):
		return "–"
	case f.unit == "%":
		return brief(x)
	default:
		return factor(x)
	}
}

func factor(x float64) string { return fmt.Sprintf("%.2f", x) }

// exact is a share in per cent with two digits, for those that are compared with a formula.
func exact(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

func findFigure(name string) (figure, error) {
	var names []string
	for _, f := range figures {
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return figure{}, fmt.Errorf("unknown figure %q: there are %s", name, strings.Join(names, ", "))
}

// shown is the value as a chart shows it.
func (f figure) shown(s *summary) float64 { return f.scale() * f.value(s) }

// scale is 100 for shares, which a chart shows in per cent.
func (f figure) scale() float64 {
	if f.unit == "%" {
		return 100
	}
	return 1
}

// triggered reports whether something goes wrong in the scenario after which the service can recover, and was simulated.
// Clients that make a single call are no load by which to tell.
func (s *summary) triggered() bool { return s.judged > 0 }

// interval is the 95 % interval of the probability to recover.
func (s *summary) interval() (low, high float64) {
	if !s.triggered() {
		return math.NaN(), math.NaN()
	}
	return wilson(s.recovered, s.seeds)
}

func (s sample) least() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Min(s)
}

func (s sample) most() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Max(s)
}

// brief is a share in per cent for a cell: what is not exactly nothing or all is not said to be.
func brief(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 1:
		return "<1 %"
	case p > 99 && p < 100:
		return ">99 %"
	}
	return terminal.Percent(share)
}
