// Package ripotel tells OpenTelemetry what riprap does: a span for each call, a span for each of its attempts, and the metrics
// that tell whether retries help or hurt. It uses the API of OpenTelemetry alone; which SDK and exporter there are is the
// program's to say.
//
// For HTTP, one line puts it around a riphttp.Transport:
//
//	var telemetry ripotel.Telemetry
//	client := &http.Client{Transport: telemetry.Transport(&riphttp.Transport{})}
//
// For riprap.Do and DoValue, the Policy gets a Trace once, and each call a context that Start returns:
//
//	policy := &riprap.Policy{Trace: telemetry.Trace(nil)}
//	err := riprap.Do(telemetry.Start(ctx, "charge"), policy, charge)
//
// A call's span (kind internal) lasts until the operation is over; in riphttp that is when the answer's body has been read or
// closed. It has an event for each retry, with the wait and its cause, and in the end why riprap gave up. The spans
// of HTTP attempts (kind client) follow the semantic conventions of OpenTelemetry for HTTP, last until the response's header is
// there, and are the parents of what the service does: each attempt sends its own traceparent.
//
// Nothing here holds a path, a query, user information, a header field, a key, a body or the text of an error.
package ripotel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/riprap-go/riprap/ripotel"

// A Telemetry makes spans and metrics. The zero value uses what is registered globally with package otel, also if that
// happens later. It may be used by many goroutines at once; its fields must not change once it is in use, and it must not be
// copied.
type Telemetry struct {
	// TracerProvider makes the spans. Nil means otel.GetTracerProvider.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. Nil means otel.GetMeterProvider.
	MeterProvider metric.MeterProvider

	// Propagator writes an attempt's trace context into the header of its request, and reads that of a request which has no
	// span in its context. Nil means otel.GetTextMapPropagator, which does nothing until the program sets one. To tell
	// services nothing, set an empty composite propagator.
	Propagator propagation.TextMapPropagator

	once       sync.Once
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	calls      metric.Float64Histogram
	waits      metric.Float64Histogram
	requests   metric.Float64Histogram
}

// ready makes what the fields ask for.
func (t *Telemetry) ready() *Telemetry {
	t.once.Do(func() {
		tracers, meters := t.TracerProvider, t.MeterProvider
		if tracers == nil {
			tracers = otel.GetTracerProvider()
		}
		if meters == nil {
			meters = otel.GetMeterProvider()
		}
		t.propagator = t.Propagator
		if t.propagator == nil {
			t.propagator = otel.GetTextMapPropagator()
		}
		t.tracer = tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
		meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
		t.calls = histogram(meter, "riprap.call.duration", "Duration of calls with their waits and, in HTTP, the answer's body.",
			0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
		t.waits = histogram(meter, "riprap.retry.wait", "Waits before retries, as decided.",
			0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
		requests, err := httpconv.NewClientRequestDuration(meter)
		if err != nil {
			otel.Handle(err)
		}
		t.requests = requests.Inst()
	})
	return t
}

// histogram makes an instrument for seconds. OpenTelemetry's own boundaries are meant for milliseconds.
func histogram(meter metric.Meter, name, description string, bounds ...float64) metric.Float64Histogram {
	h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		otel.Handle(err)
		return noop.Float64Histogram{}
	}
	return h
}

// Start returns a context for one call of riprap.Do or DoValue under a Policy with a Trace of this Telemetry, and starts the
// call's span. The name says what is called; names should be few, since they name spans and appear in metrics. The span ends
// when the call is over. A context of Start that is not used for a call, or for one under another Policy, leaves its span open;
// for a second call it tells nothing.
func (t *Telemetry) Start(ctx context.Context, name string) context.Context {
	return t.ready().begin(ctx, &call{name: name, service: name})
}
