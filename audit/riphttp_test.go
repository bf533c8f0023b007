package audit

import (
	"context"
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// notAsked are the rules about headers that a Transport sends only to the services that its Internal names.
var notAsked = []string{"deadline-shrinks", "attempt-header"}

func TestRiphttpPassesEveryRuleThatApplies(t *testing.T) {
	lowCap := riprap.Policy{MaxAttempts: 6, Timeout: time.Minute, Backoff: riprap.Backoff{Base: 200 * time.Millisecond, Max: 500 * time.Millisecond}}
	tests := map[string]struct {
		policy        riprap.Policy
		newKey        func(*http.Request) string
		internal      bool
		notApplicable []string
	}{
		"as it comes": {riprap.Policy{}, nil, false, append([]string{"jitter-at-cap", "key-new"}, notAsked...)},
		"a low cap":   {lowCap, nil, false, append([]string{"key-new"}, notAsked...)},
		"with keys of its own": {riprap.Policy{}, func(*http.Request) string { return rand.Text() }, false,
			append([]string{"jitter-at-cap", "post-503", "post-reset", "post-timeout"}, notAsked...)},
		"to a service of one's own": {riprap.Policy{}, nil, true, []string{"jitter-at-cap", "key-new"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			client := func(m *memory) Client {
				seeds := &subject{runs: map[string]uint64{}}
				return func(ctx context.Context, c Call) error {
					policy := tt.policy
					policy.Rand = seeds.seed(c.URL)
					return HTTP(func() *http.Client {
						return &http.Client{
							Timeout: 28 * time.Second, // what bounds the body is the caller's: a stream may live for hours
							Transport: &riphttp.Transport{
								Base: m.transport(), Policy: &policy, NewKey: tt.newKey,
								Internal: func(*http.Request) bool { return tt.internal },
							},
						}
					})(ctx, c)
				}
			}
			report := auditIn(t, Audit{Claims: []string{"x-should-retry"}}, client)
			want := map[string]Verdict{}
			for _, id := range tt.notApplicable {
				want[id] = NotApplicable
			}
			for _, f := range report.Findings {
				if v, listed := want[f.ID]; f.Verdict != Pass && !listed || listed && f.Verdict != v {
					t.Errorf("riphttp, %s: %v", name, f)
				}
			}
		})
	}
}
