package rival

import "time"

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
