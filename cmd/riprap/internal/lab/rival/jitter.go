package rival

import "time"

// Clipped is decorrelated jitter as first published ("Exponential Backoff And Jitter", Marc Brooker, AWS Architecture
// Blog, 2015): up to three times the wait before, and what is longer than Max is cut to Max. Once there, most clients
// wait exactly Max, all alike. riprap draws below Max instead.
type Clipped struct {
	plain
	Base, Max time.Duration
}

// Wait draws between Base and three times the wait before, and clips.
func (c *Clipped) Wait(_, prev time.Duration, u float64) time.Duration {
	high := 3 * max(prev, c.Base)
	return min(c.Base+time.Duration(float64(high-c.Base)*u), c.Max)
}

// Added is the truncated exponential backoff of Google Cloud's documentation (for one, "Exponential backoff" of
// Memorystore for Redis): a random time of up to Spread is added to the exponential wait, and what is longer than Max is
// cut to Max. Once there, all clients wait exactly Max. The wait that it adds to is that of a Backoff without jitter.
type Added struct {
	plain
	Spread, Max time.Duration
}

// Wait adds and clips.
func (a *Added) Wait(own, _ time.Duration, u float64) time.Duration {
	return min(min(own, a.Max)+time.Duration(float64(a.Spread)*u), a.Max) // own alone may be all that a Duration holds
}
