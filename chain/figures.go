package chain

import (
	"math"
	"math/bits"
	"time"
)

// What riprap.Do takes for zero fields.
const (
	defaultMaxAttempts = 4
	defaultMaxWait     = time.Minute
)

// longRun is how many waits are counted one by one.
const longRun = 100

// retries reports whether the call is made more than once if it fails. One that is not needs no backoff and no budget.
func (c *Call) retries() bool { return c.attempts() > 1 }

// attempts returns how many there may be, math.MaxInt for no limit.
func (c *Call) attempts() int {
	switch n := c.Policy.MaxAttempts; {
	case n == 0:
		return defaultMaxAttempts
	case n < 0:
		return math.MaxInt
	default:
		return n
	}
}

// timeout returns the Policy's Timeout, or forever.
func (c *Call) timeout() time.Duration { return limit(c.Policy.Timeout) }

// attempt returns how long one attempt may take, as far as the Policy bounds it.
func (c *Call) attempt() time.Duration {
	return min(limit(c.Policy.AttemptTimeout), c.timeout())
}

// Total returns how long the call may take, as far as its Policy bounds it: the Timeout, or what the attempts and the waits
// between them come to, those that the service may ask for included. It is math.MaxInt64 if nothing bounds it.
func (c *Call) Total() time.Duration {
	n := c.attempts()
	switch {
	case n == 1:
		return c.attempt()
	case c.timeout() != forever:
		return c.timeout()
	case c.attempt() == forever || n == math.MaxInt:
		return forever
	}
	return plus(c.begins(n, c.longestAsked()), c.attempt())
}

// begins returns when attempt n begins, counted from the begin of the call, if each attempt before it took all of its bound
// and each wait was as long as the backoff may make it, and no shorter than least.
func (c *Call) begins(n int, least time.Duration) time.Duration {
	return plus(scale(c.attempt(), n-1), c.waiting(n-1, least))
}

// waiting returns what n waits come to at most, each no shorter than least. After a hundred of them each of the others counts
// as long as the cap: almost every backoff has reached it.
func (c *Call) waiting(n int, least time.Duration) time.Duration {
	var sum, wait time.Duration
	for i := range min(n, longRun) {
		wait = c.Policy.Backoff.Delay(i+1, wait, 0) // with zero drawn it is the longest
		sum = plus(sum, max(wait, least))
	}
	if n <= longRun {
		return sum
	}
	longest := c.Policy.Backoff.Delay(math.MaxInt, forever, 0)
	return plus(sum, scale(max(longest, least), n-longRun))
}

// crowded reports whether attempts of some other length would not fit into the Timeout.
func (c *Call) crowded(attempt time.Duration) bool {
	other := *c
	other.Policy.AttemptTimeout = attempt
	n := c.attempts()
	return n < math.MaxInt && plus(other.begins(n, 0), attempt) > c.timeout()
}

// longestWait returns the longest of n waits of the backoff.
func (c *Call) longestWait(n int) (wait time.Duration) {
	for i := range min(n, longRun) {
		wait = c.Policy.Backoff.Delay(i+1, wait, 0)
	}
	return wait
}

// longestAsked returns the longest wait that the service may ask for, with the random time that is added to it.
func (c *Call) longestAsked() time.Duration {
	switch d := c.Policy.MaxWait; {
	case d < 0:
		return forever
	case d == 0:
		return defaultMaxWait + defaultMaxWait/5
	default:
		return plus(d, d/5)
	}
}

// last returns how many attempts begin in the worst case within a time, at least one, when each but the first needs as much
// of it as least, which is above zero. It halves the range, for there may be as many as an int can count.
func (c *Call) last(within, least time.Duration) int {
	low, high := 1, c.attempts() // low fits
	for low < high {
		middle := low + (high-low)/2 + 1
		if begins := c.begins(middle, 0); within-begins >= least {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// limit reads a limit that is none if it is zero or negative.
func limit(d time.Duration) time.Duration {
	if d <= 0 {
		return forever
	}
	return d
}

// plus and scale stop at forever; nothing here is negative.
func plus(a, b time.Duration) time.Duration {
	if a > forever-b {
		return forever
	}
	return a + b
}

func scale(d time.Duration, n int) time.Duration {
	high, low := bits.Mul64(uint64(d), uint64(n))
	if high > 0 || low > uint64(forever) {
		return forever
	}
	return time.Duration(low)
}

// product of two numbers of calls.
func product(a, b int) int {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > math.MaxInt {
		return math.MaxInt
	}
	return int(low)
}
