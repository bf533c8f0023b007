package rival

import (
	"context"
	"errors"
	"time"
)

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
