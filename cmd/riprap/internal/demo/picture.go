package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A strip lays bins out in columns of text. A column holds as many bins as it takes for the whole run to fit, and shows
// the highest of them, so that a spike of a single bin is never averaged away.
type strip struct {
	bins    int // of the whole run
	perCol  int
	columns int
}

func newStrip(bins, width int) strip {
	per := max(1, (bins+width-1)/width)
	return strip{bins, per, (bins + per - 1) / per}
}

// column is where a bin is drawn.
func (p strip) column(bin int) int { return bin / p.perCol }

// bars draws values as columns of blocks, rows high, with the value top at full height. The lines are padded to the
// strip's width.
func (p strip) bars(values []int, top, rows int) []string {
	lines := make([]strings.Builder, rows)
	for c := range p.columns {
		from := min(c*p.perCol, len(values))
		v := slices.Max(append([]int{0}, values[from:min(from+p.perCol, len(values))]...))
		eighths := 0
		if v > 0 && top > 0 {
			eighths = min(max(1, (v*rows*8+top/2)/top), rows*8)
		}
		for row := range rows {
			lines[row].WriteRune(block(eighths - (rows-1-row)*8))
		}
	}
	out := make([]string, rows)
	for i := range lines {
		out[i] = lines[i].String()
	}
	return out
}

// block is a block of the height given in eighths, empty below one and full above eight.
func block(eighths int) rune {
	return []rune(" ▁▂▃▄▅▆▇█")[min(max(eighths, 0), 8)]
}

// axis labels the strip's time, every two seconds.
func (p strip) axis() string {
	line := blank(p.columns)
	for at := time.Duration(0); index(at) < p.bins; at += 2 * time.Second {
		put(line, p.column(index(at)), fmt.Sprintf("%d s", int(at.Seconds())))
	}
	return strings.TrimRight(string(line), " ")
}

// faults underlines the spans of the faults and names them.
func (p strip) faults(faults []fault) (spans, names string) {
	span, name := blank(p.columns), blank(p.columns)
	for _, f := range faults {
		from, to := p.column(index(f.From)), p.column(index(f.until())-1)
		put(span, from, strings.Repeat("━", to-from+1))
		put(name, from, f.label())
	}
	return strings.TrimRight(string(span), " "), strings.TrimRight(string(name), " ")
}

func (f fault) label() string {
	if f.Kind == throttle {
		return "429"
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
