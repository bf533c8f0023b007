package terminal

import (
	"math"
	"strings"
)

// A Strip lays bins out in columns of text, so that pictures of the same bins stand above each other. A column holds as
// many bins as it takes for all of them to fit, every column as many as the others.
type Strip struct {
	Bins  int // all that there may be, of which some may have no value yet
	Width int // columns that there is room for
}

// PerColumn is how many bins a column holds, at least one.
func (p Strip) PerColumn() int {
	room := max(1, p.Width)
	return max(1, (p.Bins+room-1)/room)
}

// Columns is how wide the strip is: all of its room, or less if the bins do not need it.
func (p Strip) Columns() int {
	per := p.PerColumn()
	return max(0, (p.Bins+per-1)/per)
}

// Column is where a bin is drawn. The first one is 0.
func (p Strip) Column(bin int) int { return bin / p.PerColumn() }

// Bars draws values, one for each bin from the first, as bars of blocks that are rows high together, with the value top at
// full height. Pictures that share top can be compared. A column shows the highest of the bins that it holds, so that a
// spike of a single bin is never averaged away, and every value above zero is seen. Bins without a value, values below
// zero and those that are not a number are blank. The lines come from top to bottom, each as wide as the strip.
func Bars[V int | float64](on Strip, values []V, top V, rows int) []string {
	lines := make([]strings.Builder, max(0, rows))
	per := on.PerColumn()
	for c := range on.Columns() {
		from := min(c*per, len(values))
		var highest V
		for _, v := range values[from:min(from+per, len(values))] {
			if v > highest { // unlike max it takes no NaN
				highest = v
			}
		}
		eighths := height(float64(highest), float64(top), rows)
		for row := range lines {
			lines[row].WriteRune(block(eighths - (rows-1-row)*8))
		}
	}
	drawn := make([]string, len(lines))
	for i := range lines {
		drawn[i] = lines[i].String()
	}
	return drawn
}

// Spark is a picture of bars one row high, for the cell of a table. It is at most so many columns wide; Bars says how it
// is drawn.
func Spark(values []float64, top float64, columns int) string {
	return Bars(Strip{len(values), columns}, values, top, 1)[0]
}

// height is how many eighths of a row v is high.
func height(v, top float64, rows int) int {
	switch full := rows * 8; {
	case !(v > 0 && top > 0):
		return 0
	case v >= top:
		return full
	default:
		return max(1, int(math.Round(v/top*float64(full))))
	}
}

// block is a block of the height given in eighths, empty below one and full above eight.
func block(eighths int) rune {
	return []rune(" ▁▂▃▄▅▆▇█")[min(max(eighths, 0), 8)]
}
