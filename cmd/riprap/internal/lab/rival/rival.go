// Package rival holds what riprap is compared with: the ways of other libraries and of tutorials to limit retries and to
// draw waits, each after its source. Nothing of it is riprap's, and every table of the lab says so.
//
// A value decides in one process. It is not safe for concurrent use, because a simulation is one goroutine.
package rival

import (
	"context"
	"errors"
	"time"
)

// plain lets everything pass. The others embed it and override what they decide about.
type plain struct{}

func (plain) Admit(time.Duration, int, float64) bool                { return true }
func (plain) Ended(time.Duration, int, error, error)                {}
func (plain) Retry(time.Duration, error) bool                       { return true }
func (plain) Wait(own, prev time.Duration, u float64) time.Duration { return own }

// whole is one, as near as a sum of fractions comes to it.
const whole = 1 - 1e-9

// A Bucket holds tokens, a whole one for each retry. Calls fill it when they begin or when they succeed, and that is the
// difference between a budget that goes on paying for retries in an outage and one that does not.
type Bucket struct {
	plain
	PerCall    float64 // what the first try of a call adds when it is sent
	PerSuccess float64 // what an answer in time adds
	Size       float64 // the most that it holds
	Tokens     float64
}

// Admit fills the bucket by a call.
func (b *Bucket) Admit(_ time.Duration, attempt int, _ float64) bool {
	if attempt == 1 {
		b.Tokens = min(b.Tokens+b.PerCall, b.Size)
	}
	return true
}

// Ended fills the bucket by a success.
func (b *Bucket) Ended(_ time.Duration, _ int, _, err error) {
	if err == nil {
		b.Tokens = min(b.Tokens+b.PerSuccess, b.Size)
	}
}

// Retry takes a token.
func (b *Bucket) Retry(time.Duration, error) bool {
	if b.Tokens < whole {
		return false
	}
	b.Tokens--
	return true
}

// Quota is the retry quota of the AWS SDKs in their standard mode (aws-sdk-go-v2, aws/retry): 500 tokens, of which a
// retry takes five, or ten after a timeout. A success at the first try gives back one, and a retry that succeeds what it
// took.
type Quota struct {
	plain
	Tokens, Size   int
	Cost, LateCost int
}

// NewQuota returns the quota with the SDKs' figures.
func NewQuota() *Quota { return &Quota{Tokens: 500, Size: 500, Cost: 5, LateCost: 10} }

// Ended gives back.
func (q *Quota) Ended(_ time.Duration, attempt int, prev, err error) {
	switch {
	case err != nil:
	case attempt == 1:
		q.Tokens = min(q.Tokens+1, q.Size)
	default:
		q.Tokens = min(q.Tokens+q.cost(prev), q.Size)
	}
}

// Retry takes what a retry after such a failure costs.
func (q *Quota) Retry(_ time.Duration, err error) bool {
	cost := q.cost(err)
	if q.Tokens < cost {
		return false
	}
	q.Tokens -= cost
	return true
}

func (q *Quota) cost(err error) int {
	if errors.Is(err, context.DeadlineExceeded) {
		return q.LateCost
	}
	return q.Cost
}

// Throttle is the retry throttling of gRPC (proposal A6): a failed attempt takes a token, a success adds Ratio of one,
// and there are retries while more than half of Max are left.
type Throttle struct {
	plain
	Max, Ratio, Tokens float64
}

// NewThrottle returns a full Throttle.
func NewThrottle(most, ratio float64) *Throttle {
	return &Throttle{Max: most, Ratio: ratio, Tokens: most}
}

// Ended takes a token for a failure.
func (t *Throttle) Ended(_ time.Duration, _ int, _, err error) {
	if err == nil {
		t.Tokens = min(t.Tokens+t.Ratio, t.Max)
	} else {
		t.Tokens = max(t.Tokens-1, 0)
	}
}

// Retry allows while more than half are left.
func (t *Throttle) Retry(time.Duration, error) bool { return t.Tokens > t.Max/2 }

// Breaker allows retries while there have been at most Share failures for each call, ever. It counts the failures of
// retries too, so that it opens earlier than a share of failed calls would ("Fixing retries with token buckets and circuit
// breakers", Marc Brooker, 2022, and the simulator published with it).
type Breaker struct {
	plain
	Share         float64
	calls, failed float64
}

// Admit counts calls.
func (b *Breaker) Admit(_ time.Duration, attempt int, _ float64) bool {
	if attempt == 1 {
		b.calls++
	}
	return true
}

// Ended counts failures.
func (b *Breaker) Ended(_ time.Duration, _ int, _, err error) {
	if err != nil {
		b.failed++
	}
}

// Retry allows while there were few enough.
func (b *Breaker) Retry(time.Duration, error) bool { return b.failed <= b.Share*b.calls }

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
