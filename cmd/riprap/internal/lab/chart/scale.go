package chart

import (
	"math"
	"strconv"
	"strings"
)

// A scale maps values from lo to hi onto pixels.
type scale struct {
	lo, hi   float64
	from, to float64 // pixels
}

// at rounds the share of the way before it becomes pixels. Some processors compute a product and a sum in one step, and
// their last bit differs: the conversions forbid that step.
func (s scale) at(v float64) float64 {
	share := max(0, min((v-s.lo)/(s.hi-s.lo), 1))
	share = math.Round(float64(share*1e9)) / 1e9
	return s.from + float64(share*(s.to-s.from))
}

// A tick is a round value with its label.
type tick struct {
	at    float64
	label string
}

// ticks are the 1, 2 or 5 times a power of ten between lo and hi, at most limit+1 of them.
func ticks(lo, hi float64, limit int, unit string) []tick {
	exponent := int(math.Floor(math.Log10((hi-lo)/float64(limit)))) - 1
	for ; ; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			step := scaled(digit, exponent)
			first, last := math.Ceil(lo/step), math.Floor(hi/step)
			if last-first > float64(limit) {
				continue
			}
			var list []tick
			for k := range int(last-first) + 1 {
				at := scaled((first+float64(k))*digit, exponent)
				list = append(list, tick{at, label(at, max(-exponent, 0), unit)})
			}
			return list
		}
	}
}

// scaled divides by a power of ten rather than multiply with its inverse: 3/10 is the float64 nearest to 0.3, 3*0.1 is not.
func scaled(digit float64, exponent int) float64 {
	if exponent < 0 {
		return digit / math.Pow10(-exponent)
	}
	return digit * math.Pow10(exponent)
}

// timeSteps are what clocks are divided into, in seconds.
var timeSteps = []float64{
	0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30,
	60, 120, 300, 600, 1200, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600,
}

// timeTicks divides the time from 0 to end, in seconds; all ticks have the same unit.
func timeTicks(end float64, limit int) []tick {
	step := 24 * 3600.0
	for _, s := range timeSteps {
		if end/s <= float64(limit) {
			step = s
			break
		}
	}
	for end/step > float64(limit) {
		step *= 10
	}
	size, unit, decimals := 24*3600.0, "d", 0
	switch {
	case step < 1 && end >= 1:
		size, unit, decimals = 1, "s", 1
		if step < 0.1 {
			decimals = 3
		}
	case step < 1:
		size, unit = 0.001, "ms"
	case step < 60:
		size, unit = 1, "s"
	case step < 3600:
		size, unit = 60, "min"
	case step < 24*3600:
		size, unit = 3600, "h"
	}
	var list []tick
	// Not all steps are exact: a tick at the very end must not fall to the last bit.
	for k := range int(math.Floor(end/step+1e-9)) + 1 {
		at := float64(k) * step
		list = append(list, tick{at, label(at/size, decimals, " "+unit)})
	}
	return list
}

// label writes v with its unit; nothing has no unit.
func label(v float64, decimals int, unit string) string {
	if v == 0 {
		return "0"
	}
	unit = tidyUnit(unit)
	switch abs := math.Abs(v); {
	case abs >= 1e9 || abs < 1e-4:
		return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "e+", "e", 1) + unit
	case abs >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + "M" + unit
	}
	return grouped(strconv.FormatFloat(v, 'f', decimals, 64)) + unit
}

// figure writes a measured value with about three digits: 1,120, 64, 1.1, 0.03.
func figure(v float64, unit string) string {
	decimals := 0
	switch abs := math.Abs(v); {
	case abs >= 1e6:
		v = math.Round(v/1e4) * 1e4
	case abs >= 100:
	case abs >= 10:
		decimals = 1
	case abs >= 0.1:
		decimals = 2
	default:
		decimals = 4
	}
	if decimals > 0 {
		// The shortest number that reads back as the rounded one: no zeros at the end.
		p := math.Pow10(decimals)
		v = math.Round(float64(v*p)) / p
		decimals = -1
	}
	return label(v, decimals, unit)
}

// grouped puts commas between thousands.
func grouped(s string) string {
	whole, fraction, point := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + fraction
	}
	return strings.Replace(sign, "-", "−", 1) + whole
}

// tidyUnit keeps a unit in the same line as its number.
func tidyUnit(unit string) string {
	space := ""
	if strings.HasPrefix(unit, " ") {
		space = "\u00a0"
	}
	return space + tidy(unit)
}
