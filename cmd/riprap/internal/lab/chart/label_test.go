package chart

import (
	"math"
	"slices"
	"testing"
	"unicode/utf8"
)

func TestLabelsMoveNoFartherThanTheyMust(t *testing.T) {
	for _, c := range []struct {
		name       string
		want, size []float64
		placed     []float64
	}{
		{"none", nil, nil, []float64{}},
		{"with room", []float64{20, 60}, []float64{10, 10}, []float64{20, 60}},
		{"two at the same place share the shift", []float64{50, 50}, []float64{10, 10}, []float64{45, 55}},
		{"a third that is near joins them", []float64{50, 50, 56}, []float64{10, 10, 10}, []float64{42, 52, 62}},
		{"sizes differ", []float64{50, 50}, []float64{10, 30}, []float64{40, 60}},
		{"kept inside", []float64{1, 99}, []float64{10, 10}, []float64{5, 95}},
		{"a pile at the end", []float64{98, 99, 100}, []float64{10, 10, 10}, []float64{75, 85, 95}},
		{"more than fit begin at the start", []float64{50, 50}, []float64{80, 80}, []float64{40, 120}},
	} {
		got := spread(c.want, c.size, 0, 100)
		if !slices.EqualFunc(got, c.placed, func(a, b float64) bool { return math.Abs(a-b) < 0.01 }) {
			t.Errorf("%s: spread(%v, %v, 0, 100) = %v, want %v", c.name, c.want, c.size, got, c.placed)
		}
	}
}

func FuzzSpread(f *testing.F) {
	f.Add([]byte{50, 50, 56, 0, 255, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, size []float64
		total := 0.0
		for _, b := range data {
			want, size = append(want, float64(b)), append(size, float64(b%7+1))
			total += float64(b%7 + 1)
		}
		slices.Sort(want)
		got := spread(want, size, 0, 255)
		if len(got) != len(want) {
			t.Fatalf("spread(%v): got %d places", want, len(got))
		}
		for i := range got {
			low, high := got[i]-size[i]/2, got[i]+size[i]/2
			if i > 0 && low < got[i-1]+size[i-1]/2-1e-6 {
				t.Errorf("spread(%v, %v) = %v: label %d lies over the one before", want, size, got, i)
			}
			if low < -1e-6 || total <= 255 && high > 255+1e-6 {
				t.Errorf("spread(%v, %v) = %v: label %d lies outside", want, size, got, i)
			}
		}
	})
}

func TestTextsThatDoNotFitAreWrappedAndCut(t *testing.T) {
	const s = "Never recovers: 0 % of the calls answered 9 minutes after the fault"
	if got := wrap(s, 1000, textSize, 3); !slices.Equal(got, []string{s}) {
		t.Errorf("with room: got %q", got)
	}
	if got := wrap("", 1000, textSize, 3); got != nil {
		t.Errorf("no text: got %q", got)
	}
	got := wrap(s, 150, textSize, 2)
	if len(got) != 2 || got[0] != "Never recovers: 0 % of" {
		t.Errorf("in two lines of 150 px: got %q", got)
	}
	for _, line := range append(got, wrap("anunbreakablewordthatislongerthanitsline", 150, textSize, 3)...) {
		if w := textWidth(line, textSize); w > 150 {
			t.Errorf("got %q, %v px wide, want at most 150", line, w)
		}
	}
	if last, _ := utf8.DecodeLastRuneInString(got[1]); last != '…' {
		t.Errorf("got the last line %q, want it to end with an ellipsis", got[1])
	}
}

func TestNamesAtTheEndsOfLinesDoNotOverlap(t *testing.T) {
	l := &Lines{}
	for i := range 30 {
		name := "a name that does not fit into a single line"
		if i%2 == 0 {
			name = "short"
		}
		l.Series = append(l.Series, Series{Name: name, Points: []Point{{0, 0}, {1, 5}}})
	}
	var y []float64
	for _, e := range find(read(t, l.SVG()), "ink") {
		y = append(y, e.number(t, "y"))
	}
	slices.Sort(y)
	if len(y) != 45 {
		t.Fatalf("got %d lines of names, want 45", len(y))
	}
	for i := range y[1:] {
		if y[i+1]-y[i] < textLine-0.11 {
			t.Errorf("got names at %v and %v, want %d px between them", y[i], y[i+1], textLine)
		}
	}
}

func TestLinesDifferByDashAndMarker(t *testing.T) {
	l := &Lines{}
	for range 8 {
		l.Series = append(l.Series, Series{Name: "a", Points: []Point{{0, 0}, {1, 5}}})
	}
	all := read(t, l.SVG())
	dashes, markers := map[string]bool{}, map[string]bool{}
	for _, e := range find(all, "curve") {
		dashes[e.class] = true
	}
	for _, e := range find(all, "marker") {
		markers[e.class+e.attr["d"]] = true
	}
	if len(dashes) != 4 || len(markers) != 8 {
		t.Errorf("8 lines: got %d kinds of dashes and %d markers, want 4 and 8", len(dashes), len(markers))
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	b := &Bars{Bars: []Bar{{Value: 64}, {Value: 16}, {Value: -3}, {Value: math.NaN()}, {Value: math.Inf(1)}}}
	all := read(t, b.SVG())
	var widths []float64
	for _, e := range find(all, "fill-plain") {
		widths = append(widths, e.number(t, "width"))
	}
	if len(widths) != 3 || math.Abs(widths[0]-4*widths[1]) > 0.3 || widths[2] != 0 {
		t.Errorf("got bars of %v px, want 4 to 1 to nothing", widths)
	}
	if got, want := texts(all), []string{"64", "16", "−3", "unknown", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("got the texts %q, want %q", got, want)
	}
}

func TestAWhiskerSpansTheInterval(t *testing.T) {
	b := &Bars{Bars: []Bar{{Value: 20, Low: 10, High: 40}, {Value: 20, Low: 9, High: 3}}}
	all := read(t, b.SVG())
	whiskers := find(all, "whisker")
	if len(whiskers) != 1 {
		t.Fatalf("got %d whiskers, want 1: the other interval ends before it begins", len(whiskers))
	}
	bar := find(all, "fill-plain")[0]
	points := pathPoints(t, whiskers[0].attr["d"])
	start, length := bar.number(t, "x"), bar.number(t, "width")
	low, high := points[0].x, points[len(points)-1].x
	if math.Abs(low-start-length/2) > 0.2 || math.Abs(high-start-2*length) > 0.2 {
		t.Errorf("got a whisker from %v to %v beside a bar from %v of length %v, want half to twice", low, high, start, length)
	}
	value := all[slices.IndexFunc(all, func(e element) bool { return e.text == "20" })]
	if x := value.number(t, "x"); x < high {
		t.Errorf("got the value at %v, on the whisker that ends at %v", x, high)
	}
}
