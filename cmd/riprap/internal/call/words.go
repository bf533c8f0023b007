package call

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// A reason is why a call ended without success, for programs and for people.
type reason struct {
	name string // attempts, budget, deadline, wait, unsafe, unknown, interrupted, timeout, refused, final, broken
	text string
}

const addKey = "; add --key auto if the service honours keys"

// reason says why there was no further attempt.
func (r *reporter) reason(e riprap.Event) reason {
	o := r.order
	most := o.policy.MaxAttempts
	if errors.Is(e.Reason, riphttp.ErrOutcomeUnknown) { // beside why the call ended, if it had a key
		for _, ended := range []error{riprap.ErrAttempts, riprap.ErrBudget, riprap.ErrWait, riprap.ErrDeadline} {
			if errors.Is(e.Reason, ended) {
				e.Reason = ended
				why := r.reason(e)
				why.text += ", outcome unknown: the request may have been processed"
				return why
			}
		}
	}
	switch err := e.Reason; {
	case err == nil && r.status > 0 && r.refuses:
		return reason{"refused", "not retried: the server says not to"}
	case err == nil && r.status > 0:
		return reason{"final", "not retried: a repeat would not change it"}
	case err == nil:
		return reason{"final", "not retried: a repeat would not cure it"}
	case errors.Is(err, riphttp.ErrOutcomeUnknown) && errors.Is(err, context.Canceled):
		return reason{"interrupted", "interrupted, outcome unknown: the request may have been processed"}
	case errors.Is(err, riphttp.ErrOutcomeUnknown) && errors.Is(err, context.DeadlineExceeded):
		return reason{"timeout", "gave up: --timeout " + short(o.timeout) + " is over, outcome unknown: the request may have been processed"}
	case errors.Is(err, context.Canceled):
		return reason{"interrupted", "interrupted"}
	case errors.Is(err, riphttp.ErrOutcomeUnknown):
		text := "gave up: outcome unknown, the request may have been processed and is not sent again"
		if !o.given {
			text += addKey
		}
		return reason{"unknown", text}
	case errors.Is(err, riphttp.ErrUnsafe) && o.given:
		return reason{"unsafe", "gave up: the key was made for another service, and a " + o.method + " without one is not safe to send twice"}
	case errors.Is(err, riphttp.ErrUnsafe):
		return reason{"unsafe", "gave up: a " + o.method + " without a key is not safe to send twice" + addKey}
	case errors.Is(err, riprap.ErrAttempts) && most > 0 && e.Attempts >= most:
		return reason{"attempts", "gave up: no attempts left (" + strconv.Itoa(e.Attempts) + " of " + strconv.Itoa(most) + ")"}
	case errors.Is(err, riprap.ErrAttempts):
		return reason{"broken", "gave up: a large upload has broken its connection twice"}
	case errors.Is(err, riprap.ErrBudget):
		return reason{"budget", "gave up: the budget of " + strconv.Itoa(o.retries) + " is spent"}
	case errors.Is(err, riprap.ErrWait):
		return reason{"wait", "gave up: that is longer than --max-wait " + short(o.policy.MaxWait)}
	case errors.Is(err, riprap.ErrDeadline):
		return reason{"deadline", "gave up: no time for another attempt (--timeout " + short(o.timeout) + ")"}
	case errors.Is(err, context.DeadlineExceeded):
		return reason{"timeout", "gave up: --timeout " + short(o.timeout) + " is over"}
	default:
		return reason{"broken", "gave up: " + plain(err)}
	}
}

// words says in plain words what came in place of a response.
func (r *reporter) words(err error) string {
	op, _ := errors.AsType[*net.OpError](err)
	dialing := op != nil && op.Op == "dial"
	switch {
	case err == nil:
		return "no answer"
	case dialing && op.Timeout() && r.order.connectTimeout > 0:
		return "no connection within " + short(r.order.connectTimeout)
	case errors.Is(err, context.DeadlineExceeded) && r.over != nil && errors.Is(r.over.Reason, context.DeadlineExceeded) && !errors.Is(r.over.Reason, riprap.ErrDeadline):
		return "no answer" // because the time of the whole call was over
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + short(r.order.policy.AttemptTimeout)
	case errors.Is(err, context.Canceled):
		return "no answer"
	default:
		return plain(err)
	}
}

// cut says in plain words why a body ended before its end.
func (r *reporter) cut(ctx context.Context, err error) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "--timeout " + short(r.order.timeout) + " is over"
	case ctx.Err() != nil:
		return "interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		return "nothing came for " + short(r.order.readTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	default:
		return plain(err)
	}
}

// plain is an error in plain words, without addresses, and without what it quotes: that came with the request or from the
// service, and may be secret.
func plain(err error) string {
	if named, ok := errors.AsType[*url.Error](err); ok {
		err = named.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return "no such host"
		case dns.IsTimeout:
			return "no answer from the name server"
		default:
			return "the name server failed"
		}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // of the request's body
		return err.Error()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "certificate not accepted: " + unquoted(cert.Err.Error())
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return unquoted(op.Err.Error())
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		if string(record.RecordHeader[:]) == "HTTP/" {
			return "the server speaks HTTP and not HTTPS"
		}
		return "the server does not speak TLS"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed without an answer"
	}
	return unquoted(err.Error())
}

// printable leaves out what would do something to a terminal: a service may redirect to any host, and name it in any script.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '\uFFFD'
		}
		return c
	}, text)
}

var (
	unclosed = regexp.MustCompile(`[(\[{][^)\]}]*$`)
	leading  = regexp.MustCompile(`([\s:;,]+(got|\w+=))?[\s:;,=]*$`)
)

// unquoted is text up to what it quotes, without what only leads there: a bracket, "; got", "debug=".
func unquoted(text string) string {
	text, _, quotes := strings.Cut(text, `"`)
	if quotes {
		text = leading.ReplaceAllString(unclosed.ReplaceAllString(text, ""), "")
	}
	return text
}
