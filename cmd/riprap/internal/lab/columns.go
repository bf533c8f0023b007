package lab

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// A column is one figure of a table.
type column struct {
	name  string
	about string // what it says, for the legend
	cell  func(*summary) string
}

var (
	recovery = column{"recovers", "share of the seeds in which the service was healthy again, and stayed so, with its 95 % interval",
		func(s *summary) string {
			low, high := wilson(s.recovered, s.seeds)
			return fmt.Sprintf("%.2f (%.2f–%.2f)", share(s.recovered, s.seeds), low, high)
		}}
	healthyAfter = column{"after", "time from the end of the trigger until then: the median, and the least and the most if they differ",
		func(s *summary) string {
			if len(s.after) == 0 {
				return "never"
			}
			least, most := slices.Min(s.after), slices.Max(s.after)
			if least == most {
				return fmt.Sprintf("%.0f s", least)
			}
			return fmt.Sprintf("%.0f s (%.0f–%.0f)", s.after.median(), least, most)
		}}
	overshoot = column{"overshoot", "highest load sent since the trigger began, in capacities of the service, or in usual loads if it has none",
		func(s *summary) string { return factor(s.overshoot.mean()) }}
	amplification = column{"attempts/call", "attempts for each call, over the whole run",
		func(s *summary) string { return factor(s.amplification.mean()) }}
	duringFault = column{"at C/call, down", "attempts at the last service for each call that was made while it was down",
		func(s *summary) string { return factor(s.during.mean()) }}
	wasted = column{"wasted", "share of the service's work whose caller had left before it was done",
		func(s *summary) string { return terminal.Percent(s.wasted.mean()) }}
	lost = column{"lost", "share of the calls since the trigger began that were not answered and usually would have been",
		func(s *summary) string { return terminal.Percent(s.lost.mean()) }}
	answered = column{"answered", "share of the calls that were answered, of those that were over",
		func(s *summary) string { return exact(s.answered.mean()) }}
	admitted = column{"admitted", "share of the attempts that found a thread, in the second half of the time",
		func(s *summary) string { return exact(s.admitted.mean()) }}
	attempts = column{"attempts", "of all clients together, and the standard deviation over the seeds",
		func(s *summary) string { return fmt.Sprintf("%.1f ± %.1f", s.attempts.mean(), s.attempts.sd()) }}
	completion = column{"completion", "when the last client was done, and the standard deviation over the seeds",
		func(s *summary) string {
			return fmt.Sprintf("%.2f s ± %.2f", s.completion.mean(), s.completion.sd())
		}}
	picture = column{"answers", "calls answered over time, in one of the seeds", sparkline}

	storm = []column{recovery, healthyAfter, overshoot, amplification, wasted, lost, picture}
)

func factor(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf("%.2f", x)
}

// exact is a share in per cent with two digits, for those that are compared with a formula.
func exact(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// sparks is the width of the small pictures.
const sparks = 24

func sparkline(s *summary) string {
	values := make([]float64, len(s.series))
	top := 0.0
	for i, b := range s.series {
		values[i] = float64(b.Good)
		top = max(top, values[i])
	}
	if rate := s.scenario.Arrivals.Rate; rate > 0 {
		top = rate * s.step.Seconds() * 1.1 // so that what is below the usual is seen to be
	}
	return terminal.Spark(values, top, sparks)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.4g s", d.Seconds()) }
