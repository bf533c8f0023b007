package ripotel

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// A call is one operation from its start to its end. It is found in the operation's context.
type call struct {
	telemetry *Telemetry
	name      string // of its span
	service   string // what Start was told; in HTTP the events say it
	target    target // in HTTP, where attempts are requests; their spans are those of an attemptsTransport
	earlier   int    // requests sent before, by the calls whose redirects led to this one
	begun     time.Time
	span      trace.Span

	mu      sync.Mutex // a body may be closed by another goroutine
	attempt trace.Span // the one at hand, if it is not HTTP
	sent    int        // requests
	watched bool       // hooks are called: Done will be
	over    bool
}

// turn makes a span, or nil, that of the attempt at hand, and returns the one before. It reports false if the call is over.
func (c *call) turn(attempt trace.Span, over bool) (before trace.Span, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, false
	}
	before, c.attempt = c.attempt, attempt
	c.watched, c.over = true, over
	return before, true
}

// The context of a call has the call under this key, that of an attempt has it as a current. So a loop within an attempt, which
// may have the same Trace, does not take itself for the call around it.
type key struct{}

type current struct{ *call }

// callOf returns the call that a hook's context is for, nil if there is none.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(key{}).(*call)
	return c
}

// begin starts a call with its span, and returns its context.
func (t *Telemetry) begin(ctx context.Context, c *call, options ...trace.SpanStartOption) context.Context {
	c.telemetry, c.begun = t, time.Now()
	ctx, c.span = t.tracer.Start(ctx, c.name, options...)
	return context.WithValue(ctx, key{}, c)
}

// Trace returns hooks that tell of operations in a context of Start, or of the RoundTripper that Transport returns. Others they
// leave alone. The hooks of next, which may be nil, are called too. Use it for the Policy of riprap.Do, and for one that
// riphttp.WithPolicy gives to a request; Transport sets it itself.
func (t *Telemetry) Trace(next *riprap.Trace) *riprap.Trace {
	if next == nil {
		next = &riprap.Trace{}
	}
	return &riprap.Trace{
		Attempt: func(ctx context.Context, e riprap.Event) context.Context {
			c := callOf(ctx)
			if next.Attempt != nil {
				if theirs := next.Attempt(ctx, e); theirs != nil {
					ctx = theirs
				}
			}
			return c.attempted(ctx, e)
		},
		Retry: func(ctx context.Context, e riprap.Event) {
			callOf(ctx).retried(ctx, e)
			if next.Retry != nil {
				next.Retry(ctx, e)
			}
		},
		Done: func(ctx context.Context, e riprap.Event) {
			callOf(ctx).done(ctx, e)
			if next.Done != nil {
				next.Done(ctx, e)
			}
		},
	}
}

// attempted returns the context of an attempt that begins.
func (c *call) attempted(ctx context.Context, e riprap.Event) context.Context {
	if c == nil {
		return ctx
	}
	before, ok := c.turn(nil, false)
	if !ok {
		return ctx
	}
	endAttempt(before, "") // there is none, unless two operations share the context
	if c.target == nil {
		var span trace.Span
		ctx, span = c.telemetry.tracer.Start(ctx, c.name+" attempt")
		if span.IsRecording() {
			span.SetAttributes(attempt.Int(e.Attempts))
		}
		c.turn(span, false)
	}
	return context.WithValue(ctx, key{}, current{c})
}

// endAttempt ends the span of an attempt, if there is one, with the type of its failure if it failed.
func endAttempt(span trace.Span, failure string) {
	if span == nil {
		return
	}
	if failure != "" {
		span.SetAttributes(semconv.ErrorTypeKey.String(failure))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// retried tells of a retry that was decided.
func (c *call) retried(ctx context.Context, e riprap.Event) {
	if c == nil {
		return
	}
	span, ok := c.turn(nil, false)
	recording, measuring := c.span.IsRecording(), c.telemetry.waits.Enabled(ctx)
	if !ok || !recording && !measuring && span == nil {
		return
	}
	failure := errorType(e.Err)
	endAttempt(span, failure)
	attributes := make([]attribute.KeyValue, 0, 5)
	attributes = append(attributes, semconv.ErrorTypeKey.String(failure), cause.String(causeOf(e)))
	if measuring {
		name := service.String(cmp.Or(e.Name, c.service))
		c.telemetry.waits.Record(ctx, e.Wait.Seconds(), metric.WithAttributes(append(attributes, name)...))
	}
	if recording {
		attributes = append(attributes, attempts.Int(e.Attempts), wait.Float64(e.Wait.Seconds()))
		if e.Asked > 0 {
			attributes = append(attributes, asked.Float64(e.Asked.Seconds()))
		}
		c.span.AddEvent("retry", trace.WithAttributes(attributes...))
	}
}

// done ends the call, once.
func (c *call) done(ctx context.Context, e riprap.Event) {
	if c == nil {
		return
	}
	span, ok := c.turn(nil, true)
	if !ok {
		return
	}
	defer c.span.End()
	recording, measuring := c.span.IsRecording(), c.telemetry.calls.Enabled(ctx)
	if !recording && !measuring && span == nil {
		return
	}
	failure := failureOf(e)
	endAttempt(span, failure)
	attributes := make([]attribute.KeyValue, 0, 6)
	if name := cmp.Or(e.Name, c.service); name != "" {
		attributes = append(attributes, service.String(name))
	}
	if failure != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(failure))
	}
	if e.Reason != nil {
		attributes = append(attributes, reason.String(reasonOf(e.Reason)))
	}
	if errors.Is(e.Reason, riphttp.ErrOutcomeUnknown) || errors.Is(e.Err, riphttp.ErrOutcomeUnknown) {
		attributes = append(attributes, outcomeUnknown.Bool(true))
	}
	if measuring {
		c.telemetry.calls.Record(ctx, time.Since(c.begun).Seconds(), metric.WithAttributes(attributes...))
	}
	if !recording {
		return
	}
	if e.Attempts > 0 {
		attributes = append(attributes, attempts.Int(e.Attempts))
	}
	if e.Sends > e.Attempts {
		attributes = append(attributes, sends.Int(e.Sends))
	}
	c.span.SetAttributes(attributes...)
	if failure != "" {
		c.span.SetStatus(codes.Error, "")
	}
}

// unwatched reports whether no hook was called for the call, so that none will end it.
func (c *call) unwatched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.watched
}
