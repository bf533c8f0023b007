package chart

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// heights returns where each panel draws its curve of a class, as the level at its start.
func levels(t *testing.T, all []element, class string) []float64 {
	t.Helper()
	var list []float64
	for _, e := range find(all, class) {
		if e.name == "path" && !strings.Contains(e.class, "leader") {
			list = append(list, pathPoints(t, e.attr["d"])[0].y)
		}
	}
	return list
}

func TestPanelsShareTheScale(t *testing.T) {
	for panels, columns := range map[int]int{2: 2, 3: 1} {
		s := aStorm()
		s.Panels = append(s.Panels, s.Panels[0])[:panels]
		all := read(t, s.SVG())
		capacity, goodput := levels(t, all, "limit"), levels(t, all, "line-good")
		if len(capacity) != panels || len(goodput) != panels {
			t.Fatalf("%d panels: got %d capacity lines and %d of goodput, want one each", panels, len(capacity), len(goodput))
		}
		// One panel has four times the load of the other, and yet 20/s are as high in both.
		first, second := goodput[0]-capacity[0], goodput[1]-capacity[1]
		if math.Abs(first-second) > 0.11 || first <= 0 {
			t.Errorf("%d panels: got 20/s as %.1f px in one and %.1f in the other", panels, first, second)
		}
		if beside := capacity[0] == capacity[1]; beside != (columns == 2) {
			t.Errorf("%d panels: got the first two side by side: %v", panels, beside)
		}
	}
}

func TestPanelsShareTheTime(t *testing.T) {
	s := aStorm()
	s.Panels[1] = Panel{Title: "cut short", First: []float64{280, 280, 280}}
	var ends []float64
	for _, e := range find(read(t, s.SVG()), "fill-first") {
		points := pathPoints(t, e.attr["d"])
		ends = append(ends, points[len(points)-1].x-points[0].x)
	}
	if len(ends) != 2 || math.Abs(ends[1]-ends[0]/4) > 0.11 {
		t.Errorf("got areas of %v px for 12 and 3 steps, want a quarter", ends)
	}
}

func TestRetriesStandOnFirstTries(t *testing.T) {
	s := &Storm{Step: time.Second, Panels: []Panel{{First: []float64{100, 100}, Retries: []float64{300, 300}}}}
	all := read(t, s.SVG())
	top := func(class string) (height float64) {
		points := pathPoints(t, find(all, class)[0].attr["d"])
		for _, p := range points {
			height = max(height, points[0].y-p.y)
		}
		return height
	}
	if first, both := top("fill-first"), top("fill-retry"); math.Abs(both-4*first) > 0.3 {
		t.Errorf("got first tries of %.1f px and retries up to %.1f, want four times as high", first, both)
	}
}

func TestLabelsOfAPanelDoNotOverlap(t *testing.T) {
	for _, value := range []float64{0, 1, 280, 300} {
		s := &Storm{Capacity: 300, Panels: []Panel{{First: []float64{value}, Retries: []float64{0}, Goodput: []float64{value}}}}
		all := read(t, s.SVG())
		var y []float64
		for _, name := range []string{"capacity 300/s", "no retries", "goodput", "first tries"} {
			i := slices.IndexFunc(all, func(e element) bool { return e.text == name })
			if i < 0 {
				t.Fatalf("first tries of %v/s: got no label %q in %q", value, name, texts(all))
			}
			y = append(y, all[i].number(t, "y"))
		}
		slices.Sort(y)
		for i := range y[1:] {
			if y[i+1]-y[i] < textLine-0.11 {
				t.Errorf("first tries of %v/s: got labels at %v, want %d px between them", value, y, textLine)
			}
		}
	}
}

func TestALabelSaysWhenRetriesAreGone(t *testing.T) {
	names := texts(read(t, aStorm().SVG()))
	if !slices.Contains(names, "retries") || !slices.Contains(names, "no retries") {
		t.Errorf("got %q, want retries in one panel and none at the end of the other", names)
	}
}

func TestASpikeOfOneStepKeepsItsHeight(t *testing.T) {
	first := slices.Repeat([]float64{100}, 100_000)
	first[77_777] = 1000
	s := &Storm{Step: time.Millisecond, Panels: []Panel{{First: first}}}
	points := pathPoints(t, find(read(t, s.SVG()), "fill-first")[0].attr["d"])
	lowest, usual := points[0].y, points[1].y
	highest := lowest
	for _, p := range points {
		highest = min(highest, p.y)
	}
	if got := (lowest - highest) / (lowest - usual); math.Abs(got-10) > 0.1 {
		t.Errorf("got a spike %.2f times the rest, want 10", got)
	}
}

func TestAFaultIsABandWithItsLabel(t *testing.T) {
	s := aStorm()
	s.Faults = []Span{
		{60 * time.Second, 80 * time.Second, ""},
		{20 * time.Second, 40 * time.Second, "outage"},
		{time.Hour, 2 * time.Hour, "after the end"},
		{50 * time.Second, 50 * time.Second, "of no length"},
	}
	s.Panels = s.Panels[:1]
	all := read(t, s.SVG())
	if bands := find(all, "band"); len(bands) != 2 {
		t.Errorf("got %d bands, want 2", len(bands))
	}
	names := texts(all)
	outage, fault := slices.Index(names, "outage"), slices.Index(names, "fault")
	if outage < 0 || fault < outage || slices.Contains(names, "after the end") || slices.Contains(names, "of no length") {
		t.Errorf("got the labels %q, want outage and fault", names)
	}
}

func TestLabelsOfNeighboringFaultsDoNotOverlap(t *testing.T) {
	s := aStorm()
	s.Faults = nil
	for i := range 40 {
		s.Faults = append(s.Faults, Span{time.Duration(i) * time.Second, time.Duration(i+1) * time.Second, "restart"})
	}
	s.Panels = s.Panels[:1]
	var x []float64
	for _, e := range read(t, s.SVG()) {
		if e.text == "restart" {
			x = append(x, e.number(t, "x"))
		}
	}
	if len(x) < 2 || len(x) == 40 {
		t.Fatalf("got %d labels, want as many as have room", len(x))
	}
	for i := range x[1:] {
		if x[i+1]-x[i] < textWidth("restart", tickSize) {
			t.Errorf("got labels at %v, want %.1f between them", x, textWidth("restart", tickSize))
		}
	}
}

func TestMissingGoodputIsAGapAndNotZero(t *testing.T) {
	s := &Storm{Panels: []Panel{{Goodput: []float64{100, 100, math.NaN(), 100, 100}}}}
	d := find(read(t, s.SVG()), "line-good")[0].attr["d"]
	if strings.Count(d, "M") != 2 || strings.Contains(d, "l") {
		t.Errorf("got the line %q, want two level pieces", d)
	}
}
