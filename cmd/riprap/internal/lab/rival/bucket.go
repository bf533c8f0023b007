package rival

import "time"

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
