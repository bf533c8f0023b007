package chart

// Bars compares single figures, a horizontal bar for each, from zero.
type Bars struct {
	Title       string // read aloud instead of the picture; not drawn
	Description string // what the picture shows, for those who do not see it
	Label       string // what is measured: "calls at C for each click"
	Unit        string // follows every figure as it stands: "%", "/s", " s"
	Bars        []Bar
}

// A Bar is one figure.
type Bar struct {
	Label     string
	Value     float64 // below zero is drawn as zero; NaN and infinite as unknown
	Low, High float64 // an interval around the value, drawn as a whisker; zero means none
}

const (
	barHeight  = 18
	barBetween = 12
)

// SVG is the picture as a file.
func (b *Bars) SVG() string {
	var c canvas
	if len(b.Bars) == 0 {
		c.text("quiet", "middle", pictureWidth/2, 40, "no data")
		return c.svg(80, b.Title, b.Description)
	}
	longest, names, texts := 0.0, 0.0, 0.0
	for _, bar := range b.Bars {
		longest = max(longest, bar.end())
		names = max(names, textWidth(bar.Label, textSize))
		texts = max(texts, textWidth(b.text(bar), textSize))
	}
	if longest < 1e-9 {
		longest = 1
	}
	// Long labels stand above their bars.
	left, above := pad+names+12, 0.0
	if names > pictureWidth*0.36 {
		left, above = pad, textLine+3
	}
	length := scale{lo: 0, hi: longest, from: left, to: max(pictureWidth-pad-texts-10, left+40)}
	y := c.paragraph("quiet", pad, pad, textLine, wrap(b.Label, pictureWidth-2*pad, textSize, 2))
	if y > pad {
		y += 8
	}
	top := y
	for _, bar := range b.Bars {
		middle := y + above + barHeight/2
		if above > 0 {
			c.text("ink", "start", left, y+textLine/2, cut(bar.Label, pictureWidth-2*pad, textSize))
		} else {
			c.text("ink", "end", left-12, middle, tidy(bar.Label))
		}
		end := left
		if bar.drawn() {
			end = c.bar(bar, length, middle)
		}
		c.text("ink", "start", end+8, middle, b.text(bar))
		y += above + barHeight
		if above > 0 { // or the axis would run through the labels
			c.line("axis", point{left, y - barHeight}, point{left, y})
		}
		y += barBetween
	}
	y -= barBetween
	if above == 0 {
		c.line("axis", point{left, top - 4}, point{left, y + 4})
	}
	return c.svg(y+pad, b.Title, b.Description)
}

// bar draws one around its middle and returns where it ends.
func (c *canvas) bar(bar Bar, length scale, middle float64) float64 {
	from, to := length.from, length.at(max(bar.Value, 0))
	if bar.Value > 0 {
		to = max(to, from+1)
	}
	c.rect("fill-plain", from, middle-barHeight/2, to-from, barHeight)
	low, high, ok := bar.interval()
	if !ok {
		return to
	}
	low, high = length.at(low), length.at(high)
	whisker := []point{{low, middle - 4}, {low, middle + 4}, gap(low), {low, middle}, {high, middle}, gap(high), {high, middle - 4}, {high, middle + 4}}
	c.line("halo", whisker...)
	c.line("line-plain whisker", whisker...)
	return max(to, high)
}

// drawn tells whether the value is a number with a place in the picture.
func (bar Bar) drawn() bool { return usable(bar.Value) }

// interval is the whisker, if there is one.
func (bar Bar) interval() (low, high float64, ok bool) {
	if !usable(bar.Low) || !usable(bar.High) || bar.High <= bar.Low || bar.High <= 0 {
		return 0, 0, false
	}
	return max(bar.Low, 0), bar.High, true
}

// end is the largest value that is drawn of the bar.
func (bar Bar) end() float64 {
	if !bar.drawn() {
		return 0
	}
	if _, high, ok := bar.interval(); ok {
		return max(bar.Value, high)
	}
	return max(bar.Value, 0)
}

func (b *Bars) text(bar Bar) string {
	if !bar.drawn() {
		return "unknown"
	}
	return cut(figure(bar.Value, b.Unit), pictureWidth*0.36, textSize)
}
