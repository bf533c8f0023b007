package chart

import "math"

// A point of a picture in pixels. One whose y is NaN is a gap in its curve.
type point struct{ x, y float64 }

func gap(x float64) point { return point{x, math.NaN()} }

func (p point) gap() bool { return math.IsNaN(p.y) }

// thin leaves a curve with about as many points as it has pixels. It never averages: of every two pixels' worth of points
// it keeps the lowest and the highest, as they followed each other, so that a spike of one step stays as tall as it was.
func thin(points []point, pixels float64) []point {
	limit := max(int(pixels), 8)
	if len(points) <= limit {
		return points
	}
	first, last := points[0], points[len(points)-1]
	points = points[1 : len(points)-1]
	thinned := []point{first}
	buckets := limit/2 - 1
	for i := range buckets {
		bucket := points[i*len(points)/buckets : (i+1)*len(points)/buckets]
		low, high, broken := -1, -1, -1
		for k, p := range bucket {
			switch {
			case p.gap():
				broken = k
				continue
			case low < 0:
				low, high = k, k
			case p.y < bucket[low].y:
				low = k
			case p.y > bucket[high].y:
				high = k
			}
		}
		if low >= 0 {
			thinned = append(thinned, bucket[min(low, high)])
			if low != high {
				thinned = append(thinned, bucket[max(low, high)])
			}
		}
		if broken >= 0 {
			thinned = append(thinned, bucket[broken])
		}
	}
	return append(thinned, last)
}

// outline is the path through the points, interrupted at gaps. It is written in steps from point to point, which are
// whole tenths and so add up to no error.
func outline(points []point) string {
	var d []byte
	var x, y int     // where the pen is
	var level []byte // the steps so far of a level stretch, whose points between its ends need not be written
	var from int
	drawing, moved := false, false
	flush := func() {
		d, level = append(d, level...), nil
	}
	rest := func() {
		flush()
		if drawing && !moved {
			d = append(d, "h0"...) // a point of its own is a dot
		}
	}
	for _, p := range points {
		if p.gap() {
			rest()
			drawing = false
			continue
		}
		px, py := tenths(p.x), tenths(p.y)
		switch {
		case !drawing:
			d = append(d, 'M')
			d = appendTenths(d, px)
			d = appendStep(d, py)
			drawing, moved = true, false
		case px == x && py == y:
			continue
		case py == y:
			if level == nil || (px > x) != (x > from) {
				flush()
				from = x
			}
			level = appendTenths([]byte{'h'}, px-from)
			moved = true
		default:
			flush()
			d = append(d, 'l')
			d = appendTenths(d, px-x)
			d = appendStep(d, py-y)
			moved = true
		}
		x, y = px, py
	}
	rest()
	return string(d)
}

// appendStep adds a second number; a minus sign separates as well as a space.
func appendStep(d []byte, n int) []byte {
	if n >= 0 {
		d = append(d, ' ')
	}
	return appendTenths(d, n)
}

// area is the closed path between a curve and the base below it.
func area(points []point, base float64) string {
	if len(points) == 0 {
		return ""
	}
	closed := append([]point{{points[0].x, base}}, points...)
	return outline(append(closed, point{points[len(points)-1].x, base})) + "z"
}
