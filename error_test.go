package riprap_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

// next judges the first failure of an operation without limits of its own.
func next(p *riprap.Policy, err error) (time.Duration, error) {
	o := riprap.Operation{Policy: p}
	o.Begin(noon)
	return o.Next(noon, err)
}

func TestAPermanentErrorComesBackAsItCame(t *testing.T) {
	pathError := &fs.PathError{Op: "open", Path: "x", Err: riprap.Permanent(io.EOF)}
	joined := errors.Join(io.ErrClosedPipe, riprap.Permanent(io.EOF))
	for _, tt := range []struct {
		name string
		err  error
		bare error // what comes back, if that is a certain value
		text string
	}{
		{"bare", riprap.Permanent(io.EOF), io.EOF, "EOF"},
		{"twice", riprap.Permanent(riprap.Permanent(io.EOF)), io.EOF, "EOF"},
		{"around a wait", riprap.Permanent(riprap.After(time.Hour, io.EOF)), io.EOF, "EOF"},
		{"inside a wait", riprap.After(time.Hour, riprap.Permanent(io.EOF)), io.EOF, "EOF"},
		{"in a wrapper", fmt.Errorf("read: %w", riprap.Permanent(io.EOF)), nil, "read: EOF"},
		{"in two wrappers", fmt.Errorf("a: %w", fmt.Errorf("b: %w", riprap.Permanent(io.EOF))), nil, "a: b: EOF"},
		{"around a marked wrapper", riprap.Permanent(fmt.Errorf("read: %w", riprap.Permanent(io.EOF))), nil, "read: EOF"},
		{"in a struct", pathError, nil, "open x: EOF"},
		{"in a joined error", joined, nil, "io: read/write on closed pipe\nEOF"},
		{"in one of several", fmt.Errorf("%w and %w", io.ErrClosedPipe, riprap.Permanent(io.EOF)), nil, "io: read/write on closed pipe and EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			got := riprap.Do(t.Context(), nil, func(context.Context) error {
				calls++
				return tt.err
			})
			if calls != 1 {
				t.Errorf("Do called op %d times, want 1", calls)
			}
			if tt.bare != nil && got != tt.bare {
				t.Errorf("Do = %#v, want exactly %#v", got, tt.bare)
			}
			if got == nil || got.Error() != tt.text || !errors.Is(got, io.EOF) {
				t.Errorf("Do = %v, want the text %q and io.EOF in it", got, tt.text)
			}
			if _, ok := errors.AsType[*riprap.Error](got); ok {
				t.Errorf("Do = %#v, want no *Error: riprap did not give up", got)
			}
		})
	}
	if got := riprap.Do(t.Context(), nil, func(context.Context) error { return pathError }); func() bool {
		found, ok := errors.AsType[*fs.PathError](got)
		return !ok || found != pathError
	}() {
		t.Errorf("Do = %#v, want the wrapper whole in it", got)
	}
}

func TestMarksOfNoErrorAreNoError(t *testing.T) {
	if err := riprap.Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) = %v, want nil", err)
	}
	if err := riprap.After(time.Second, nil); err != nil {
		t.Errorf("After(1s, nil) = %v, want nil", err)
	}
}

func TestAMarkStopsOnlyItsOwnLoop(t *testing.T) {
	for name, mark := range map[string]func() error{
		"bare":    func() error { return riprap.Permanent(errFlaky) },
		"wrapped": func() error { return fmt.Errorf("inner: %w", riprap.Permanent(errFlaky)) },
		"joined":  func() error { return errors.Join(io.EOF, riprap.Permanent(errFlaky)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, outer := 0, 0
				err := riprap.Do(t.Context(), &riprap.Policy{MaxAttempts: 3}, func(ctx context.Context) error {
					outer++
					err := riprap.Do(ctx, &riprap.Policy{MaxAttempts: 5}, func(context.Context) error {
						inner++
						return mark()
					})
					return fmt.Errorf("outer: %w", err)
				})
				if outer != 3 || inner != 3 || !errors.Is(err, errFlaky) || !errors.Is(err, riprap.ErrAttempts) {
					t.Errorf("Do = %v after %d outer and %d inner calls, want ErrAttempts after 3 and 3", err, outer, inner)
				}
			})
		})
	}
}

func TestAWaitThatWasAskedOfAnInnerLoopIsNotAskedOfTheOuter(t *testing.T) {
	never := func(error) bool { return false }
	_, inner := next(&riprap.Policy{Retryable: never}, fmt.Errorf("inner: %w", riprap.After(time.Hour, errFlaky)))
	if wait, stop := next(&riprap.Policy{}, inner); stop != nil || wait > 10*time.Second {
		t.Errorf("the outer Next = %v, %v, want a wait of its own backoff", wait, stop)
	}
	// Nor does it ask what an inner loop's error has in it.
	inner = &riprap.Error{Reason: riprap.Permanent(errShutdown), Err: riprap.After(time.Hour, errFlaky)}
	if wait, stop := next(&riprap.Policy{Retryable: func(error) bool { return true }}, inner); stop != nil || wait > 10*time.Second {
		t.Errorf("the outer Next = %v, %v, want a wait of its own backoff", wait, stop)
	}
	_, inner = next(&riprap.Policy{Retryable: never}, fmt.Errorf("inner: %w", riprap.After(time.Hour, errFlaky)))
	// Its own marks it still sees, beside those that are consumed.
	if wait, stop := next(&riprap.Policy{}, errors.Join(inner, riprap.After(30*time.Second, io.EOF))); stop != nil || wait < 30*time.Second {
		t.Errorf("the outer Next = %v, %v, want a wait of 30s at least", wait, stop)
	}
}

func TestTheLongestOfSeveralWaitsHolds(t *testing.T) {
	for name, err := range map[string]error{
		"outside": riprap.After(20*time.Second, riprap.After(5*time.Second, errFlaky)),
		"inside":  riprap.After(5*time.Second, fmt.Errorf("x: %w", riprap.After(20*time.Second, errFlaky))),
		"beside":  errors.Join(riprap.After(5*time.Second, io.EOF), riprap.After(20*time.Second, errFlaky), riprap.After(time.Second, io.EOF)),
	} {
		if wait, stop := next(nil, err); wait < 20*time.Second || wait > 24*time.Second || stop != nil {
			t.Errorf("%s: Next = %v, %v, want a wait of 20s to 24s", name, wait, stop)
		}
	}
}

func TestTheErrorOfAnInnerLoopIsFinalForAnOuterOne(t *testing.T) {
	always := func(error) bool { return true }
	for _, tt := range []struct {
		name         string
		retryable    func(error) bool
		outer, inner int
	}{
		{"by default", nil, 1, 3},
		{"but not if Retryable says otherwise", always, 2, 6},
		{"nor is Transient misled by the failure in it", riprap.Transient, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outer, inner := 0, 0
				var last error
				err := riprap.Do(t.Context(), &riprap.Policy{MaxAttempts: 2, Retryable: tt.retryable}, func(ctx context.Context) error {
					outer++
					last = riprap.Do(ctx, &riprap.Policy{MaxAttempts: 3}, func(context.Context) error {
						inner++
						return riprap.After(time.Second, io.ErrUnexpectedEOF)
					})
					return fmt.Errorf("outer: %w", last)
				})
				if outer != tt.outer || inner != tt.inner {
					t.Errorf("Do made %d outer and %d inner calls, want %d and %d", outer, inner, tt.outer, tt.inner)
				}
				if !errors.Is(err, last) || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, riprap.ErrAttempts) {
					t.Errorf("Do = %v, want the inner loop's error in it", err)
				}
				if tt.outer == 1 && err.Error() != "outer: "+last.Error() {
					t.Errorf("Do = %v, want the inner loop's error as it came", err)
				}
			})
		})
	}
}

func TestRetryableDecidesOnTheErrorWithoutItsMarks(t *testing.T) {
	var asked []error
	p := &riprap.Policy{Retryable: func(err error) bool {
		asked = append(asked, err)
		return err == errFlaky
	}}
	if wait, stop := next(p, riprap.After(time.Second, errFlaky)); wait == 0 || stop != nil {
		t.Errorf("Next = %v, %v, want a wait", wait, stop)
	}
	if wait, stop := next(p, riprap.After(time.Second, io.EOF)); wait != 0 || stop != io.EOF {
		t.Errorf("Next = %v, %v, want io.EOF as it came", wait, stop)
	}
	if wait, stop := next(p, riprap.Permanent(errFlaky)); wait != 0 || stop != errFlaky {
		t.Errorf("Next = %v, %v, want a permanent error to be final whatever Retryable says", wait, stop)
	}
	if !slices.Equal(asked, []error{errFlaky, io.EOF}) {
		t.Errorf("Retryable was asked about %v, want the bare errors, and nothing that is permanent", asked)
	}
}

func TestAnErrorSaysWhatWasTriedAndWhyItEnded(t *testing.T) {
	for _, tt := range []struct {
		err  riprap.Error
		want string
	}{
		{riprap.Error{}, "gave up after 0 attempts"},
		{riprap.Error{Attempts: 1, Reason: riprap.ErrBudget, Err: io.EOF}, "gave up after 1 attempt: retry budget spent: EOF"},
		{riprap.Error{Attempts: 4, Reason: riprap.ErrAttempts, Err: io.EOF}, "gave up after 4 attempts: no attempts left: EOF"},
		{riprap.Error{Attempts: 2, Reason: riprap.ErrDeadline, Err: io.EOF}, "gave up after 2 attempts: no time for another attempt: EOF"},
		{riprap.Error{Attempts: 1, Reason: riprap.ErrWait, Err: io.EOF, Wait: time.Hour},
			"gave up after 1 attempt: the service asks for a longer wait than allowed (the service asks to wait 1h0m0s): EOF"},
		{riprap.Error{Attempts: 1, Reason: context.Canceled, Err: context.Canceled}, "gave up after 1 attempt: context canceled"},
		{riprap.Error{Reason: context.Canceled}, "gave up after 0 attempts: context canceled"},
		{riprap.Error{Attempts: 1, Err: io.EOF}, "gave up after 1 attempt: EOF"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}

func TestAnErrorHidesNeitherTheReasonNorTheFailure(t *testing.T) {
	dns := &net.DNSError{Err: "server misbehaving"}
	var err error = &riprap.Error{Reason: riprap.ErrDeadline, Err: fmt.Errorf("dial: %w", dns)}
	for _, want := range []error{riprap.ErrDeadline, context.DeadlineExceeded, dns} {
		if !errors.Is(err, want) {
			t.Errorf("errors.Is(%v, %v) = false, want true", err, want)
		}
	}
	if got, ok := errors.AsType[*net.DNSError](err); !ok || got != dns {
		t.Errorf("errors.AsType = %v, want the failure", got)
	}
	for _, other := range []error{riprap.ErrAttempts, riprap.ErrBudget, riprap.ErrWait, context.Canceled} {
		if errors.Is(err, other) {
			t.Errorf("errors.Is(%v, %v) = true, want false", err, other)
		}
	}
	for _, e := range []*riprap.Error{{}, {Reason: io.EOF}, {Err: io.EOF}} {
		if parts := e.Unwrap(); slices.Contains(parts, nil) {
			t.Errorf("Unwrap of %#v = %v, want no nil in it", e, parts)
		}
	}
}

func TestAnErrorIsATimeoutIfTimeRanOut(t *testing.T) {
	for _, tt := range []struct {
		err  riprap.Error
		want bool
	}{
		{riprap.Error{Reason: riprap.ErrDeadline, Err: io.EOF}, true},
		{riprap.Error{Reason: context.DeadlineExceeded}, true},
		{riprap.Error{Reason: riprap.ErrAttempts, Err: context.DeadlineExceeded}, true},
		{riprap.Error{Reason: riprap.ErrAttempts, Err: fmt.Errorf("read: %w", os.ErrDeadlineExceeded)}, true},
		{riprap.Error{Reason: riprap.ErrBudget, Err: &net.DNSError{IsTimeout: true}}, true},
		{riprap.Error{Reason: riprap.ErrAttempts, Err: &url.Error{Err: fmt.Errorf("x: %w", os.ErrDeadlineExceeded)}}, true},
		{riprap.Error{Reason: riprap.ErrAttempts, Err: io.EOF}, false},
		{riprap.Error{Reason: context.Canceled, Err: &net.DNSError{IsNotFound: true}}, false},
		{riprap.Error{Reason: context.Canceled}, false},
		{riprap.Error{}, false},
	} {
		if got := tt.err.Timeout(); got != tt.want {
			t.Errorf("Timeout of %q = %v, want %v", tt.err.Error(), got, tt.want)
		}
	}
	if !os.IsTimeout(&riprap.Error{Reason: riprap.ErrDeadline}) || !os.IsTimeout(riprap.ErrDeadline) {
		t.Error("os.IsTimeout does not know riprap's timeouts")
	}
}

// The parts of an address that nobody but its service may see.
var secrets = []string{"p4ss", "KEYINPATH", "T0K", "S1G", "f-r-a-g"}

const secretURL = "https://u:p4ss@h.test/v1/KEYINPATH/x?token=T0K&sig=S1G#f-r-a-g"

// leaky are failures as they come from net/http and net/url, with an address in their texts.
func leaky() map[string]error {
	get := func(address string, err error) error { return &url.Error{Op: "Get", URL: address, Err: err} }
	_, unparsable := url.Parse(strings.Replace(secretURL, "h.test", "h test", 1))
	quoted := `https://h.test/"KEYINPATH"?token=T0K`
	return map[string]error{
		"bare":               get(secretURL, io.EOF),
		"wrapped":            fmt.Errorf("call: %w", get(secretURL, io.EOF)),
		"in one another":     get(secretURL, fmt.Errorf("redirect: %w", get("https://other.test/KEYINPATH?token=T0K", io.EOF))),
		"joined":             errors.Join(get(secretURL, io.EOF), get("https://other.test/KEYINPATH?sig=S1G", io.EOF)),
		"begun by another":   get("https://h.test/v1", get("https://h.test/v1?token=T0K", io.EOF)),
		"with quotes":        get(quoted, io.EOF),
		"told twice":         fmt.Errorf("fetch %s: %w", quoted, get(quoted, io.EOF)),
		"unparsable":         unparsable,
		"relative":           get("/v1/KEYINPATH?token=T0K", io.EOF),
		"in an inner loop's": &riprap.Error{Attempts: 1, Reason: riprap.ErrBudget, Err: get(secretURL, io.EOF)},
		"without an address": &url.Error{Op: "parse", Err: io.EOF},
	}
}

func TestAnErrorShowsNoSecretsOfAnAddress(t *testing.T) {
	for name, err := range leaky() {
		t.Run(name, func(t *testing.T) {
			for _, e := range []*riprap.Error{
				{Attempts: 3, Reason: riprap.ErrAttempts, Err: err},
				{Attempts: 3, Reason: err, Err: io.EOF}, // a cause
			} {
				text := e.Error()
				for _, secret := range secrets {
					if strings.Contains(text, secret) {
						t.Errorf("Error() = %q, which tells %q", text, secret)
					}
				}
				if !errors.Is(e, err) {
					t.Errorf("the failure %v is not in the error any more", err)
				}
			}
		})
	}
	e := &riprap.Error{Attempts: 1, Reason: riprap.ErrAttempts, Err: leaky()["bare"]}
	if got, want := e.Error(), `gave up after 1 attempt: no attempts left: Get "https://h.test": EOF`; got != want {
		t.Errorf("Error() = %q, want %q: the service stays visible", got, want)
	}
}

// FuzzErrorText looks for addresses that come through.
func FuzzErrorText(f *testing.F) {
	f.Add("https", "h.test", "u:%s", "v1/%s")
	f.Add("http", "h.test:8080", "", "\"%s\"?a=%s\n")
	f.Add("", "", "", "%s?x")
	f.Add("a b", "\x00", "%s", "?%s#%s")
	f.Fuzz(func(t *testing.T, scheme, host, user, path string) {
		const secret = "S-e-c-r-e-t"
		if strings.ContainsAny(scheme+host+user, "/?#@\\") {
			t.Skip("the parts are not where they belong")
		}
		put := func(s string) string { return strings.ReplaceAll(s, "%s", secret) }
		address := scheme + "://" + put(user) + "@" + host + "/" + put(path)
		inner := &url.Error{Op: "Get", URL: address, Err: io.EOF}
		err := &riprap.Error{Reason: riprap.ErrAttempts, Err: errors.Join(errFlaky, fmt.Errorf("outer: %w", inner))}
		if text := err.Error(); strings.Contains(text, secret) {
			t.Errorf("with the address %q, Error() = %q", address, text)
		}
	})
}
