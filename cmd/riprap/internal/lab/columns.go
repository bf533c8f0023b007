package lab

import (
	"fmt"
	"math"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// A column is one figure of a table.
type column struct {
	name  string
	about string // what it says, for the legend
	cell  func(s *summary, on terminal.Screen) string
	left  bool // its text stands at the left
	roomy bool // left out where there is little room
}

const roomy = 100 // columns from which on there is room

var (
	recovery = column{name: "recovers",
		about: "share of the seeds in which the service was healthy again after the trigger, and stayed so, with its 95 % interval",
		cell: func(s *summary, _ terminal.Screen) string {
			low, high := wilson(s.recovered, s.seeds)
			return fmt.Sprintf("%s (%.0f–%.0f)", terminal.Percent(share(s.recovered, s.seeds)), 100*low, 100*high)
		}}
	healthyAfter = column{name: "after",
		about: "how long that took from the end of the trigger, the median",
		cell: func(s *summary, _ terminal.Screen) string {
			if len(s.after) == 0 {
				return "never"
			}
			return fmt.Sprintf("%.0f s", s.after.median())
		}}
	overshoot = column{name: "peak",
		about: "highest load sent since the trigger began, in capacities of the service, or in usual loads if it has none",
		cell:  func(s *summary, _ terminal.Screen) string { return factor(s.overshoot.mean()) }}
	amplification = column{name: "att/call",
		about: "attempts for each call, over the whole run",
		cell:  func(s *summary, _ terminal.Screen) string { return factor(s.amplification.mean()) }}
	duringFault = column{name: "at C",
		about: "attempts at the last service for each call that was made while it was down",
		cell:  func(s *summary, _ terminal.Screen) string { return factor(s.during.mean()) }}
	wasted = column{name: "wasted", roomy: true,
		about: "share of the service's work whose caller had left before it was done",
		cell:  func(s *summary, _ terminal.Screen) string { return terminal.Percent(s.wasted.mean()) }}
	lost = column{name: "lost",
		about: "share of the calls since the trigger began that were not answered and usually would have been",
		cell:  func(s *summary, _ terminal.Screen) string { return terminal.Percent(s.lost.mean()) }}
	answered = column{name: "answered",
		about: "share of the calls that were answered, of those that were over",
		cell:  func(s *summary, _ terminal.Screen) string { return exact(s.answered.mean()) }}
	admitted = column{name: "admitted",
		about: "share of the attempts that found a thread, in the second half of the time",
		cell:  func(s *summary, _ terminal.Screen) string { return exact(s.admitted.mean()) }}
	attempts = column{name: "attempts",
		about: "of all clients together, and their standard deviation over the seeds",
		cell: func(s *summary, _ terminal.Screen) string {
			return fmt.Sprintf("%.1f ± %.1f", s.attempts.mean(), s.attempts.sd())
		}}
	completion = column{name: "completion",
		about: "when the last client was done, and its standard deviation over the seeds",
		cell: func(s *summary, _ terminal.Screen) string {
			return fmt.Sprintf("%.2f ± %.2f s", s.completion.mean(), s.completion.sd())
		}}
	picture = column{name: "answers", left: true,
		about: "calls answered over time, in the first seed",
		cell:  sparkline}

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

func sparkline(s *summary, on terminal.Screen) string {
	width := 10
	if on.Width >= roomy {
		width = 24
	}
	values := make([]float64, len(s.series))
	top := 0.0
	for i, b := range s.series {
		values[i] = float64(b.Good)
		top = max(top, values[i])
	}
	if rate := s.scenario.Arrivals.Rate; rate > 0 {
		top = rate * s.step.Seconds() * 1.1 // what is below the usual has to be seen as such
	}
	return terminal.Spark(values, top, width)
}
