package riprap

import (
	"context"
	"errors"
	"io"
	"net"
)

// Transient reports whether err is a failure of the network or of a host that time may cure: a connection that was
// refused, reset or cut off, a timeout, a network or host out of reach, a name server in trouble. It is a Retryable
// for calls outside HTTP, such as a database or a message broker, where most errors are answers and final:
//
//	policy := riprap.Policy{Retryable: riprap.Transient}
//
// It is false for a name that does not exist, for certificates and everything else in TLS, for input that is wrong,
// for a connection closed on this side, for context.Canceled, and for an *[Error]: the loop that returned it has made
// its attempts. A context.DeadlineExceeded is taken for the end of an attempt: whether the caller's own time is over,
// [Do] asks of the caller's context. An io.EOF or io.ErrUnexpectedEOF is taken for a connection cut off; a function
// that reads other things should mark their errors [Permanent].
//
// The request may have been processed all the same. Use it where a repetition does no harm.
func Transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) {
		return false
	}
	if _, inner := errors.AsType[*Error](err); inner {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsNotFound
	}
	for _, cut := range [...]error{context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, cut) {
			return true
		}
	}
	for _, errno := range unreachable {
		if errors.Is(err, errno) {
			return true
		}
	}
	return timedOut(err)
}
