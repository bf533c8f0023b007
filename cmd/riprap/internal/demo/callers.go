package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// A side is one of the two runs that are compared: what its layers call each other with, and what stands between them.
type side struct {
	name    string
	sender  func(s scenario, base http.RoundTripper, t *tally) sender // of each layer; it sends through base and counts its retries
	app     func(s scenario, base http.RoundTripper, t *tally) sender // of the shoppers
	service func(http.Handler) http.Handler                           // what the gateway and the orders service serve with
	proxied bool                                                      // riprap proxy stands before the payments service
}

// sides run in this order.
var sides = []side{
	{name: "naive", app: naive, sender: naive, service: func(h http.Handler) http.Handler { return h }},
	{name: "riprap", app: keyed, sender: withRiprap, service: deadline.Middleware{}.Handler, proxied: true},
}

// naive is the retry loop that tutorials show, in good faith: it checks the status, gives up after a number of
// attempts, waits longer from one to the next, bounds every attempt and passes the context on. What it lacks is what
// tutorials leave out:
//
//   - jitter: calls that failed together come back together;
//   - a budget: it sends its retries although all the others before them failed too;
//   - Retry-After: it waits its own backoff after a 429 as after any failure;
//   - the layers above and below: each of them has such a loop, and their attempts multiply;
//   - a key, or else the knowledge that a POST without one must not be sent twice: what got no answer has failed, and is
//     tried again.
func naive(s scenario, base http.RoundTripper, t *tally) sender {
	c := &http.Client{Transport: base, Timeout: s.AttemptTimeout}
	return func(ctx context.Context, url string, p purchase) reply {
		wait := s.Backoff
		for attempt := 1; ; attempt++ {
			r, err := post(ctx, c, url, p)
			if err != nil {
				r.told = failure
			}
			if r.told == paid || attempt == s.Attempts {
				return r
			}
			if sleep(ctx, wait) != nil {
				return r
			}
			wait *= 2
			t.count(retried)
		}
	}
}

// withRiprap is an ordinary client on a riphttp.Transport with the naive loop's limits, and everything else as it
// comes. How long a caller waits comes with the context, as on the naive side. That the services called are one's own is said
// by Internal.
func withRiprap(s scenario, base http.RoundTripper, t *tally) sender {
	return riprapSender(transport(s, base, t))
}

// keyed is the same for the app of the shoppers. It makes the key: once for each click.
func keyed(s scenario, base http.RoundTripper, t *tally) sender {
	tr := transport(s, base, t)
	tr.NewKey = func(*http.Request) string { return rand.Text() }
	return riprapSender(tr)
}

func transport(s scenario, base http.RoundTripper, t *tally) *riphttp.Transport {
	return &riphttp.Transport{
		Base:     base,
		Internal: func(*http.Request) bool { return true },
		Policy: &riprap.Policy{
			MaxAttempts:    s.Attempts,
			AttemptTimeout: s.AttemptTimeout,
			Backoff:        riprap.Backoff{Base: s.Backoff},
			Trace: &riprap.Trace{
				Attempt: func(ctx context.Context, e riprap.Event) context.Context {
					if e.Attempts > 1 {
						t.count(retried)
					}
					return ctx
				},
				Done: func(ctx context.Context, e riprap.Event) {
					if errors.Is(e.Reason, riphttp.ErrOutcomeUnknown) || errors.Is(e.Err, riphttp.ErrOutcomeUnknown) {
						doubtOf(ctx).unknown = true
					}
				},
			},
		},
		Judge: func(resp *http.Response) error {
			err := riphttp.Judge(resp)
			if err != nil && saysUnknown(riphttp.Peek(resp, 1<<10)) {
				doubtOf(resp.Request.Context()).unknown = true
			}
			return err
		},
	}
}

// riprapSender tells a failure from an outcome that nobody knows. One attempt of which that is true is enough: a later one
// that was refused says nothing of it.
func riprapSender(tr *riphttp.Transport) sender {
	c := &http.Client{Transport: tr}
	return func(ctx context.Context, url string, p purchase) reply {
		d := new(doubt)
		r, err := post(context.WithValue(ctx, doubtKey{}, d), c, url, p)
		switch {
		case err == nil && r.told == paid:
		case d.unknown || errors.Is(err, riphttp.ErrOutcomeUnknown):
			r.told = unsure
		default:
			r.told = failure
		}
		return r
	}
}

// A doubt is whether an attempt of a call may have been processed without anybody knowing.
type doubt struct{ unknown bool }

type doubtKey struct{}

func doubtOf(ctx context.Context) *doubt { return ctx.Value(doubtKey{}).(*doubt) }

// A meter counts the sends that found nobody listening: the service itself cannot.
type meter struct {
	base  http.RoundTripper
	tally *tally
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.base.RoundTrip(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		m.tally.count(refused)
	}
	return resp, err
}

// newBase is what all senders send through, with the same settings on both sides. The default of two idle connections to a
// host would make every burst pay for new ones. A connection that is cut, as one is with each attempt that is given up, goes
// at once: in a storm those that lingered would use up the machine's ports.
func newBase(s scenario) *http.Transport {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	return &http.Transport{MaxIdleConnsPerHost: s.Callers, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		return conn, err
	}}
}
