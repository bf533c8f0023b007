package ripotel

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// Transport returns a RoundTripper that sends requests through rt and tells of them. It sets Base and Policy of rt, so rt must
// not be in use yet, and is given away once; a Trace that its Policy has is kept. Nil means the zero riphttp.Transport.
//
// The parent of a call's span is the span in the request's context. Where there is none, it is the one that the request's
// header tells of: a request that a reverse proxy passes on belongs to its client's trace.
//
// A request with a Policy of its own, from riphttp.WithPolicy, is told of in full if that has a Trace of t. Else its call's
// span ends when RoundTrip does, and nothing tells of its waits, nor why it gave up if the last response came back.
func (t *Telemetry) Transport(rt *riphttp.Transport) http.RoundTripper {
	if rt == nil {
		rt = &riphttp.Transport{}
	}
	base := rt.Base
	if base == nil {
		base = standard()
	}
	rt.Base = &attemptsTransport{t, base}
	var policy riprap.Policy
	if rt.Policy != nil {
		policy = *rt.Policy
	}
	policy.Trace = t.Trace(policy.Trace)
	rt.Policy = &policy
	return &callsTransport{t, rt}
}

// standard returns what a riphttp.Transport without a Base sends with.
func standard() *http.Transport {
	base, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		base = base.Clone()
	} else {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
	}
	base.DialContext = (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	base.MaxIdleConnsPerHost = 64
	return base
}

// A callsTransport makes the span of a call.
type callsTransport struct {
	telemetry *Telemetry
	next      *riphttp.Transport
}

func (t *callsTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

func (t *callsTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if req.URL == nil || req.Header == nil {
		return t.next.RoundTrip(req) // which knows how to refuse it
	}
	telemetry := t.telemetry.ready()
	ctx := req.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = telemetry.propagator.Extract(ctx, propagation.HeaderCarrier(req.Header))
	}
	c := &call{name: "call " + methodName(req.Method), target: targetOf(req), earlier: sentBefore(req)}
	ctx = telemetry.begin(ctx, c, trace.WithAttributes(c.target...))
	err = errAborted
	defer func() { // runs also after a panic
		if c.unwatched() {
			e := riprap.Event{Err: err}
			if gaveUp, ok := errors.AsType[*riprap.Error](err); ok {
				e = riprap.Event{Attempts: gaveUp.Attempts, Err: gaveUp.Err, Reason: gaveUp.Reason}
			}
			c.done(ctx, e)
		}
	}()
	resp, err = t.next.RoundTrip(req.WithContext(ctx))
	return resp, err
}

var errAborted = errors.New("the round trip panicked or ended its goroutine")

// sentBefore returns how many requests the calls sent whose redirects led to a request.
func sentBefore(req *http.Request) int {
	if req.Response == nil || req.Response.Request == nil {
		return 0
	}
	c := callOf(req.Response.Request.Context())
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.earlier + c.sent
}

// An attemptsTransport makes the span of an attempt, and hands its trace context to the service.
type attemptsTransport struct {
	telemetry *Telemetry
	base      http.RoundTripper
}

func (t *attemptsTransport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *attemptsTransport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if req.URL == nil || req.Header == nil {
		return t.base.RoundTrip(req)
	}
	telemetry := t.telemetry.ready()
	ctx, asked, resent := sending(req)
	told := asked
	if resent > 0 {
		told = append(slices.Clip(told), semconv.HTTPRequestResendCount(resent))
	}
	begun := time.Now()
	ctx, span := telemetry.tracer.Start(ctx, methodName(req.Method), client, trace.WithAttributes(told...))
	sent := req.WithContext(ctx)
	telemetry.propagator.Inject(ctx, &header{of: sent})
	err = errAborted
	defer func() { // runs also after a panic
		defer span.End()
		measuring := telemetry.requests.Enabled(ctx)
		if !measuring && !span.IsRecording() {
			return
		}
		ended := result(resp, err)
		if measuring {
			telemetry.requests.Record(ctx, time.Since(begun).Seconds(), metric.WithAttributes(slices.Concat(asked, ended)...))
		}
		span.SetAttributes(ended...)
		if err != nil || resp.StatusCode >= 400 {
			span.SetStatus(codes.Error, "")
		}
	}()
	resp, err = t.base.RoundTrip(sent)
	return resp, err
}

var client = trace.WithSpanKind(trace.SpanKindClient)

// sending counts a request for the call that it belongs to. It returns the context of the attempt, what the request asks of whom,
// and how many were sent for the call before.
func sending(req *http.Request) (context.Context, target, int) {
	var c *call
	ctx := req.Context()
	switch found := ctx.Value(key{}).(type) {
	case current:
		c = found.call
	case *call: // no hook has been called for the attempt
		c = found
		ctx = context.WithValue(ctx, key{}, current{c})
	}
	if c == nil || c.target == nil {
		return ctx, targetOf(req), 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	return ctx, c.target, c.earlier + c.sent - 1
}

// A header carries the trace context in a request's header, of which it makes a copy before it changes it.
type header struct {
	of  *http.Request
	own bool
}

func (h *header) Get(name string) string { return h.of.Header.Get(name) }

func (h *header) Set(name, value string) {
	if !h.own {
		h.of.Header, h.own = h.of.Header.Clone(), true
	}
	h.of.Header.Set(name, value)
}

func (h *header) Keys() []string { return slices.Collect(maps.Keys(h.of.Header)) }

// A target is the attributes that say what a request asks of whom.
type target []attribute.KeyValue

// targetOf returns the target of a request. The host is that of the URL: a Host field may come from
// anybody, and metrics would grow with every one that is made up.
func targetOf(req *http.Request) target {
	method := cmp.Or(req.Method, http.MethodGet)
	if !known(method) {
		method = other
	}
	attributes := make(target, 0, 4)
	attributes = append(attributes, semconv.HTTPRequestMethodKey.String(method), semconv.ServerAddress(req.URL.Hostname()),
		semconv.URLScheme(req.URL.Scheme))
	port, _ := strconv.Atoi(cmp.Or(req.URL.Port(), standardPort(req.URL.Scheme)))
	if port > 0 {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	return attributes
}

func standardPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return "0"
}

// result returns the attributes that say what came of a request.
func result(resp *http.Response, err error) []attribute.KeyValue {
	if err != nil {
		return []attribute.KeyValue{semconv.ErrorTypeKey.String(errorType(err))}
	}
	version := strconv.Itoa(resp.ProtoMajor)
	if resp.ProtoMajor == 1 {
		version += "." + strconv.Itoa(resp.ProtoMinor)
	}
	attributes := []attribute.KeyValue{semconv.HTTPResponseStatusCode(resp.StatusCode), semconv.NetworkProtocolVersion(version)}
	if resp.StatusCode >= 400 {
		attributes = append(attributes, semconv.ErrorTypeKey.String(strconv.Itoa(resp.StatusCode)))
	}
	return attributes
}

// known reports whether a method is one of RFC 9110 or RFC 5789. There could be many others.
func known(method string) bool {
	switch method {
	case "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE":
		return true
	}
	return false
}

// methodName returns what stands for a method in the name of a span.
func methodName(method string) string {
	method = cmp.Or(method, http.MethodGet)
	if !known(method) {
		return "HTTP"
	}
	return method
}
