package lab

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// counts is what a series has of each step of time, by the names and in the order that a program finds it.
var counts = []struct {
	name string
	of   func(*sim.Bin) int
}{
	{"calls_made", func(b *sim.Bin) int { return b.Calls }},
	{"first_tries", func(b *sim.Bin) int { return b.Tries }},
	{"retries", func(b *sim.Bin) int { return b.Retries }},
	{"attempts_reached", func(b *sim.Bin) int { return b.Reached }},
	{"attempts_served", func(b *sim.Bin) int { return b.Served }},
	{"attempts_served_in_vain", func(b *sim.Bin) int { return b.Wasted }},
	{"attempts_refused", func(b *sim.Bin) int { return b.Refused }},
	{"attempts_dropped", func(b *sim.Bin) int { return b.Dropped }},
	{"calls_answered", func(b *sim.Bin) int { return b.Good }},
	{"calls_given_up", func(b *sim.Bin) int { return b.GaveUp }},
	{"most_attempts_waiting", func(b *sim.Bin) int { return b.Waiting }},
}

// seriesJSON is an object with the length of a step and a list of numbers, one for each step, for each of the counts.
func (s *summary) seriesJSON() json.RawMessage {
	step, _ := json.Marshal(s.step.Seconds()) // neither this nor a list of whole numbers fails
	object := fmt.Appendf(nil, `{"step_seconds":%s`, step)
	for _, c := range counts {
		numbers := make([]int, len(s.series))
		for i := range s.series {
			numbers[i] = c.of(&s.series[i])
		}
		list, _ := json.Marshal(numbers)
		object = fmt.Appendf(object, `,%q:%s`, c.name, list)
	}
	return append(object, '}')
}

// stepCells is one step as a line of a CSV file.
func (s *summary) stepCells(step int) []string {
	cells := []string{number((time.Duration(step) * s.step).Seconds())}
	for _, c := range counts {
		cells = append(cells, strconv.Itoa(c.of(&s.series[step])))
	}
	return cells
}
