// Package chain describes who calls whom in a system of services, with which [riprap.Policy], and finds what cannot work:
// timeouts that do not shrink on the way down, attempts that do not fit into their total, retries that multiply.
//
// A [Chain] is plain data. It may come from a file, as "riprap check" reads it from a riprap.yaml, or be written in a test
// beside the policies that a service really uses:
//
//	findings := chain.Check(&chain.Chain{Services: []chain.Service{…}})
//
// Nothing here calls anything: the rules are arithmetic on the figures given.
package chain

import (
	"time"

	"github.com/riprap-go/riprap"
)

// A Chain is a set of services and their calls to each other. The order of the services is that of the findings.
type Chain struct {
	Services []Service // each with a name of its own

	// MaxCalls is how many calls at the last service of a path one call at its first may become, when all of them fail:
	// the product of the attempts along the path. Zero means ten, negative means no limit.
	MaxCalls int
}

// A Service answers requests and may call others to do so.
type Service struct {
	Name string // by which calls find it

	// Limit is the longest that the service works on a request, by a timeout of its own. Zero means that it has none:
	// then it works for as long as its caller waits.
	Limit time.Duration

	// Lease and Retention are those of the idempotency keys that the service keeps: how long one request may hold a key
	// before another may take it over, and for how long an answer is kept. Zero means that it keeps no keys, or that the
	// figure is not known.
	Lease, Retention time.Duration

	Calls []Call // in any order; two may lead to one service
}

// A Call is how one service calls another.
type Call struct {
	To string // the service called

	// Policy is what the caller does. Its zero fields mean what they mean to [riprap.Do]: no timeout, four attempts, no
	// budget. Only figures count, not its functions. Where it has a Latency, AttemptTimeout is still what bounds an attempt
	// in the worst case.
	Policy riprap.Policy

	// P99 is the latency that 99 of 100 calls keep to, as observed. Zero means that it is not known.
	P99 time.Duration

	// Idempotent says that the call may be repeated as it is: a GET, or a write that makes no difference the second time.
	// Keyed says that it carries an idempotency key that the service called honors.
	Idempotent, Keyed bool
}
