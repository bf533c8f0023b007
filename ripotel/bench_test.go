package ripotel_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
	"github.com/riprap-go/riprap/ripotel"
)

// telemetries are what a call may cost: nothing looked at, and all of it kept by an SDK that exports nothing.
func telemetries() map[string]*ripotel.Telemetry {
	return map[string]*ripotel.Telemetry{
		"none":  nil,
		"no-op": {TracerProvider: noop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), Propagator: propagation.TraceContext{}},
		"sdk": {TracerProvider: sdktrace.NewTracerProvider(), MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
			Propagator: propagation.TraceContext{}},
	}
}

func BenchmarkDo(b *testing.B) {
	succeed := func(context.Context) error { return nil }
	for name, telemetry := range telemetries() {
		b.Run("telemetry="+name, func(b *testing.B) {
			b.ReportAllocs()
			ctx, policy := b.Context(), &riprap.Policy{}
			if telemetry == nil {
				for b.Loop() {
					riprap.Do(ctx, policy, succeed)
				}
				return
			}
			policy.Trace = telemetry.Trace(nil)
			for b.Loop() {
				riprap.Do(telemetry.Start(ctx, "charge"), policy, succeed)
			}
		})
	}
}

func BenchmarkTransport(b *testing.B) {
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(http.NoBody), Header: http.Header{}}, nil
	})
	for name, telemetry := range telemetries() {
		b.Run("telemetry="+name, func(b *testing.B) {
			b.ReportAllocs()
			var client http.RoundTripper = &riphttp.Transport{Base: base}
			if telemetry != nil {
				client = telemetry.Transport(&riphttp.Transport{Base: base})
			}
			req := newRequest(b.Context(), b, "GET", memhttp.URL)
			for b.Loop() {
				resp, err := client.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
