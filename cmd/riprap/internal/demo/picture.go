package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// axis labels the time below a strip of steps, every two seconds.
func axis(on terminal.Strip) string {
	line := blank(on.Columns())
	for at := time.Duration(0); index(at) < on.Bins; at += 2 * time.Second {
		put(line, on.Column(index(at)), fmt.Sprintf("%d s", int(at.Seconds())))
	}
	return strings.TrimRight(string(line), " ")
}

// underline marks the faults below a strip of steps and names them.
func underline(on terminal.Strip, faults []fault) (spans, names string) {
	span, name := blank(on.Columns()), blank(on.Columns())
	for _, f := range faults {
		from, to := on.Column(index(f.From)), on.Column(index(f.until())-1)
		put(span, from, strings.Repeat("━", to-from+1))
		put(name, from, f.label())
	}
	return strings.TrimRight(string(span), " "), strings.TrimRight(string(name), " ")
}

func (f fault) label() string {
	switch f.Kind {
	case throttle:
		return "429"
	case loss:
		return "lost"
	}
	return string(f.Kind)
}

func blank(n int) []rune { return []rune(strings.Repeat(" ", max(n, 0))) }

// put writes s into line from column at, as far as there is room.
func put(line []rune, at int, s string) {
	for i, r := range []rune(s) {
		if at+i < len(line) {
			line[at+i] = r
		}
	}
}
