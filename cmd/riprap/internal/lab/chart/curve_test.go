package chart

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pathPoints reads a path of the commands that outline writes.
func pathPoints(t *testing.T, d string) []point {
	t.Helper()
	var points []point
	var pen point
	number := func() float64 {
		d = strings.TrimPrefix(d, " ")
		end := 0
		for end < len(d) && (d[end] == '.' || d[end] >= '0' && d[end] <= '9' || end == 0 && d[end] == '-') {
			end++
		}
		v, err := strconv.ParseFloat(d[:end], 64)
		if err != nil {
			t.Fatalf("got no number at %q: %v", d, err)
		}
		d = d[end:]
		return v
	}
	for d != "" && d != "z" {
		command := d[0]
		d = d[1:]
		switch command {
		case 'M':
			pen = point{number(), number()}
		case 'l':
			pen = point{pen.x + number(), pen.y + number()}
		case 'h':
			pen.x += number()
		default:
			t.Fatalf("got the command %q before %q", command, d)
		}
		points = append(points, pen)
	}
	return points
}

func TestAThinnedCurveKeepsItsExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 299, 300, 301, 5000, 100_001} {
		points := make([]point, n)
		for i := range points {
			points[i] = point{float64(i), r.NormFloat64()}
		}
		got := thin(points, 300)
		if len(got) > 300 || n <= 300 && len(got) != n {
			t.Errorf("thin(%d points, 300): got %d", n, len(got))
		}
		if got[0] != points[0] || got[len(got)-1] != points[n-1] {
			t.Errorf("thin(%d points, 300): got from %v to %v, want the same ends", n, got[0], got[len(got)-1])
		}
		higher := func(a, b point) int { return int(math.Copysign(1, a.y-b.y)) }
		if slices.MaxFunc(got, higher) != slices.MaxFunc(points, higher) || slices.MinFunc(got, higher) != slices.MinFunc(points, higher) {
			t.Errorf("thin(%d points, 300): lost the highest or the lowest point", n)
		}
		if !slices.IsSortedFunc(got, func(a, b point) int { return int(a.x - b.x) }) {
			t.Errorf("thin(%d points, 300): changed the order", n)
		}
	}
}

func TestAThinnedCurveKeepsItsGaps(t *testing.T) {
	points := make([]point, 10_000)
	for i := range points {
		points[i] = point{float64(i), 1}
	}
	points[5000] = gap(5000)
	if got := thin(points, 100); !slices.ContainsFunc(got, point.gap) {
		t.Error("thin: lost the gap")
	}
}

func TestAnOutlineGoesThroughItsPoints(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var points []point
	for i := range 2000 {
		points = append(points, point{float64(i) * 0.37, math.Round(r.Float64()*4) * 10.03})
	}
	got := pathPoints(t, outline(points))
	next := 0
	for _, p := range points {
		// Those within a level stretch are not written.
		for next < len(got)-1 && got[next].x < p.x-0.06 {
			next++
		}
		if math.Abs(got[next].y-p.y) > 0.051 || got[next].x < p.x-0.06 {
			t.Fatalf("at %v: got %v", p, got[next])
		}
	}
	if len(got) >= len(points) {
		t.Errorf("got %d points of %d, want fewer: a fifth lies in level stretches", len(got), len(points))
	}
}

func TestOutlines(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []point
		want   string
	}{
		{"nothing", nil, ""},
		{"a gap alone", []point{gap(1)}, ""},
		{"a point is a dot", []point{{1, 2}}, "M1 2h0"},
		{"a point between gaps", []point{{0, 0}, {1, 1}, gap(2), {3, 3}, gap(4), {5, 5}, {6, 5}}, "M0 0l1 1M3 3h0M5 5h1"},
		{"a level stretch", []point{{0, 0}, {1, 0}, {2.5, 0}, {3, -1}}, "M0 0h2.5l.5-1"},
		{"there and back", []point{{0, 0}, {5, 0}, {2, 0}}, "M0 0h5h-3"},
		{"rounded to tenths", []point{{0.04, 0.05}, {-0.26, 10}}, "M0 .1l-.3 9.9"},
	} {
		if got := outline(c.points); got != c.want {
			t.Errorf("%s: outline(%v) = %q, want %q", c.name, c.points, got, c.want)
		}
	}
}
