//go:build unix

package integration

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/riphttp"
)

// busy are the rules that a machine can be too busy for, as one that runs all these tests may be.
var busy = []string{"backoff-grows", "jitter", "jitter-at-cap", "retry-after-past", "retry-after-zero", "retry-after-unreadable"}

// judge checks that a client passes, of all rules, those that are not listed.
func judge(t *testing.T, client string, findings []audit.Finding, notApplicable ...string) {
	t.Helper()
	if len(findings) != len(audit.Rules()) {
		t.Errorf("%s: %d findings, want one of each of the %d rules", client, len(findings), len(audit.Rules()))
	}
	for _, f := range findings {
		switch {
		case slices.Contains(notApplicable, f.ID):
			if f.Verdict != audit.NotApplicable {
				t.Errorf("%s: %v, want not applicable", client, f)
			}
		case f.Verdict == audit.Pass, f.Verdict == audit.Inconclusive && slices.Contains(busy, f.ID):
		default:
			t.Errorf("%s: %v", client, f)
		}
	}
}

func TestRiphttpPassesTheAuditOverTheWire(t *testing.T) {
	t.Parallel()
	a := audit.Audit{
		Client: audit.HTTP(func() *http.Client {
			return &http.Client{Transport: &riphttp.Transport{}, Timeout: 28 * time.Second}
		}),
		Claims: []string{"x-should-retry"},
	}
	report, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	judge(t, "riphttp", report.Findings, "jitter-at-cap", "key-new", "deadline-shrinks", "attempt-header")
}

func TestRiphttpWithKeysOfItsOwnPassesTheAuditOverTheWire(t *testing.T) {
	t.Parallel()
	a := audit.Audit{
		Client: audit.HTTP(func() *http.Client {
			return &http.Client{Transport: &riphttp.Transport{NewKey: func(*http.Request) string { return rand.Text() }}, Timeout: 28 * time.Second}
		}),
		Rules: []string{"key-new", "key-same", "body-whole", "redirect-secrets"},
	}
	report, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Verdict != audit.Pass {
			t.Errorf("riphttp with NewKey: %v", f)
		}
	}
}

func TestRiphttpTellsInternalServicesRightOverTheWire(t *testing.T) {
	t.Parallel()
	a := audit.Audit{
		Client: audit.HTTP(func() *http.Client {
			internal := func(*http.Request) bool { return true }
			return &http.Client{Transport: &riphttp.Transport{Internal: internal}, Timeout: 28 * time.Second}
		}),
		Rules: []string{"deadline-shrinks", "attempt-header"},
	}
	report, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Verdict != audit.Pass {
			t.Errorf("riphttp with Internal: %v", f)
		}
	}
}

func TestRiprapCallPassesTheAudit(t *testing.T) {
	t.Parallel()
	riprap := filepath.Join(t.TempDir(), "riprap")
	if out, err := shell(t, 5*time.Minute, "go build -o "+riprap+" ./cmd/riprap"); err != nil {
		t.Fatalf("go build ./cmd/riprap: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), riprap, "audit", "--json",
		"--post", riprap+" call -s -d {body} {url}",
		"--keyed", riprap+" call -s -L --key auto -d {body} {url}",
		"--", riprap, "call", "-s", "-L", "-H", "Authorization: Bearer {token}", "{url}")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var report struct{ Rules []audit.Finding }
	if decodeErr := json.Unmarshal(out, &report); decodeErr != nil {
		t.Fatalf("riprap audit: %v, %v\n%s\n%s", err, decodeErr, out, stderr.String())
	}
	judge(t, "riprap call", report.Rules, "jitter-at-cap", "amplification", "deadline-shrinks", "attempt-header")
	if err != nil {
		t.Errorf("riprap audit of riprap call: %v, want no error", err)
	}
}
