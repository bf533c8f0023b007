package chart

import "math"

// Lines shows one figure against another: calls against clients, say, with a line for each policy.
type Lines struct {
	Title       string // read aloud instead of the picture; not drawn
	Description string // what the picture shows, for those who do not see it
	X, Y        Axis
	Series      []Series
}

// An Axis says what is measured along it. Y starts at zero.
type Axis struct {
	Label string // "clients that call at once"
	Unit  string // follows every number as it stands: "%", "/s", " s"
}

// A Series is one line with its name at the end. Lines differ by their shade, their dashes and their markers.
type Series struct {
	Name   string
	Points []Point // in the order in which they are connected; one that cannot be drawn interrupts the line
}

// A Point is a pair of figures.
type Point struct{ X, Y float64 }

// dotDistance in pixels is the least at which markers on a line can be told apart.
const dotDistance = 14

// SVG is the picture as a file.
func (l *Lines) SVG() string {
	var c canvas
	x, y, ok := l.domains()
	if !ok {
		c.text("quiet", "middle", pictureWidth/2, 40, "no data")
		return c.svg(80, l.Title, l.Description)
	}
	names, rows := 0.0, 0
	for _, s := range l.Series {
		lines := s.name()
		rows += len(lines)
		for _, line := range lines {
			names = max(names, textWidth(line, textSize))
		}
	}
	height := max(200, min(pictureWidth*0.36, 300), float64(rows*textLine))
	yTicks := ticks(y.lo, y.hi, 5, l.Y.Unit)
	gutter := 0.0
	for _, t := range yTicks {
		gutter = max(gutter, textWidth(t.label, tickSize)+8)
	}
	left, right := pad+gutter, pictureWidth-pad-names-leader
	top := c.paragraph("quiet", pad, pad, textLine, wrap(l.Y.Label, pictureWidth-2*pad, textSize, 2)) + 10
	base := top + height
	x.from, x.to = left+8, right // a marker on the axis would hide it
	y.from, y.to = base, top
	for _, t := range yTicks {
		at := y.at(t.at)
		c.line("hair", point{left, at}, point{right, at})
		c.text("quiet tick", "end", left-8, at, t.label)
	}
	c.line("axis", point{left, y.at(max(y.lo, 0))}, point{right, y.at(max(y.lo, 0))})
	for _, t := range ticks(x.lo, x.hi, max(int((right-left)/70), 2), l.X.Unit) {
		at := x.at(t.at)
		c.line("axis", point{at, base}, point{at, base + 4})
		c.text("quiet tick", "middle", at, base+4+tickLine/2, t.label)
	}
	end := c.paragraph("quiet", left, base+4+tickLine, textLine, wrap(l.X.Label, pictureWidth-left-pad, textSize, 2))

	var labels []endLabel
	drawn := 0
	for i, s := range l.Series {
		points := s.curve(x, y)
		last, ok := rightmost(points)
		if !ok {
			continue
		}
		line := [...]string{"line-plain", "line-plain2"}[drawn%2]
		// Four kinds of dashes; beyond them the markers tell the lines apart.
		dash := [...]string{"", " dash1", " dash2", " dash3"}[drawn%4]
		drawn++
		c.line(line+" curve"+dash, points...)
		c.markers(line, i, dots(points, last))
		labels = append(labels, endLabel{s.name(), "ink", line, last})
	}
	c.endLabels(labels, right, top-textLine/2, base+belowBase)
	return c.svg(end+pad/2+2, l.Title, l.Description)
}

// domains are the scales' values, if there are any points.
func (l *Lines) domains() (x, y scale, ok bool) {
	x = scale{lo: math.Inf(1), hi: math.Inf(-1)}
	y = x
	for _, s := range l.Series {
		for _, p := range s.Points {
			if p.drawn() {
				x.lo, x.hi = min(x.lo, p.X), max(x.hi, p.X)
				y.lo, y.hi = min(y.lo, p.Y), max(y.hi, p.Y)
				ok = true
			}
		}
	}
	if !ok {
		return x, y, false
	}
	if x.hi-x.lo <= math.Abs(x.hi)*1e-9 || x.hi-x.lo < 1e-9 {
		x.lo, x.hi = x.lo-max(0.5, math.Abs(x.lo)/20), x.hi+max(0.5, math.Abs(x.hi)/20)
	}
	y.lo, y.hi = min(y.lo, 0), max(y.hi, 0)
	if y.hi-y.lo < 1e-9 {
		y.lo, y.hi = 0, 1
	}
	y.lo, y.hi = y.lo*1.04, y.hi*1.04 // room for a marker
	return x, y, true
}

// drawn tells whether a point has a place in the picture.
func (p Point) drawn() bool { return usable(p.X) && usable(p.Y) }

func (s Series) curve(x, y scale) []point {
	points := make([]point, len(s.Points))
	for i, p := range s.Points {
		points[i] = gap(0)
		if p.drawn() {
			points[i] = point{x.at(p.X), y.at(p.Y)}
		}
	}
	return thin(points, x.to-x.from)
}

// name is the series' name in lines that leave most of the picture's width to the plot.
func (s Series) name() []string {
	return wrap(s.Name, pictureWidth*0.25, textSize, 2)
}

// rightmost is the point that a line's name stands beside: its last, unless the line turns back.
func rightmost(points []point) (last point, ok bool) {
	for _, p := range points {
		if !p.gap() && (!ok || p.x >= last.x) {
			last, ok = p, true
		}
	}
	return last, ok
}

// dots are the points that get a marker: the last, and all that are far enough from the one before and from the last.
func dots(points []point, last point) []point {
	var marked []point
	before := point{math.Inf(-1), 0}
	for _, p := range points {
		if !p.gap() && distance(p, before) >= dotDistance && distance(p, last) >= dotDistance {
			marked, before = append(marked, p), p
		}
	}
	return append(marked, last)
}

func distance(a, b point) float64 { return max(math.Abs(a.x-b.x), math.Abs(a.y-b.y)) }

// markerShapes are drawn from a marker's middle.
var markerShapes = []string{
	"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
	"m-3.7-3.7h7.4v7.4h-7.4z",
	"m0-5l4.8 8.4h-9.6z",
	"m0-5.2l5.2 5.2l-5.2 5.2l-5.2-5.2z",
	"m0 5l4.8-8.4h-9.6z",
}

// markers have a shape of their own for each of the first ten lines: filled, then hollow.
func (c *canvas) markers(line string, series int, at []point) {
	d := ""
	for _, p := range at {
		d += "M" + decimal(p.x) + " " + decimal(p.y) + markerShapes[series%len(markerShapes)]
	}
	fill := "solid-" + line[len("line-"):]
	if series/len(markerShapes)%2 == 1 {
		fill = "paper"
	}
	c.path(line+" marker "+fill, d)
}
