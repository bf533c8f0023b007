package riprap

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Why riprap gave up: the Reason of an [Error], besides the error of a context that ended.
var (
	// ErrAttempts: MaxAttempts were made. In riphttp also: a large upload broke its connection twice.
	ErrAttempts = errors.New("no attempts left")
	// ErrBudget: the retry budget, or one above it, is spent.
	ErrBudget = errors.New("retry budget spent")
	// ErrDeadline: a wait and a useful attempt after it do not fit into the time left. It also is
	// context.DeadlineExceeded for errors.Is.
	ErrDeadline error = deadlineError{}
	// ErrWait: the service asked for a longer wait than MaxWait.
	ErrWait = errors.New("the service asks for a longer wait than allowed")
)

type deadlineError struct{}

func (deadlineError) Error() string        { return "no time for another attempt" }
func (deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }
func (deadlineError) Timeout() bool        { return true }
func (deadlineError) Temporary() bool      { return true }

// An Error is what a caller gets when riprap gave up: the last failure and the reason, of which neither hides the
// other. Both are found by errors.Is and errors.As.
type Error struct {
	Attempts int           // attempts made
	Wait     time.Duration // what the service asked for with the last failure, zero if nothing
	Reason   error         // why there was no further attempt: ErrAttempts, ErrBudget, …, or why the context ended
	Err      error         // the last failure; nil if there was no attempt
}

// Error says how many attempts were made, why there were no more, and how the last one failed. The URL of a *url.Error
// in the failure is cut down to its scheme and host: what follows often carries secrets. The rest of the failure's text
// is yours and stays as it is.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("gave up after " + strconv.Itoa(e.Attempts) + " attempt")
	if e.Attempts != 1 {
		b.WriteByte('s')
	}
	reason := errorText(e.Reason)
	if reason != "" {
		b.WriteString(": " + reason)
	}
	if e.Wait > 0 {
		fmt.Fprintf(&b, " (the service asks to wait %v)", e.Wait)
	}
	if last := errorText(e.Err); last != "" && last != reason {
		b.WriteString(": " + last)
	}
	return b.String()
}

// Unwrap returns the reason and the last failure.
func (e *Error) Unwrap() []error {
	both := make([]error, 0, 2)
	for _, err := range [...]error{e.Reason, e.Err} {
		if err != nil {
			both = append(both, err)
		}
	}
	return both
}

// Timeout reports whether time ran out: for the operation, or for its last attempt. It is for callers that ask
// net.Error or os.IsTimeout.
func (e *Error) Timeout() bool {
	if errors.Is(e.Reason, context.DeadlineExceeded) {
		return true
	}
	return timedOut(e.Err)
}

// timedOut reports whether err is a timeout or has one in it. A *url.Error tells only of its direct cause.
func timedOut(err error) bool {
	for {
		timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err)
		if !ok || timeout.Timeout() {
			return ok
		}
		err = errors.Unwrap(timeout)
	}
}

// Permanent marks err as one that no retry can cure. The loop that meets the mark ends and returns what is marked:
// a bare Permanent(io.EOF) comes back as io.EOF itself, and a mark inside of a wrapper is hidden with the wrapper
// left whole. A mark never stops an outer loop. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, mark: mark{permanent: true}}
}

// After marks err as the answer of a service that asked to be left alone for the given time. The wait that follows
// is at least that long, and up to a fifth longer so that clients do not return together. A wait of zero or less
// asks for nothing. Of several marks in one error the longest holds. After(wait, nil) is nil.
func After(wait time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, mark: mark{wait: wait}}
}

// A mark is what Permanent and After tell the loop.
type mark struct {
	permanent bool
	wait      time.Duration
}

type marked struct {
	err error
	mark
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// consumed hides the marks in an error from outer loops. Texts and causes stay.
type consumed struct{ err error }

func (c *consumed) Error() string { return c.err.Error() }
func (c *consumed) Unwrap() error { return c.err }

// unmark returns what the marks in an error say, and the error with its marks consumed.
func unmark(err error) (mark, error) {
	m, found := marks(err)
	if !found {
		return mark{}, err
	}
	for {
		bare, ok := err.(*marked)
		if !ok {
			break
		}
		err = bare.err
	}
	if _, more := marks(err); more {
		err = &consumed{err}
	}
	return m, err
}

// marks collects the marks in err that no inner loop has consumed.
func marks(err error) (m mark, found bool) {
	for err != nil {
		switch e := err.(type) {
		case *consumed, *Error:
			return m, found
		case *marked:
			found = true
			m.permanent = m.permanent || e.permanent
			m.wait = max(m.wait, e.wait)
			err = e.err
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				inner, ok := marks(err)
				found = found || ok
				m.permanent = m.permanent || inner.permanent
				m.wait = max(m.wait, inner.wait)
			}
			return m, found
		default:
			return m, found
		}
	}
	return m, found
}

// errorText returns the text of err with every URL that a *url.Error in it names cut down to scheme and host.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	named := addresses(err)
	// The longest first: one may begin another.
	slices.SortFunc(named, func(a, b string) int { return len(b) - len(a) })
	for _, address := range named {
		short := "(url)"
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			short = u.Scheme + "://" + u.Host
		}
		quoted := strconv.Quote(address)
		text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], short)
		text = strings.ReplaceAll(text, address, short)
	}
	return text
}

// addresses collects the URLs that *url.Errors in err name.
func addresses(err error) (all []string) {
	switch e := err.(type) {
	case *url.Error:
		if e.URL != "" {
			all = append(all, e.URL)
		}
		return append(all, addresses(e.Err)...)
	case interface{ Unwrap() error }:
		return addresses(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, addresses(err)...)
		}
	}
	return all
}
