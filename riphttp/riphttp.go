// Package riphttp makes HTTP calls that survive: a [Transport] is an http.RoundTripper that tries again, under the rules
// of package riprap.
//
//	client := &http.Client{Transport: &riphttp.Transport{}}
//
// A request is sent again only if that is safe: its method is idempotent (RFC 9110 §9.2.2), it carries an
// Idempotency-Key, or it surely was not processed. A POST without a key is sent once, whatever the status. What the
// server asks for, in Retry-After or one of its relatives, comes before the transport's own backoff, and each service
// called has a retry budget. Services of one's own are also told how much time is left, see Internal and package deadline.
//
// The last response comes back as a response, with its body open and a nil error, when riprap gives up on a failing
// service; see the Done event of a riprap.Trace for the reason.
package riphttp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/riprap-go/riprap"
)

const (
	defaultTimeout        = 30 * time.Second
	defaultAttemptTimeout = 10 * time.Second
	defaultMinAttempt     = 10 * time.Millisecond
	defaultReadTimeout    = 30 * time.Second
	defaultMaxReplay      = 64 << 10
	connectTimeout        = 2 * time.Second
)

// Reasons in the *riprap.Error or the Done event of a request that failed, besides those of package riprap.
var (
	// ErrUnsafe: the request could not be sent twice, because of its method or because its body cannot be replayed.
	ErrUnsafe = errors.New("not safe to send twice")

	// ErrOutcomeUnknown: the request may have been processed, and no answer came. Whatever else ended the call, this is in its
	// error if the method is not idempotent, with a key and without, unless it surely was not processed. A request with a
	// key can be sent again with the same key, for as long as the service keeps it; a new key would be a new request.
	ErrOutcomeUnknown = errors.New("outcome unknown: the request may have been processed, and no answer came")
)

// A Transport is an http.RoundTripper that tries again. The zero Transport is ready to use. A Transport may be used by
// many goroutines at once; its fields must not change once it is in use, and it must not be copied. Like an
// http.Transport it should be made once and kept: it holds connections, and the budgets and latencies of the services called.
//
// A Transport inside another one, under the same request, only passes it on, so that attempts do not multiply: the
// outer one's Policy holds. (Not so if the outer one has no bound at all, not even a ReadTimeout, and other code stands
// between them: then no context of ours leads from one to the other.)
type Transport struct {
	// Base sends the requests. Nil means an http.Transport like http.DefaultTransport with a connect timeout of two
	// seconds and 64 idle connections for each host. Note that net/http repeats some requests by itself: on a
	// connection that the server has closed meanwhile, and after an HTTP/2 GOAWAY, REFUSED_STREAM or PROTOCOL_ERROR.
	// Event.Sends counts them.
	Base http.RoundTripper

	// Policy says when and how often to try again. Where it is nil, or a field is zero, an attempt may take ten
	// seconds and the whole call 30, both until the response's header is there, and no retry is made with less than
	// ten milliseconds left, or less than the median that a Latency knows. If the Policy names a Budget, all requests
	// use that one.
	Policy *riprap.Policy

	// ReadTimeout is the longest silence while a Read of the response's body is pending; after it Read returns an
	// error that is a timeout. Zero means 30 seconds, negative means no limit. It does not bound the whole body: that
	// is what the request's context is for, and a stream may live for hours.
	ReadTimeout time.Duration

	// Destination names the service (or the route) that a request goes to: each has its own budget under one of the
	// Transport. Nil means scheme and host. Names should be few: they also appear in events.
	Destination func(*http.Request) string

	// Adaptive lets each destination learn a bound for its attempts from what is usual there: see riprap.Latency. The
	// Policy's AttemptTimeout is the ceiling. If the Policy names a Latency, all requests use that one. Routes of one
	// service that take different times need names of their own in Destination: a rare slow one behind a frequent fast one
	// would be cut off each time.
	Adaptive bool

	// Internal reports whether a request goes to a service of your own, which is told how much time is left, the
	// correlation id and whether it serves a retry, in the headers of package deadline. With less time left than is useful
	// (Policy.MinAttempt, after what is kept back for the way) no such request is sent. When the service fails after the
	// time that it was given, or says that it ran out of it, the attempt counts as one that timed out. Its X-Should-Retry:
	// false is handed on to a deadline.Middleware that serves the caller. The time told is AttemptTimeout or what is left,
	// never a bound that was learned, and a deadline.Middleware at the service ends its work then, also within the body: an
	// answer that takes longer needs a policy of its own (docs/deadlines.md, long answers). Nil means that no request goes to
	// such a service.
	Internal func(*http.Request) bool

	// MaxReplay is the largest body without GetBody, in bytes, that is read into memory first so that it can be sent
	// again. Larger ones, and those of unknown length, are sent once. Zero means 64 KiB, negative means none.
	MaxReplay int64

	// Repeatable reports whether a request may be sent twice. Nil means IsRepeatable. The body must allow it too.
	Repeatable func(*http.Request) bool

	// Judge tells an answer from a failure, under the attempt's bound. A nil error means that this is the answer, an
	// error marked riprap.Permanent a failure that stays, any other error one that may be cured by another attempt. What
	// the response's header asks for is added to it. Judge may replace the response's body, as Peek does, but must not
	// close it. Nil means the function Judge.
	Judge func(*http.Response) error

	// NewKey, if set, makes the Idempotency-Key of a request that needs one to be repeatable and has none: once for
	// each logical call, before the first attempt. Its result is the header's whole value; some services want it
	// quoted, some bare. An empty one means no key. The response's Request carries it.
	NewKey func(*http.Request) string

	// KeyRetention is how long the services called keep a key. No attempt with a key begins later than that after the first one
	// that may have been processed, since the service would take it for a new request; the call ends with ErrOutcomeUnknown
	// instead. Zero means what the service says in Idempotency-Retention, and 24 hours if it says nothing; negative means no limit.
	KeyRetention time.Duration

	once         sync.Once
	base         http.RoundTripper
	destinations destinations
}

type policyKey struct{}

// WithPolicy returns a context for a request that has a Policy of its own: it takes the place of the Transport's, Trace
// included. Its zero fields mean what they mean in a Transport; without a Budget and a Latency it keeps to those that
// the destination's other requests use. To change one field, copy the Transport's Policy first. A nil p changes nothing.
func WithPolicy(ctx context.Context, p *riprap.Policy) context.Context {
	return context.WithValue(ctx, policyKey{}, p)
}

// CloseIdleConnections closes the idle connections of Base, if it has any.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.sender().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// sender returns Base or what stands in for it.
func (t *Transport) sender() http.RoundTripper {
	if inner, ok := t.Base.(*Transport); ok {
		return inner.sender()
	}
	if t.Base != nil {
		return t.Base
	}
	t.once.Do(func() {
		base, ok := http.DefaultTransport.(*http.Transport)
		if ok {
			base = base.Clone()
		} else {
			base = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
		}
		base.DialContext = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
		base.MaxIdleConnsPerHost = 64
		t.base = base
	})
	return t.base
}

// RoundTrip sends a request until there is an answer, it fails in a way that no retry can cure, or the policy ends it.
// It returns a response or an error, never both. Where riprap gave up without a response, the error is an *riprap.Error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if outer, ok := ctx.Value(nestedKey{}).(*http.Request); ok && sameRequest(outer, req) {
		return t.sender().RoundTrip(req)
	}
	if req.URL == nil || req.Header == nil {
		return t.sender().RoundTrip(req) // which knows how to refuse it
	}
	c := call{t: t, body: replay{ready: req.Body}}
	returned := false
	defer func() { // runs also when a hook, Judge or Base panics
		if c.timer != nil {
			c.timer.Stop()
		}
		if !returned {
			c.abort(ctx)
		}
	}()
	c.destination = t.destination(req)
	c.policy = &c.destination.policy
	if own, ok := ctx.Value(policyKey{}).(*riprap.Policy); ok && own != nil {
		c.policy = complete(own, c.destination.policy.Budget, c.destination.policy.Latency)
	}
	c.op.Policy = c.policy
	c.internal = t.Internal != nil && t.Internal(req)
	resp, err := c.run(ctx, req)
	returned = true
	return resp, err
}

// complete returns a copy of a policy, nil for the zero one, with the figures of a transport in place of zeros.
func complete(policy *riprap.Policy, budget *riprap.Budget, latency *riprap.Latency) *riprap.Policy {
	var p riprap.Policy
	if policy != nil {
		p = *policy
	}
	p.Timeout = cmp.Or(p.Timeout, defaultTimeout)
	p.AttemptTimeout = cmp.Or(p.AttemptTimeout, defaultAttemptTimeout)
	p.Budget = cmp.Or(p.Budget, budget)
	p.Latency = cmp.Or(p.Latency, latency)
	if p.Latency == nil {
		p.MinAttempt = cmp.Or(p.MinAttempt, defaultMinAttempt)
	}
	return &p
}

func (t *Transport) readTimeout() time.Duration {
	return max(cmp.Or(t.ReadTimeout, defaultReadTimeout), 0)
}

// verdict judges a response and adds what its header asks for.
func (t *Transport) verdict(resp *http.Response) error {
	judge := t.Judge
	if judge == nil {
		judge = Judge
	}
	failure := judge(resp)
	if failure != nil {
		if wait, ok := hint(resp.Header, time.Now()); ok {
			failure = riprap.After(wait, failure)
		}
	}
	return failure
}
