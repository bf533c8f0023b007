package riprap

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// A Trace is told what happens to an operation, in the goroutine that runs it. Nil hooks are skipped. A hook must be
// safe for concurrent use if the Policy is, and it must be quick: the operation waits for it.
type Trace struct {
	// Attempt is called before each attempt. The context that it returns, with a span for example, is the attempt's;
	// nil keeps the one given. Its event says nothing of the attempt before: Err, Wait and Asked are zero.
	Attempt func(context.Context, Event) context.Context

	// Retry is called when a retry was decided, before the wait. If the caller leaves during the wait, the retry is
	// not made.
	Retry func(context.Context, Event)

	// Done is called once for each operation when it is over, whatever its end, a panic included. In riphttp an
	// operation that succeeds is over when the response's body has been read to its end or closed.
	Done func(context.Context, Event)
}

// An Event describes an operation at one moment. Besides Err and Reason, which are as they came, it holds no URL,
// header, key or body.
type Event struct {
	// Name is the service called: the destination in riphttp, empty in Do.
	Name string

	// Attempts counts the attempts begun so far, the one at hand included.
	Attempts int

	// Sends counts the requests that were written, in riphttp: net/http repeats some requests by itself, so it can
	// be more than Attempts. It is zero in Do.
	Sends int

	// Err is how the last attempt failed, nil after a success.
	Err error

	// Reason is why riprap gave up, set only in Done: one of the reasons of an Error. It is nil after a success and
	// after a failure that no retry can cure.
	Reason error

	// Wait is the wait before the next attempt, in Retry; later the last one decided.
	Wait time.Duration

	// Asked is what the service asked for with the last failure, zero if nothing.
	Asked time.Duration
}

func (t *Trace) attempt(ctx context.Context, e Event) context.Context {
	if t == nil || t.Attempt == nil {
		return ctx
	}
	if traced := t.Attempt(ctx, e); traced != nil {
		return traced
	}
	return ctx
}

func (t *Trace) retry(ctx context.Context, e Event) {
	if t != nil && t.Retry != nil {
		t.Retry(ctx, e)
	}
}

func (t *Trace) done(ctx context.Context, e Event) {
	if t != nil && t.Done != nil {
		t.Done(ctx, e)
	}
}

// Log returns a Trace that writes one line for each retry (level Info) and one for each operation that riprap gave up
// (level Warn; Info if its caller left). A nil logger means slog.Default at the time of the line. Lines carry the
// service's name, figures and error texts, in which the URL of a *url.Error is cut down to scheme and host; they carry
// no header, key or body.
func Log(logger *slog.Logger) *Trace {
	log := func(ctx context.Context, level slog.Level, message string, e Event, more ...slog.Attr) {
		l := logger
		if l == nil {
			l = slog.Default()
		}
		attrs := []slog.Attr{slog.Int("attempts", e.Attempts)}
		if e.Name != "" {
			attrs = append(attrs, slog.String("service", e.Name))
		}
		if e.Sends > e.Attempts {
			attrs = append(attrs, slog.Int("sends", e.Sends))
		}
		if e.Asked > 0 {
			attrs = append(attrs, slog.Duration("asked", e.Asked))
		}
		attrs = append(attrs, more...)
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", errorText(e.Err)))
		}
		l.LogAttrs(ctx, level, message, attrs...)
	}
	return &Trace{
		Retry: func(ctx context.Context, e Event) {
			log(ctx, slog.LevelInfo, "retry", e, slog.Duration("wait", e.Wait))
		},
		Done: func(ctx context.Context, e Event) {
			if e.Reason == nil {
				return
			}
			level := slog.LevelWarn
			if errors.Is(e.Reason, context.Canceled) {
				level = slog.LevelInfo
			}
			log(ctx, level, "gave up", e, slog.String("reason", errorText(e.Reason)))
		},
	}
}
