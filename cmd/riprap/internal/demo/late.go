package demo

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// What comes late because this machine has no time is nobody's retry policy. So each hop from one service to the next is
// timed, and each step of the proxy's store; both take milliseconds where there is a CPU to take them.

// sentField says when a request was sent, in nanoseconds of the side's time.
const sentField = "X-Demo-Sent"

// A stamp notes on each request when it is sent.
type stamp struct {
	base  http.RoundTripper
	tally *tally
}

func (s *stamp) RoundTrip(req *http.Request) (*http.Response, error) {
	stamped := *req // a RoundTripper must not change what it was given
	stamped.Header = req.Header.Clone()
	stamped.Header.Set(sentField, strconv.FormatInt(int64(s.tally.now()), 10))
	return s.base.RoundTrip(&stamped)
}

// timed lets h serve requests, once it is noted how long they were on their way.
func timed(h http.Handler, t *tally) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent, err := strconv.ParseInt(r.Header.Get(sentField), 10, 64); err == nil {
			t.highest(behind, int((t.now() - time.Duration(sent)).Milliseconds()))
		}
		r.Header.Del(sentField)
		h.ServeHTTP(w, r)
	})
}

// timedKeys notes how long the store took.
type timedKeys struct {
	idempotency.Store
	tally *tally
}

func (k *timedKeys) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Claimed, error) {
	defer k.note(k.tally.now())
	return k.Store.Claim(ctx, c)
}

func (k *timedKeys) Complete(ctx context.Context, t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	defer k.note(k.tally.now())
	return k.Store.Complete(ctx, t, a, retention)
}

func (k *timedKeys) note(begun time.Duration) {
	k.tally.highest(behind, int((k.tally.now() - begun).Milliseconds()))
}
