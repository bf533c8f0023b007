package ripotel_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/ripotel"
)

// A watch is a Telemetry of which a test sees what it tells.
type watch struct {
	*ripotel.Telemetry
	begun   time.Time
	tracers *sdktrace.TracerProvider
	spans   *tracetest.InMemoryExporter
	open    *open
	metrics *sdkmetric.ManualReader
}

func newWatch(options ...sdktrace.TracerProviderOption) *watch {
	w := &watch{begun: time.Now(), spans: tracetest.NewInMemoryExporter(), open: &open{}, metrics: sdkmetric.NewManualReader()}
	w.tracers = sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(w.spans), sdktrace.WithSpanProcessor(w.open))...)
	w.Telemetry = &ripotel.Telemetry{
		TracerProvider: w.tracers,
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.metrics), sdkmetric.WithResource(resource.Empty())),
		Propagator:     propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
	return w
}

// open counts the spans that have begun and not ended.
type open struct{ n atomic.Int64 }

func (o *open) OnStart(context.Context, sdktrace.ReadWriteSpan) { o.n.Add(1) }
func (o *open) OnEnd(sdktrace.ReadOnlySpan)                     { o.n.Add(-1) }
func (o *open) Shutdown(context.Context) error                  { return nil }
func (o *open) ForceFlush(context.Context) error                { return nil }

// story returns the ended spans as a tree, one line for each, with its start, duration, status, attributes and events.
func (w *watch) story() string {
	spans := w.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), b.EndTime.Compare(a.EndTime))
	})
	known := map[trace.SpanID]bool{}
	for _, s := range spans {
		known[s.SpanContext.SpanID()] = true
	}
	var b strings.Builder
	var tell func(parent trace.SpanID, indent string)
	tell = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			above := s.Parent.SpanID()
			if !known[above] {
				above = trace.SpanID{}
			}
			if above != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s: %v %v+%v", indent, s.Name, s.SpanKind, s.StartTime.Sub(w.begun), s.EndTime.Sub(s.StartTime))
			if s.Status.Code != codes.Unset {
				fmt.Fprintf(&b, " %v%s", s.Status.Code, s.Status.Description)
			}
			b.WriteString(tags(s.Attributes) + "\n")
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s  - %s: %v%s\n", indent, e.Name, e.Time.Sub(w.begun), tags(e.Attributes))
			}
			tell(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	tell(trace.SpanID{}, "")
	return b.String()
}

// tags returns attributes as text, in the order of their keys and without what is the same in all tests.
func tags(attributes []attribute.KeyValue) string {
	var list []string
	for _, a := range attributes {
		if key := string(a.Key); key != "server.address" && key != "server.port" && key != "url.scheme" && key != "network.protocol.version" {
			list = append(list, fmt.Sprintf(" %s=%v", strings.TrimPrefix(key, "riprap."), a.Value.String()))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// wantStory compares the spans that have ended with a story. No other may be open.
func (w *watch) wantStory(t *testing.T, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", "  ")
	if got := w.story(); got != want {
		t.Errorf("spans:\n%s\nwant:\n%s", got, want)
	}
	w.wantNoneOpen(t)
}

func (w *watch) wantNoneOpen(t *testing.T) {
	t.Helper()
	if n := w.open.n.Load(); n != 0 {
		t.Errorf("%d spans are open", n)
	}
}

// span returns the one ended span of a name.
func (w *watch) span(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q, want one, in\n%s", len(found), name, w.story())
	}
	return found[0]
}

// figures returns a histogram as text: for each set of attributes its count and sum.
func (w *watch) figures(t *testing.T, name string) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.metrics.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
				if m.Unit != "s" || m.Description == "" {
					t.Errorf("%s: unit %q, description %q, want s and some", name, m.Unit, m.Description)
				}
				for _, p := range h.DataPoints {
					lines = append(lines, fmt.Sprintf("%d in %v:%s", p.Count, time.Duration(p.Sum*1e9), tags(p.Attributes.ToSlice())))
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// even makes all waits of its own exactly a second, so that tests can tell them.
func even() *riprap.Policy {
	return &riprap.Policy{
		MaxAttempts: 3,
		Backoff:     riprap.Backoff{Base: time.Second, Factor: 1, Jitter: riprap.None},
		Rand:        func() float64 { return 0 },
	}
}

// traced is even with a Trace.
func (w *watch) traced() *riprap.Policy {
	p := even()
	p.Trace = w.Trace(nil)
	return p
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
