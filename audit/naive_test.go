package audit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// naive is the loop that tutorials begin with: three times, at once, whatever the method, and no timeout.
func naive(m *memory) Client {
	return func(ctx context.Context, c Call) error {
		client := &http.Client{Transport: m.transport()}
		defer client.CloseIdleConnections()
		for range c.Calls {
			for range 3 {
				req, err := http.NewRequestWithContext(ctx, c.Method, c.URL, strings.NewReader(c.Body))
				if err != nil {
					return err
				}
				resp, err := client.Do(req)
				if err != nil {
					continue
				}
				resp.Body.Close()
				if resp.StatusCode < 400 {
					break
				}
			}
		}
		return nil
	}
}

func TestTheNaiveLoopFailsWhereItIsNaive(t *testing.T) {
	report := auditIn(t, Audit{}, naive)
	var got []string
	for _, f := range report.Findings {
		if f.Verdict == Fail {
			got = append(got, f.ID)
		}
	}
	want := []string{
		"amplification", "backoff-grows", "connections-reused", "final-status", "jitter", "jitter-at-cap", "key-same", "post-503", "post-reset",
		"retry-after-both", "retry-after-date", "retry-after-huge", "retry-after-past", "retry-after-seconds", "retry-after-unreadable",
		"retry-after-zero", "timeout-hang", "tls-final",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the naive loop fails\n%v, want\n%v", got, want)
	}
}

func TestAClientThatNeverTriesAgainIsNotJudgedByItsWaits(t *testing.T) {
	once := func(m *memory) Client {
		return HTTP(func() *http.Client { return &http.Client{Transport: m.transport()} })
	}
	report := auditIn(t, Audit{}, once)
	for id, want := range map[string]Verdict{
		"retries-503": Fail, "retries-reset": Fail, "jitter": NotApplicable, "backoff-grows": NotApplicable, "amplification": NotApplicable,
		"retry-after-seconds": NotApplicable, "retry-after-huge": NotApplicable, "final-status": Pass, "post-503": Pass, "post-timeout": Inconclusive,
		"timeout-hang": Fail, "key-new": NotApplicable, "redirect-secrets": Fail, "bounded-attempts": Pass, "connections-reused": NotApplicable,
	} {
		if f := report.finding(t, id); f.Verdict != want {
			t.Errorf("http.Client: %v, want %s", f, want)
		}
	}
	// Whoever drops one of them and not the other is told which.
	if f := report.finding(t, "redirect-secrets"); f.Seen != "Idempotency-Key went on to another host, Authorization did not" {
		t.Errorf("http.Client: %v, want it to say which", f)
	}
}

func TestWhatAClientCannotDoIsNotApplicable(t *testing.T) {
	oneGet := func(m *memory) Client {
		client := faultless(m)
		return func(ctx context.Context, c Call) error {
			if c.Method != get || c.Calls > 1 {
				return errors.ErrUnsupported
			}
			return client(ctx, c)
		}
	}
	report := auditIn(t, Audit{}, oneGet)
	for id, want := range map[string]Verdict{
		"post-503": NotApplicable, "key-same": NotApplicable, "body-whole": NotApplicable, "amplification": NotApplicable, "jitter": Pass,
	} {
		if f := report.finding(t, id); f.Verdict != want {
			t.Errorf("a client that makes one GET: %v, want %s", f, want)
		}
	}
}
