package ripotel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
	"github.com/riprap-go/riprap/ripotel"
)

// What riprap.Do and DoValue do, under a Policy with a Trace, for contexts of Start.
func ExampleTelemetry() {
	spans := tracetest.NewInMemoryExporter()
	telemetry := &ripotel.Telemetry{ // or the zero value, for what the program has registered with package otel
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
	}
	policy := &riprap.Policy{
		Backoff: riprap.Backoff{Base: time.Millisecond},
		Trace:   telemetry.Trace(nil), // or a Trace of yours, which is called too
	}

	attempts := 0
	balance, err := riprap.DoValue(telemetry.Start(context.Background(), "balance"), policy, func(context.Context) (int, error) {
		if attempts++; attempts < 3 {
			return 0, errors.New("not yet")
		}
		return 42, nil
	})
	fmt.Println(balance, err)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.Status.Code)
	}
	// Output:
	// 42 <nil>
	// balance attempt Error
	// balance attempt Error
	// balance attempt Unset
	// balance Unset
}

// A reverse proxy of one's own that tries again and tells of it. What its clients send as traceparent is the parent of the
// call, and each attempt is the parent of what the service does.
func ExampleTelemetry_Transport() {
	spans := tracetest.NewInMemoryExporter()
	telemetry := &ripotel.Telemetry{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		Propagator:     propagation.TraceContext{},
	}

	requests := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer service.Close()
	to, err := url.Parse(service.URL)
	if err != nil {
		panic(err)
	}

	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
		},
		Transport: telemetry.Transport(&riphttp.Transport{
			Policy: &riprap.Policy{Backoff: riprap.Backoff{Base: time.Millisecond}},
		}),
	})
	req, err := http.NewRequest("GET", proxy.URL, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	proxy.Close() // waits until the proxy is done with the answer

	fmt.Println(resp.StatusCode)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.Status.Code, s.SpanContext.TraceID())
	}
	// Output:
	// 200
	// GET Error 4bf92f3577b34da6a3ce929d0e0e4736
	// GET Unset 4bf92f3577b34da6a3ce929d0e0e4736
	// call GET Unset 4bf92f3577b34da6a3ce929d0e0e4736
}
