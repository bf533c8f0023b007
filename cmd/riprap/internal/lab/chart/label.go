package chart

import (
	"cmp"
	"slices"
	"strings"
)

// spread places labels of the given sizes in a row, each as near to where it wants its middle as the others allow, none
// over another, and all between lo and hi if there is room for all. want must be sorted.
//
// Without their sizes the labels are points that must not change places: neighbors that would are pooled, at the mean of
// what they want, which is the arrangement with the least sum of squared shifts.
func spread(want, size []float64, lo, hi float64) []float64 {
	type pool struct {
		sum   float64
		count int
	}
	var pools []pool
	total := 0.0 // of the sizes so far
	for i, w := range want {
		pools = append(pools, pool{w - total - size[i]/2, 1})
		total += size[i]
		for n := len(pools); n > 1 && pools[n-1].sum/float64(pools[n-1].count) < pools[n-2].sum/float64(pools[n-2].count); n-- {
			pools[n-2] = pool{pools[n-2].sum + pools[n-1].sum, pools[n-2].count + pools[n-1].count}
			pools = pools[:n-1]
		}
	}
	placed := make([]float64, 0, len(want))
	before := 0.0
	for _, p := range pools {
		start := max(lo, min(p.sum/float64(p.count), hi-total))
		for range p.count {
			s := size[len(placed)]
			placed = append(placed, start+before+s/2)
			before += s
		}
	}
	return placed
}

// An endLabel names a line beside its end.
type endLabel struct {
	lines []string
	class string // of the text
	line  string // class of the thin leader from the line's end to the text
	end   point
}

const (
	leader    = 16 // from a plot's edge to the labels beside it
	belowBase = 4  // how far they reach below its base, where the figures of x are
)

// endLabels writes the names right of a plot that ends at x, those that would lie over each other pushed apart.
func (c *canvas) endLabels(labels []endLabel, x, top, bottom float64) {
	slices.SortStableFunc(labels, func(a, b endLabel) int { return cmp.Compare(a.end.y, b.end.y) })
	var want, size []float64
	for _, l := range labels {
		height := float64(len(l.lines) * textLine)
		if len(l.lines) > 1 {
			height += 5 // or its lines would read as labels of their own
		}
		want, size = append(want, l.end.y), append(size, height)
	}
	for i, y := range spread(want, size, top, bottom) {
		l := labels[i]
		c.line(l.line+" leader", l.end, point{max(x, l.end.x), l.end.y}, point{x + leader - 4, y})
		c.paragraph(l.class, x+leader, y-float64(len(l.lines)*textLine)/2, textLine, l.lines)
	}
}

// textWidth estimates how wide a text is in the system's sans, whichever that is: rather too wide than too narrow.
func textWidth(s string, size float64) float64 {
	em := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune(" iljtfrI.,:;'|!()[]/\u00a0", r):
			em += 0.36
		case strings.ContainsRune("mwMW@%—…", r):
			em += 0.92
		case r >= 'A' && r <= 'Z':
			em += 0.7
		case r < 0x2000:
			em += 0.59
		default:
			em++
		}
	}
	return float64(em * size)
}

// cut shortens a text to a width.
func cut(s string, width, size float64) string {
	s = tidy(s)
	whole, short := 0.0, 0 // the width so far, and how much of the text leaves room for the ellipsis
	for i, r := range s {
		if whole+textWidth("…", size) <= width {
			short = i
		}
		whole += textWidth(string(r), size)
		if whole > width {
			return strings.TrimSpace(s[:short]) + "…"
		}
	}
	return s
}

// wrap breaks a text into at most limit lines of a width, the last one cut.
func wrap(s string, width, size float64, limit int) []string {
	var lines []string
	words := strings.Fields(s)
	for len(words) > 0 {
		n, w := 1, textWidth(words[0], size)
		for ; n < len(words); n++ {
			if w += textWidth(" "+words[n], size); w > width {
				break
			}
		}
		if len(lines) == limit-1 {
			n = len(words)
		}
		lines = append(lines, cut(strings.Join(words[:n], " "), width, size))
		words = words[n:]
	}
	return lines
}
