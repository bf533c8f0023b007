package ripotel_test

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
	"github.com/riprap-go/riprap/ripotel"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// parents is a handler that fails once and keeps what each request says of its parent.
func parents(seen *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Header.Get("Traceparent"))
		if len(*seen) == 1 {
			w.WriteHeader(503)
		}
	}
}

func text(s trace.SpanContext) string {
	return "00-" + s.TraceID().String() + "-" + s.SpanID().String() + "-" + s.TraceFlags().String()
}

func TestEachAttemptIsTheParentOfWhatTheServiceDoes(t *testing.T) {
	var seen []string
	serve(t, parents(&seen), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		ctx, above := w.tracers.Tracer("test").Start(t.Context(), "above")
		req := newRequest(ctx, t, "GET", memhttp.URL, "Traceparent", parent) // less near than the context's
		fetch(w.Transport(rt), req)
		above.End()
		var want []string
		for _, s := range w.spans.GetSpans() {
			if s.Name == "GET" {
				want = append(want, text(s.SpanContext))
			}
		}
		if len(want) != 2 || !slices.Equal(seen, want) {
			t.Errorf("the service saw the parents %q, want the two attempts %q", seen, want)
		}
		if got := w.span(t, "call GET"); got.Parent.SpanID() != above.SpanContext().SpanID() {
			t.Errorf("the call is under %v, want the span of the request's context", got.Parent.SpanID())
		}
		if got := req.Header.Get("Traceparent"); got != parent {
			t.Errorf("the caller's own header says %q now, want it untouched", got)
		}
	})
}

func TestCallThatAProxyForwardsBelongsToItsClientsTrace(t *testing.T) {
	var seen []string
	serve(t, parents(&seen), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		to, _ := url.Parse(memhttp.URL)
		proxy := memhttp.Serve(&httputil.ReverseProxy{
			Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to) },
			Transport: w.Transport(rt),
		})
		client := proxy.Transport()
		fetch(client, newRequest(t.Context(), t, "GET", "http://proxy.test/", "Traceparent", parent))
		client.CloseIdleConnections()
		proxy.Stop()
		if got := text(w.span(t, "call GET").Parent.WithRemote(false)); got != parent {
			t.Errorf("the call is under %s, want %s", got, parent)
		}
		for _, got := range seen {
			if got[:35] != parent[:35] || got == parent {
				t.Errorf("the service saw the parent %s, want an attempt in the trace of %s", got, parent)
			}
		}
	})
}

func TestTraceThatIsNotSampledIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(sdktrace.WithSampler(sdktrace.NeverSample()))
		var got string
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Traceparent")
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		fetch(w.Transport(&riphttp.Transport{Base: base}), newRequest(t.Context(), t, "GET", memhttp.URL, "Traceparent", parent))
		if len(got) != len(parent) || got[:35] != parent[:35] || got[53:] != "00" {
			t.Errorf("sent the parent %q, want one in the trace of %s that is not sampled", got, parent)
		}
	})
}

func TestNoTracesLeaveTheHeaderAsItCame(t *testing.T) {
	for name, tel := range map[string]*ripotel.Telemetry{
		"without spans":      {TracerProvider: noop.NewTracerProvider(), Propagator: propagation.TraceContext{}},
		"without propagator": {TracerProvider: newWatch().tracers, Propagator: propagation.NewCompositeTextMapPropagator()},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				got = r.Header.Get("Traceparent")
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			})
			fetch(tel.Transport(&riphttp.Transport{Base: base}), newRequest(t.Context(), t, "GET", memhttp.URL, "Traceparent", parent))
			if got != parent {
				t.Errorf("sent the parent %q, want %q as it came", got, parent)
			}
		})
	}
}

// program is what the process has registered, from the first call on.
var program = sync.OnceValue(func() *watch {
	w := newWatch()
	otel.SetTracerProvider(w.TracerProvider)
	otel.SetMeterProvider(w.MeterProvider)
	otel.SetTextMapPropagator(w.Propagator)
	return w
})

func TestZeroTelemetryIsThatOfTheProgram(t *testing.T) {
	var telemetry ripotel.Telemetry
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Header: r.Header}, nil
	})
	client := telemetry.Transport(&riphttp.Transport{Base: base})
	fetch(client, newRequest(t.Context(), t, "GET", memhttp.URL)) // before there is any

	w := program()
	w.spans.Reset()
	resp, err := fetch(client, newRequest(t.Context(), t, "GET", memhttp.URL))
	if err != nil {
		t.Fatal(err)
	}
	if want := text(w.span(t, "GET").SpanContext); resp.Header.Get("Traceparent") != want {
		t.Errorf("sent the parent %q, want %q", resp.Header.Get("Traceparent"), want)
	}
	if w.figures(t, "riprap.call.duration") == "" {
		t.Error("no call is measured")
	}
}

// A sampler decides by what it is told when a span begins.
func TestSamplerIsToldWhoIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := sampler{}
		w := newWatch(sdktrace.WithSampler(told))
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		client := w.Transport(&riphttp.Transport{Base: base})
		for _, test := range []struct {
			method, url, name string
			want              []attribute.KeyValue
		}{
			{"GET", "https://api.test/x", "GET", []attribute.KeyValue{attribute.String("http.request.method", "GET"),
				attribute.String("server.address", "api.test"), attribute.Int("server.port", 443), attribute.String("url.scheme", "https")}},
			{"", "http://[::1]:8080/x", "GET", []attribute.KeyValue{attribute.String("http.request.method", "GET"),
				attribute.String("server.address", "::1"), attribute.Int("server.port", 8080), attribute.String("url.scheme", "http")}},
			{"PURGE", "http://api.test", "HTTP", []attribute.KeyValue{attribute.String("http.request.method", "_OTHER"),
				attribute.String("server.address", "api.test"), attribute.Int("server.port", 80), attribute.String("url.scheme", "http")}},
		} {
			clear(told)
			req := newRequest(t.Context(), t, test.method, test.url)
			req.Host = "made-up.test"
			req.Method = test.method
			client.RoundTrip(req)
			for _, name := range []string{test.name, "call " + test.name} {
				got, want := attribute.NewSet(told[name]...), attribute.NewSet(test.want...)
				if !got.Equals(&want) {
					t.Errorf("%s %s: span %q begins with %v, want %v", test.method, test.url, name, told[name], test.want)
				}
			}
		}
	})
}

type sampler map[string][]attribute.KeyValue

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s[p.Name] = p.Attributes
	return sdktrace.AlwaysSample().ShouldSample(p)
}

func (s sampler) Description() string { return "remembers" }
