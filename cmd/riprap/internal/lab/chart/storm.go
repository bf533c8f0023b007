package chart

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Storm shows what calls do to a service over time, in requests per second: first tries with their retries on top, what
// was answered in time, and what the service can do. Its panels, one a policy, share the scale and the time.
type Storm struct {
	Title       string        // read aloud instead of the picture; not drawn
	Description string        // what the picture shows, for those who do not see it
	Step        time.Duration // between two values; zero means a second
	Capacity    float64       // requests per second that the service can answer; zero means not drawn
	Faults      []Span
	Panels      []Panel // side by side where they fit, else below each other
}

// A Span is a stretch of time from the start, drawn as a pale band.
type Span struct {
	From, To time.Duration
	Label    string // empty means "fault"
}

// A Panel is the run of one policy. Each list has one value a step, in requests per second; a nil list is not drawn. What
// is no rate (negative, NaN, infinite) counts as nothing sent, and as a gap in the goodput.
type Panel struct {
	Title   string // the policy's name
	Caption string // the verdict with its figure
	First   []float64
	Retries []float64
	Goodput []float64
}

const (
	leastPanel = 380 // the narrowest panel that stands beside another
	betweenX   = 20
	betweenY   = 22
	strip      = 20 // above a plot, for the faults' labels
)

// storm is a Storm with its measures.
type storm struct {
	*Storm
	canvas
	columns       int
	width         float64 // of a plot
	height        float64
	column        float64 // a plot with its labels
	gutter        float64 // left of the first plot, for the scale
	strip         float64
	length        float64 // in seconds
	step          float64
	x, y          scale
	xTicks, yTick []tick
}

// SVG is the picture as a file.
func (s *Storm) SVG() string {
	d := s.measure()
	if len(s.Panels) == 0 {
		d.text("quiet", "middle", pictureWidth/2, 40, "no data")
		return d.svg(80, s.Title, s.Description)
	}
	y := float64(pad)
	for from := 0; from < len(s.Panels); from += d.columns {
		row := s.Panels[from : from+d.columns]
		last := from+d.columns == len(s.Panels)
		top := d.headings(row, y)
		for i := range row {
			d.panel(&row[i], d.left(i), top, i == 0, last)
		}
		y = top + d.height + betweenY
	}
	return d.svg(y-betweenY+tickLine+8+pad/2, s.Title, s.Description)
}

func (s *Storm) measure() *storm {
	d := &storm{Storm: s, columns: 1, height: 180, step: cmp.Or(max(s.Step, 0), time.Second).Seconds()}
	highest, steps := 0.0, 1
	if rate(s.Capacity) > 0 {
		highest = s.Capacity
	}
	for i := range s.Panels {
		p := &s.Panels[i]
		n := p.steps()
		steps = max(steps, n)
		for k := range n {
			highest = max(highest, value(p.First, k)+value(p.Retries, k), value(p.Goodput, k))
		}
	}
	d.length = float64(steps) * d.step
	if highest < 1e-9 {
		highest = 1
	}
	highest *= 1.04 // room above the tallest spike

	for n := 2; n <= len(s.Panels); n++ {
		if len(s.Panels)%n == 0 && float64(n*leastPanel) <= pictureWidth {
			d.columns = n
		}
	}
	d.yTick = ticks(0, highest, 5, "/s")
	for _, t := range d.yTick {
		d.gutter = max(d.gutter, textWidth(t.label, tickSize)+8)
	}
	names := 0.0
	for _, name := range []string{"first tries", "no retries", "goodput", d.capacityLabel()} {
		names = max(names, textWidth(name, textSize))
	}
	d.column = (pictureWidth - 2*pad - d.gutter - float64((d.columns-1)*betweenX)) / float64(d.columns)
	d.width = d.column - leader - names
	if len(s.Faults) > 0 {
		d.strip = strip
	}
	d.x = scale{lo: 0, hi: d.length, from: 0, to: d.width}
	d.y = scale{lo: 0, hi: highest, from: d.height, to: 0}
	d.xTicks = timeTicks(d.length, max(int(d.width/90), 2))
	return d
}

func (d *storm) capacityLabel() string {
	if rate(d.Capacity) == 0 {
		return ""
	}
	return "capacity " + figure(d.Capacity, "/s")
}

// left is where the plot of a column begins.
func (d *storm) left(column int) float64 {
	return pad + d.gutter + float64(float64(column)*(d.column+betweenX))
}

// headings writes the titles and captions of a row from y and returns where its plots begin, all at the same height.
func (d *storm) headings(row []Panel, y float64) (top float64) {
	below := func(y float64, class string, lineHeight, size float64, text func(*Panel) string) float64 {
		end := y
		for i := range row {
			x, width := d.left(i), d.column
			if d.columns == 1 {
				x, width = pad, d.column+d.gutter
			}
			end = max(end, d.paragraph(class, x, y, lineHeight, wrap(text(&row[i]), width, size, 3)))
		}
		return end
	}
	// A bold text is wider than the estimate for a plain one.
	y = below(y, "ink title", titleLine, titleSize*1.06, func(p *Panel) string { return p.Title })
	y = below(y, "ink", textLine, textSize, func(p *Panel) string { return p.Caption })
	return y + 8 + d.strip
}

// panel draws a plot with its upper left corner at x, y.
func (d *storm) panel(p *Panel, x, y float64, scaled, timed bool) {
	d.faults(x, y)
	d.axes(x, y, scaled, timed)
	n := p.steps()
	if n == 0 {
		d.text("quiet", "middle", x+d.width/2, y+d.height/2, "no data")
	}
	first := d.curve(n, x, y, func(k int) float64 { return value(p.First, k) })
	total := d.curve(n, x, y, func(k int) float64 { return value(p.First, k) + value(p.Retries, k) })
	goodput := d.curve(len(p.Goodput), x, y, func(k int) float64 {
		if v := p.Goodput[k]; usable(v) {
			return max(v, 0)
		}
		return math.NaN()
	})
	base := y + d.height
	if p.Retries != nil {
		d.path("fill-retry", area(total, base))
	}
	if p.First != nil {
		d.path("fill-first", area(first, base))
	}
	d.line("axis", point{x, base}, point{x + d.width, base})
	var labels []endLabel
	if name := d.capacityLabel(); name != "" {
		level := y + d.y.at(d.Capacity)
		d.line("limit", point{x, level}, point{x + d.width, level})
		labels = append(labels, endLabel{[]string{name}, "ink", "limit", point{x + d.width, level}})
	}
	d.line("halo", goodput...)
	d.line("line-good thin", goodput...)

	if n > 0 && len(p.Retries) > 0 {
		from, to := first[len(first)-1], total[len(total)-1]
		name := "retries"
		if from.y-to.y < 0.5 {
			name = "no retries"
		}
		labels = append(labels, endLabel{[]string{name}, "text-retry", "line-retry", point{to.x, (from.y + to.y) / 2}})
	}
	if end, ok := ending(goodput); ok {
		labels = append(labels, endLabel{[]string{"goodput"}, "text-good", "line-good", end})
	}
	if n > 0 && len(p.First) > 0 {
		end := first[len(first)-1]
		labels = append(labels, endLabel{[]string{"first tries"}, "text-first", "line-first", point{end.x, (end.y + base) / 2}})
	}
	d.endLabels(labels, x+d.width, y, base+belowBase)
}

// axes draws the lines of the scale behind a plot, its figures if scaled, and the figures of the time if timed.
func (d *storm) axes(x, y float64, scaled, timed bool) {
	for _, t := range d.yTick {
		level := y + d.y.at(t.at)
		d.line("hair", point{x, level}, point{x + d.width, level})
		if scaled {
			d.text("quiet tick", "end", x-8, level, t.label)
		}
	}
	base := y + d.height
	for _, t := range d.xTicks {
		at := x + d.x.at(t.at)
		d.line("axis", point{at, base}, point{at, base + 4})
		if timed {
			d.text("quiet tick", "middle", at, base+4+tickLine/2, t.label)
		}
	}
}

// faults draws the bands behind a plot and their labels above it.
func (d *storm) faults(x, y float64) {
	spans := slices.DeleteFunc(slices.Clone(d.Faults), func(f Span) bool { return f.To <= f.From || f.From.Seconds() >= d.length || f.To <= 0 })
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.To, b.To) })
	var want, size []float64
	var names []string
	room := d.column // the labels beside the plot begin below
	for _, f := range spans {
		from, to := d.x.at(f.From.Seconds()), d.x.at(f.To.Seconds())
		d.rect("band", x+from, y-strip, max(to-from, 2), d.height+strip)
		name := cut(cmp.Or(tidy(f.Label), "fault"), d.column/2, tickSize)
		w := textWidth(name, tickSize) + 12
		if room -= w; room < 0 {
			continue // the band says it all the same
		}
		names, want, size = append(names, name), append(want, to+w/2), append(size, w)
	}
	for i, middle := range spread(want, size, 0, d.column) {
		d.text("quiet tick", "start", x+middle-size[i]/2+6, y-strip/2, names[i])
	}
}

// curve has a point in the middle of each step, and reaches from the start of the first to the end of the last.
func (d *storm) curve(n int, x, y float64, value func(int) float64) []point {
	if n == 0 {
		return nil
	}
	points := make([]point, 0, n+2)
	add := func(seconds, v float64) {
		p := gap(x + d.x.at(seconds))
		if !math.IsNaN(v) {
			p.y = y + d.y.at(v)
		}
		points = append(points, p)
	}
	add(0, value(0))
	for k := range n {
		add(float64((float64(k)+0.5)*d.step), value(k))
	}
	add(float64(float64(n)*d.step), value(n-1))
	return thin(points, d.width)
}

func (p *Panel) steps() int { return max(len(p.First), len(p.Retries), len(p.Goodput)) }

// value is the rate at step k, zero beyond the list's end.
func value(rates []float64, k int) float64 {
	if k >= len(rates) {
		return 0
	}
	return rate(rates[k])
}

func rate(v float64) float64 {
	if !usable(v) {
		return 0
	}
	return max(v, 0)
}

// ending is the last point of a curve, if it has any.
func ending(points []point) (point, bool) {
	for _, p := range slices.Backward(points) {
		if !p.gap() {
			return p, true
		}
	}
	return point{}, false
}
