package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestALayerPassesAPurchaseOnAndItsOutcomeBack(t *testing.T) {
	tests := map[string]struct {
		reply  reply
		status int
		body   string
	}{
		"paid":        {reply{told: paid, status: 200}, 200, `{"outcome":"paid"}`},
		"turned away": {reply{told: failure, status: 429, header: http.Header{"Retry-After": {"1"}}}, 429, `{"outcome":"failed"}`},
		"unknown":     {reply{told: unsure, status: 502, header: http.Header{"X-Should-Retry": {"false"}}}, 502, `{"outcome":"unknown"}`},
		"no answer":   {reply{told: failure}, 502, `{"outcome":"failed"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var sent purchase
			h := relay(func(_ context.Context, url string, p purchase) reply {
				sent = p
				return tt.reply
			}, "http://next/")
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/buy", strings.NewReader(`{"click":5}`))
			r.Header = http.Header{"X-Customer": {"shopper 1"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Cookie": {"c"}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if string(sent.body) != `{"click":5}` || sent.header.Get("Idempotency-Key") != "k" || sent.header.Get("X-Customer") != "shopper 1" || len(sent.header) != 3 {
				t.Errorf("a purchase passed on: got %q with %v, want its body, customer, type and key", sent.body, sent.header)
			}
			if w.Code != tt.status || strings.TrimSpace(w.Body.String()) != tt.body {
				t.Errorf("its outcome: got %d %q, want %d %q", w.Code, w.Body, tt.status, tt.body)
			}
			if got, want := w.Header().Get("Retry-After"), tt.reply.header.Get("Retry-After"); got != want {
				t.Errorf("its outcome: got Retry-After %q, want %q", got, want)
			}
			if got := w.Header().Values("X-Should-Retry"); got != nil {
				t.Errorf("its outcome: got X-Should-Retry %q, want none: what a layer was told of its own time is not about that of the next", got)
			}
		})
	}
}

func TestAnAnswerThatSaysUnknownIsSeen(t *testing.T) {
	for body, want := range map[string]bool{
		`{"outcome":"unknown"}`: true,
		`{"outcome":"failed"}`:  false,
		`{"type":"https://example.com/docs/proxy.md#outcome-unknown","title":"Outcome is unknown"}`: true,
		`{"type":"https://example.com/docs/idempotency.md#in-flight"}`:                              true,
		`{"type":"https://example.com/docs/proxy.md#unreachable"}`:                                  false,
		"queue full\n": false,
		"":             false,
	} {
		if got := saysUnknown([]byte(body)); got != want {
			t.Errorf("saysUnknown(%q) = %v, want %v", body, got, want)
		}
	}
}
