package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

// A Watch is told what becomes of requests. Nil functions are skipped. They are called by many goroutines at once.
type Watch struct {
	Ended func(*Visit)                                  // a request is over, and nobody writes to the Visit any more
	Keyed func(service string, event idempotency.Event) // what became of a key; it may come after its request
}

// A Visit is one request on its way through the proxy. It holds nothing that a client may choose freely, and no secret: no
// path, no query, no field, no key.
type Visit struct {
	Service  string
	Route    string // the pattern in the configuration that the request matched; "" if it matched none
	Method   string // one of those that RFC 9110 and RFC 5789 know, or OTHER
	Arrived  time.Time
	Took     time.Duration
	Status   int              // that the client was sent; zero if there was none
	Broken   bool             // the answer was begun, and not sent to its end
	Problem  string           // the name of the proxy's own answer; "" if the answer is the service's
	Reached  Reached          // whether the service got the request
	Key      idempotency.Kind // what became of its key; zero without one
	Reason   string           // why it was not tried again after a failure; "" after success. One of Reasons
	Attempts []Attempt
	first    [1]Attempt // most visits have no more

	mu        sync.Mutex // guards what the hooks write
	service   *Service
	answer    *answer
	crowded   bool // there are too many at once
	trusted   bool // the client's word on time, attempts and addresses is believed
	mayRepeat bool // the request may reach the service more than once
	upload    bool // its body is sent on while it comes
	route     *route
	guard     *guarded
	intake    *intake
	sends     int         // requests written to the service
	waiting   bool        // for the next attempt
	answered  bool        // the header of the service's answer came
	trailed   atomic.Bool // and its trailers, which nobody had announced perhaps
}

// An Attempt is one send to the service.
type Attempt struct {
	Begun   time.Time
	Took    time.Duration // until its header came or it failed
	Status  int           // of the service's answer; zero if there was none
	Failure string        // one of Failures; "" if there was an answer
	Wait    time.Duration // before the next attempt; zero after the last
	Asked   bool          // the service said how long to wait
}

// Reached says whether the service got a request.
type Reached string

const (
	ReachedNo      Reached = "no"      // it surely did not, or did not begin with it
	ReachedYes     Reached = "yes"     // it answered
	ReachedUnknown Reached = "unknown" // it was sent, and no answer came
)

// Reasons are all that a Visit may have: why a failed request was not tried again.
var Reasons = []string{"attempts", "budget", "deadline", "wait", "unsafe", "body-too-large", "unknown", "retried", "canceled", "final"}

// Failures are all that an Attempt may have.
var Failures = []string{"refused", "dns", "tls", "connect-timeout", "timeout", "reset", "closed", "canceled", "body", "protocol", "other"}

type visitKey struct{}

func visitOf(ctx context.Context) *Visit {
	v, _ := ctx.Value(visitKey{}).(*Visit)
	return v
}

// trace is what riphttp tells of a request.
func (s *Service) trace() *riprap.Trace {
	return &riprap.Trace{
		Attempt: func(ctx context.Context, _ riprap.Event) context.Context {
			if v := visitOf(ctx); v != nil {
				v.begin(time.Now())
			}
			return ctx
		},
		Retry: func(ctx context.Context, e riprap.Event) {
			if v := visitOf(ctx); v != nil {
				v.failed(time.Now(), e)
			}
		},
		Done: func(ctx context.Context, e riprap.Event) {
			if v := visitOf(ctx); v != nil {
				v.done(time.Now(), e)
			}
		},
	}
}

func (v *Visit) begin(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wait(false)
	if v.Attempts == nil {
		v.Attempts = v.first[:0]
	}
	v.Attempts = append(v.Attempts, Attempt{Begun: now})
}

// wait notes whether the request waits for its next attempt.
func (v *Visit) wait(begins bool) {
	if v.waiting == begins {
		return
	}
	v.waiting = begins
	if begins {
		v.service.waiting.Add(1)
	} else {
		v.service.waiting.Add(-1)
	}
}

// failed notes an attempt that another one follows.
func (v *Visit) failed(now time.Time, e riprap.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sends = e.Sends
	v.close(now, e.Err)
	if n := len(v.Attempts); n > 0 {
		v.Attempts[n-1].Wait, v.Attempts[n-1].Asked = e.Wait, e.Asked > 0
	}
	v.wait(true)
}

// done notes the end of the call: when the body of its answer is over, if it has one.
func (v *Visit) done(now time.Time, e riprap.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sends = e.Sends
	v.close(now, e.Err)
	v.wait(false)
	if e.Err != nil {
		v.Reason = reason(e.Reason)
	}
	if v.mayRepeat && (v.Reason == "unsafe" || v.Reason == "unknown") {
		v.Reason = "body-too-large" // or of a length that nobody knows: it was not kept, and cannot be sent again
	}
}

// close ends the attempt at hand.
func (v *Visit) close(now time.Time, err error) {
	n := len(v.Attempts)
	if n == 0 || v.Attempts[n-1].Took > 0 {
		return
	}
	a := &v.Attempts[n-1]
	a.Took = max(now.Sub(a.Begun), 1)
	if status, ok := errors.AsType[*riphttp.StatusError](err); ok {
		a.Status = status.Code
	} else if err != nil {
		a.Failure = failure(err)
	}
}

// answered notes the header of an answer that goes to the client.
func answered(resp *http.Response) error {
	v := visitOf(resp.Request.Context())
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answered = true
	v.close(time.Now(), nil)
	if n := len(v.Attempts); n > 0 {
		v.Attempts[n-1].Status = resp.StatusCode
	}
	if v.guard != nil && resp.ContentLength < 0 && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = trailed{resp.Body, resp, v}
	}
	return nil
}

// outOfTime notes that the answer is that of the deadline, unless the service gave it.
func (v *Visit) outOfTime() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.answered && v.Problem == "" {
		v.Problem = "deadline"
		if v.sends == 0 {
			v.Reached = ReachedNo
		}
	}
}

// reason is the word for why riphttp gave up.
func reason(err error) string {
	switch {
	case err == nil:
		return "final"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, riprap.ErrAttempts):
		return "attempts"
	case errors.Is(err, riprap.ErrBudget):
		return "budget"
	case errors.Is(err, riprap.ErrWait):
		return "wait"
	case errors.Is(err, riprap.ErrDeadline), errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, riphttp.ErrRetried):
		return "retried"
	case errors.Is(err, riphttp.ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(err, riphttp.ErrUnsafe):
		return "unsafe"
	}
	return "final"
}

// failure is the word for how an attempt ended without an answer. The text of the error may hold addresses and what the
// service sent, and is not shown.
func failure(err error) string {
	op, _ := errors.AsType[*net.OpError](err)
	dialing := op != nil && op.Op == "dial"
	_, dns := errors.AsType[*net.DNSError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, errIntake):
		return "body"
	case dns:
		return "dns"
	case record || alert || certificate:
		return "tls"
	case dialing && op.Timeout():
		return "connect-timeout"
	case errors.Is(err, syscall.ECONNREFUSED), dialing:
		return "refused"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), timeout != nil && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "protocol"
	}
	return "other"
}

// methodOf is a request's method, or one word for those that anybody may make up. It is never a part of the request's text, which
// would stay in memory with it, path and query included.
func methodOf(r *http.Request) string {
	for _, known := range methods {
		if r.Method == known {
			return known
		}
	}
	return "OTHER"
}

var methods = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}
