package chain

import "time"

// A Hop is a line of the picture of a chain: a service, and the call that leads to it.
type Hop struct {
	Depth   int    // how many calls lead here, 0 for a service that nobody calls
	From    string // the service that calls, empty at depth 0
	Call    int    // the index of the call among those of From, -1 at depth 0
	Service string // the service called; it may be unknown to the chain

	// Left is the time for the request here in the worst case: on the way, each attempt but the last took all of its
	// bound and each wait was as long as the backoff may make it. It is zero if nothing is left, and math.MaxInt64 if
	// nothing bounds it.
	Left time.Duration

	// Calls is how many calls arrive here for one at the top if all fail, at most math.MaxInt. Of several ways here Left
	// is the least and Calls the most.
	Calls int

	// Again says that what the service calls is not repeated below this hop: it stands above already, or the call
	// leads back to a service on the way here.
	Again bool
}

// Hops returns the picture of c, from each service that nobody calls down to the last, depth first, in the order of
// the chain. Each call is one hop, however many ways lead to it.
func (c *Chain) Hops() []Hop {
	return nil
}
