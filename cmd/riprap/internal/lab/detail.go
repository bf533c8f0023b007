package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

const gutter = 10 // columns for the names beside a picture

// detail shows one policy: what was sent and what was answered over time, and every figure.
func (r *report) detail(b *strings.Builder, s *summary, on terminal.Screen) {
	p := on.Palette
	title := r.name(s) + ": " + s.candidate.About
	if s.candidate.Rival != nil {
		title += " (not riprap)"
	}
	for _, line := range terminal.Wrap(title, on.Width) {
		fmt.Fprintln(b, line)
	}
	if s.seeds == 0 {
		fmt.Fprintln(b, "not simulated")
		return
	}
	strip := terminal.Strip{Bins: len(s.series), Width: on.Width - gutter}
	sent, good := make([]int, len(s.series)), make([]int, len(s.series))
	top := 0
	for i, v := range s.series {
		sent[i], good[i] = v.Tries+v.Retries, v.Good
		top = max(top, sent[i], good[i])
	}
	for i, side := range []struct {
		name   string
		values []int
		paint  func(string) string
	}{{"attempts", sent, p.Retries}, {"answers", good, p.Good}} {
		for j, line := range terminal.Bars(strip, side.values, top, 4) {
			name := ""
			switch {
			case j == 0:
				name = side.name
			case j == 1 && i == 0:
				name = fmt.Sprintf("≤ %.0f/s", float64(top)/s.step.Seconds())
			}
			fmt.Fprintln(b, terminal.Pad(name, gutter)+side.paint(strings.TrimRight(line, " ")))
		}
	}
	if from, until := s.scenario.Fault(); until > 0 {
		at, to := strip.Column(int(from/s.step)), strip.Column(max(int(until/s.step)-1, int(from/s.step)))
		fmt.Fprintln(b, strings.Repeat(" ", gutter+at)+strings.Repeat("━", to-at+1)+" "+string(s.scenario.Triggers[0].Kind))
	}
	end := time.Duration(len(s.series)) * s.step
	axis := terminal.Pad("0 s", strip.Columns()-len(duration(end))-1) + " " + duration(end)
	fmt.Fprintln(b, p.Quiet(strings.Repeat(" ", gutter)+axis))
	fmt.Fprintln(b)
	for _, f := range r.study.columns {
		cell := f.tabled(s)
		for i, line := range terminal.Wrap(f.about, on.Width-28) {
			if i > 0 {
				cell = ""
			}
			fmt.Fprintf(b, "%s  %s\n", terminal.Left(cell, 25), p.Quiet(line))
		}
	}
	for i, w := range s.waits[:min(len(s.waits), 4)] {
		mean := duration(w.Mean().Round(time.Millisecond))
		fmt.Fprintf(b, "%s  %s\n", terminal.Left(mean, 25), p.Quiet(fmt.Sprintf("mean wait before attempt %d, %d times", i+2, w.Count)))
	}
}
