package ripotel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestMetricsTellOfCallsWaitsAndRequests(t *testing.T) {
	serve(t, statuses(503, 200, 503), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		rt.Policy.Budget = &riprap.Budget{Reserve: 1, Ratio: -1}
		client := w.Transport(rt)
		for range 2 {
			fetch(client, newRequest(t.Context(), t, "GET", memhttp.URL))
		}
		for name, want := range map[string]string{
			"riprap.call.duration": "1 in 1s: error.type=503 reason=budget service=http://memory.test\n" +
				"1 in 3s: service=http://memory.test",
			"riprap.retry.wait": "1 in 1s: error.type=503 service=http://memory.test wait.cause=backoff",
			"http.client.request.duration": "1 in 1s: http.request.method=GET http.response.status_code=200\n" +
				"2 in 2s: error.type=503 http.request.method=GET http.response.status_code=503",
		} {
			if got := w.figures(t, name); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
			}
		}
	})
}

func TestMetricsAreMadeWithoutSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		w.TracerProvider = noop.NewTracerProvider()
		riprap.Do(w.Start(t.Context(), "charge"), w.traced(), steps(&Failing{}))
		if got, want := w.figures(t, "riprap.call.duration"), "1 in 3s: service=charge"; got != want {
			t.Errorf("riprap.call.duration: %s, want %s", got, want)
		}
		if got, want := w.figures(t, "riprap.retry.wait"), "1 in 1s: error.type="+failing+" service=charge wait.cause=backoff"; got != want {
			t.Errorf("riprap.retry.wait: %s, want %s", got, want)
		}
	})
}

type named struct{ name string }

func (named) Error() string       { return "x" }
func (n named) ErrorType() string { return n.name }

func TestErrorTypeIsOneOfFew(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&riphttp.StatusError{Code: 503}, "503"},
		{fmt.Errorf("%w: %w", &riphttp.StatusError{Code: 504}, context.DeadlineExceeded), "504"},
		{context.Canceled, "canceled"},
		{timeout{}, "timeout"},
		{named{"quota"}, "quota"},
		{fmt.Errorf("x: %w", named{"quota"}), "quota"},
		{named{}, "_OTHER"},
		{fmt.Errorf("x: %w", riprap.After(time.Second, &Failing{})), failing},
		{errors.New("x"), "_OTHER"},
		{errors.Join(&Failing{}), "_OTHER"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch()
			riprap.Do(w.Start(t.Context(), "charge"), w.traced(), steps(riprap.Permanent(test.err)))
			if got := tags(w.span(t, "charge").Attributes); !strings.Contains(got+" ", " error.type="+test.want+" ") {
				t.Errorf("%T %v: attributes %s, want error.type=%s", test.err, test.err, got, test.want)
			}
		})
	}
}

type timeout struct{}

func (timeout) Error() string { return "x" }
func (timeout) Timeout() bool { return true }

func TestNothingToldIsASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("secret: %s %w", r.URL, &Failing{"secret"})
		})
		client := w.Transport(&riphttp.Transport{Base: base, Policy: even()})
		req := newRequest(t.Context(), t, "POST", "http://secret:secret@api.test/secret?secret=secret#secret",
			"Idempotency-Key", "secret", "Authorization", "secret", "Secret", "secret")
		req.Host = "secret.test"
		if _, err := client.RoundTrip(req); err == nil {
			t.Fatal("RoundTrip: no error")
		}
		var figures metricdata.ResourceMetrics
		if err := w.metrics.Collect(t.Context(), &figures); err != nil {
			t.Fatal(err)
		}
		for _, told := range []any{w.spans.GetSpans(), figures} {
			text := fmt.Sprintf("%+v", told)
			if data, err := json.Marshal(told); err == nil {
				text += string(data)
			}
			if !strings.Contains(text, "api.test") {
				t.Errorf("%s\nsays nothing of api.test", text)
			}
			if at := strings.Index(text, "secret"); at >= 0 {
				t.Errorf("a secret is told: …%s", text[max(0, at-100):at+6])
			}
		}
	})
}
