package ripotel

import (
	"context"
	"errors"
	"go/token"
	"reflect"
	"strconv"

	"go.opentelemetry.io/otel/attribute"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// What the semantic conventions have no name for. The page docs/otel.md explains each.
const (
	service        = attribute.Key("riprap.service")
	attempt        = attribute.Key("riprap.attempt")
	attempts       = attribute.Key("riprap.attempts")
	sends          = attribute.Key("riprap.sends")
	reason         = attribute.Key("riprap.reason")
	outcomeUnknown = attribute.Key("riprap.outcome_unknown")
	cause          = attribute.Key("riprap.wait.cause")
	wait           = attribute.Key("riprap.wait")
	asked          = attribute.Key("riprap.asked")
)

// other stands for what has no name, as the semantic conventions say.
const other = "_OTHER"

// reasons are the names of those for which riprap gives up. Of several in one error the first holds: ErrDeadline also
// is a context.DeadlineExceeded.
var reasons = []struct {
	err  error
	name string
}{
	{riprap.ErrAttempts, "attempts"},
	{riprap.ErrBudget, "budget"},
	{riprap.ErrDeadline, "deadline"},
	{riprap.ErrWait, "wait"},
	{riphttp.ErrUnsafe, "unsafe"},
	{riphttp.ErrRetried, "retried"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "timeout"},
	{riphttp.ErrOutcomeUnknown, "outcome_unknown"},
}

func reasonOf(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return other
}

// failureOf returns the type of the failure that a call ended with, empty after a success.
func failureOf(e riprap.Event) string {
	switch {
	case e.Err == nil && e.Reason == nil:
		return ""
	case e.Err == nil, e.Reason != nil && reasonOf(e.Reason) == other:
		// No attempt failed, or the last one came to no end: it panicked.
		return errorType(e.Reason)
	default:
		return errorType(e.Err)
	}
}

// causeOf returns whose wish a wait is. What a service asks for is stretched by up to a fifth; a longer wait is the backoff's.
func causeOf(e riprap.Event) string {
	if e.Asked > 0 && e.Wait-e.Asked <= e.Asked/5 {
		return "asked"
	}
	return "backoff"
}

// errorType returns a name for the kind of an error, of which there are few: a status code, timeout, canceled, what a method
// ErrorType says, or the name of the first type in it that is exported.
func errorType(err error) string {
	if status, ok := errors.AsType[*riphttp.StatusError](err); ok {
		return strconv.Itoa(status.Code)
	}
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return "timeout"
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if named, ok := err.(interface{ ErrorType() string }); ok && named.ErrorType() != "" {
			return named.ErrorType()
		}
		t := reflect.TypeOf(err)
		name := t.Name()
		if t.Kind() == reflect.Pointer {
			name = t.Elem().Name()
		}
		if token.IsExported(name) {
			return t.String()
		}
	}
	return other
}
