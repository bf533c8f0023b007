package riprap

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

const (
	defaultBase = 500 * time.Millisecond
	defaultMax  = 10 * time.Second
)

// A Backoff gives the waits between attempts: a limit that grows with each failure, and a random draw below it. It
// is plain data; the zero Backoff draws from all of a half second, one second, two, and so on up to ten seconds.
type Backoff struct {
	// Base is the limit after the first failure. Zero or less means half a second.
	Base time.Duration

	// Max is the longest wait. Zero or less means ten seconds. A Base above Max counts as Max.
	Max time.Duration

	// Factor multiplies the limit with each failure. Zero means two; anything below one counts as one, so that the
	// limit never shrinks. Decorrelated jitter does not use it.
	Factor float64

	// Jitter says how a wait is drawn below the limit. The zero value is Full.
	Jitter Jitter
}

// Jitter says how a wait is drawn. Without it clients that failed together come back together, again and again. The
// kinds and their names are those of "Exponential Backoff And Jitter" (Marc Brooker, AWS Architecture Blog, 2015).
type Jitter int

const (
	Full         Jitter = iota // from nothing up to the limit
	Equal                      // from half the limit up to the limit
	Decorrelated               // from Base up to three times the wait before, at most Max
	None                       // the limit itself; only for a single client
)

var jitters = [...]string{Full: "full", Equal: "equal", Decorrelated: "decorrelated", None: "none"}

// String returns the kind's name in lower case.
func (j Jitter) String() string {
	if j < 0 || int(j) >= len(jitters) {
		return fmt.Sprintf("Jitter(%d)", int(j))
	}
	return jitters[j]
}

// MarshalText returns the kind's name, for JSON and flags.
func (j Jitter) MarshalText() ([]byte, error) {
	if j < 0 || int(j) >= len(jitters) {
		return nil, fmt.Errorf("riprap: no jitter has the number %d", int(j))
	}
	return []byte(jitters[j]), nil
}

// UnmarshalText reads a name as [Jitter.String] writes it.
func (j *Jitter) UnmarshalText(text []byte) error {
	for i, name := range jitters {
		if name == string(text) {
			*j = Jitter(i)
			return nil
		}
	}
	return fmt.Errorf("jitter %q is not full, equal, decorrelated or none", text)
}

// Delay returns the wait after failure n, counted from 1. Prev is the wait before this one, zero at first, and u is
// uniform in [0,1). Delay is pure. Its result lies in (0, Max] for every input, and it keeps its spread when the
// limit has reached Max: drawing and then clipping would send most clients back at the same moment.
func (b Backoff) Delay(n int, prev time.Duration, u float64) time.Duration {
	if !(u >= 0 && u <= 1) { // also NaN
		u = 0.5
	}
	longest := b.Max
	if longest <= 0 {
		longest = defaultMax
	}
	base := b.Base
	if base <= 0 {
		base = defaultBase
	}

	var low, high time.Duration
	switch limit := grow(base, longest, b.Factor, n); b.Jitter {
	case Equal:
		low, high = limit/2, limit
	case Decorrelated:
		high = longest
		if prev = max(prev, base); prev < longest/3 {
			high = 3 * prev
		}
		// A third keeps a spread where Base is close to Max.
		low = min(base, high/3)
	case None:
		return limit
	default:
		low, high = 0, limit
	}
	// 1-u is in (0,1], so that the draw is above low and reaches high. Rounding may overshoot at either end.
	draw := float64(high-low) * (1 - u)
	if draw >= float64(high-low) {
		return high
	}
	return max(low+time.Duration(draw), low+1)
}

// grow returns base times factor to the power n-1, at most longest.
func grow(base, longest time.Duration, factor float64, n int) time.Duration {
	factor = cmp.Or(factor, 2)
	if !(factor >= 1) { // also NaN
		factor = 1
	}
	steps := max(n, 1) - 1
	power := float64(uint64(1) << min(steps, 63)) // of two: exact, and quicker than math.Pow; a limit of 2^63 is above longest
	if factor != 2 {
		power = math.Pow(factor, float64(steps))
	}
	limit := float64(base) * power
	if limit < float64(longest) {
		return time.Duration(limit)
	}
	return longest
}
