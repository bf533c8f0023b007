package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A figure is one number of a row, with the name that programs know it by.
type figure struct {
	name  string
	label string // for an axis
	unit  string // "%" for a share
	value func(*summary) float64
}

// figures is every number of a row, in the order of a CSV file's columns.
var figures = []figure{
	{"recovered", "seeds in which the service recovers", "%", func(s *summary) float64 {
		if !s.triggered() {
			return math.NaN()
		}
		return share(s.recovered, s.seeds)
	}},
	{"recovered_low", "the same, lower end of the interval", "%", func(s *summary) float64 {
		low, _ := s.interval()
		return low
	}},
	{"recovered_high", "the same, upper end of the interval", "%", func(s *summary) float64 {
		_, high := s.interval()
		return high
	}},
	{"recovery_seconds", "time to recover, median", " s", func(s *summary) float64 { return s.after.median() }},
	{"recovery_seconds_least", "least time to recover", " s", func(s *summary) float64 { return s.after.least() }},
	{"recovery_seconds_most", "most time to recover", " s", func(s *summary) float64 { return s.after.most() }},
	{"overshoot", "highest load, in capacities", "", func(s *summary) float64 { return s.overshoot.mean() }},
	{"attempts_per_call", "attempts per call", "", func(s *summary) float64 { return s.amplification.mean() }},
	{"attempts_per_call_in_fault", "attempts at the last service for each call made during the trigger", "",
		func(s *summary) float64 { return s.during.mean() }},
	{"wasted", "work wasted", "%", func(s *summary) float64 { return s.wasted.mean() }},
	{"lost", "calls lost", "%", func(s *summary) float64 { return s.lost.mean() }},
	{"answered", "calls answered", "%", func(s *summary) float64 { return s.answered.mean() }},
	{"admitted", "attempts admitted", "%", func(s *summary) float64 { return s.admitted.mean() }},
	{"calls", "calls", "", func(s *summary) float64 { return s.calls.mean() }},
	{"attempts", "attempts", "", func(s *summary) float64 { return s.attempts.mean() }},
	{"attempts_sd", "attempts, standard deviation", "", func(s *summary) float64 { return s.attempts.sd() }},
	{"completion_seconds", "time until the last client is done", " s", func(s *summary) float64 { return s.completion.mean() }},
	{"completion_seconds_sd", "the same, standard deviation", " s", func(s *summary) float64 { return s.completion.sd() }},
	{"events", "events simulated", "", func(s *summary) float64 { return s.events.mean() }},
}

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

// shown is the value as a chart shows it: shares in per cent.
func (f figure) shown(s *summary) float64 {
	if f.unit == "%" {
		return 100 * f.value(s)
	}
	return f.value(s)
}

// triggered reports whether something goes wrong in the scenario, and was simulated.
func (s *summary) triggered() bool {
	_, until := s.scenario.Fault()
	return until > 0 && s.seeds > 0
}

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
