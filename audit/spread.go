package audit

import (
	"math"
	"slices"
	"time"
)

// Whether waits are spread is a question of chance, and is answered at this level: of a million clients that are not spread one
// may pass, and of a million that are one may fail.
const alpha = 1e-6

// spreadRuns is how often a client runs where that is asked.
const spreadRuns = 32

const (
	// Waits within a window this wide, as a share of their mean, are taken to be the same wait: what the machine adds is
	// less than that, but for the disturbed.
	windowShare = 0.05
	windowLeast = 5 * time.Millisecond

	// The waits of a client without jitter are all in one window, except for those that the machine disturbed: at most
	// this share.
	disturbedShare = 1.0 / 8

	// A mean wait as short as this is none: the client tries again at once. Of fewer waits than that it may be luck.
	atOnce      = windowLeast
	atOnceWaits = 8

	// Shorter waits cannot be told from what a busy machine adds to none.
	tellable = 50 * time.Millisecond

	// A client may have more to do for an attempt than the audit for a reading of the noise, to start a program say: what it is
	// disturbed by is taken to be so many times as much.
	clientWork = 8

	// The least spread that deserves the name of jitter, as a share of the mean wait.
	leastSpread = 0.2
)

// A spread says how many of the waits of many runs fall together.
type spread struct {
	n       int // waits
	mean    time.Duration
	window  time.Duration // the width of what counts as the same
	densest int           // waits in the fullest window
	inThree int           // waits in the three fullest windows of the width narrow
}

func spreadOf(waits []time.Duration) spread {
	sorted := slices.Sorted(slices.Values(waits))
	s := spread{n: len(sorted)}
	if s.n == 0 {
		return s
	}
	for _, w := range sorted {
		s.mean += w / time.Duration(s.n)
	}
	s.window = max(time.Duration(windowShare*float64(s.mean)), windowLeast)
	s.densest, _ = fullest(sorted, s.window)
	rest := sorted
	for range 3 {
		count, at := fullest(rest, s.narrow())
		s.inThree += count
		rest = slices.Delete(slices.Clone(rest), at, at+count)
	}
	return s
}

// narrow is the width of a single value among few.
func (s spread) narrow() time.Duration { return max(s.window/5, windowLeast) }

// fullest returns how many of the sorted values lie in the fullest window of the width, and the index of the first.
func fullest(sorted []time.Duration, width time.Duration) (count, at int) {
	first := 0
	for last, v := range sorted {
		for v-sorted[first] > width {
			first++
		}
		if n := last - first + 1; n > count {
			count, at = n, first
		}
	}
	return count, at
}

// verdict judges the spread at a level, the chance of a wrong pass or a wrong fail. Pass: were the waits all the same, and
// disturbedShare of them disturbed, fewer would fall out of the fullest window. Fail: the client tries again at once; or, were
// its waits spread evenly over leastSpread of their mean, fewer would fall into that window, or into the three narrow ones.
func (s spread) verdict(level float64) Verdict {
	if s.n == 0 {
		return Inconclusive
	}
	if s.mean <= atOnce && s.n >= atOnceWaits {
		return Fail
	}
	// The chance of a wait that is spread so to lie in a window.
	within := func(width time.Duration) float64 { return min(float64(width)/(leastSpread*float64(s.mean)), 1) }
	// The fullest of all windows begins at one of the waits: n to choose from; of three windows fewer than n³/6.
	n := float64(s.n)
	if n*atLeast(s.densest-1, s.n-1, within(s.window)) <= level {
		return Fail
	}
	if n*n*n/6*atLeast(s.inThree-3, s.n-3, 3*within(s.narrow())) <= level {
		return Fail
	}
	if s.mean >= tellable && atLeast(s.n-s.densest, s.n, disturbedShare) <= level {
		return Pass
	}
	return Inconclusive
}

// atLeast returns the probability that of n independent events of probability p at least k happen.
func atLeast(k, n int, p float64) float64 {
	if k <= 0 || p >= 1 {
		return 1
	}
	if k > n {
		return 0
	}
	sum := 0.0
	for i := k; i <= n; i++ {
		choose, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(choose - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}

// quantile returns the q-quantile of the waits, zero if there are none.
func quantile(waits []time.Duration, q float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
