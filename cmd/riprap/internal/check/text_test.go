package check

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/golden"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// shop is a file with two ways to one service, one that is not listed, and names of every length.
const shop = `services:
  web:
    calls:
      - to: orders
        policy: {maxAttempts: 1, timeout: 7s, attemptTimeout: 7s}
      - to: recommendations
        policy: {timeout: 1.5s, budget: {}}
  orders:
    limit: 7s
    calls:
      - to: payments
        policy: {maxAttempts: 3, timeout: 4s, attemptTimeout: 1200ms, backoff: {jitter: none}}
      - to: stock
        policy: {maxAttempts: none, timeout: 2h, attemptTimeout: 1m30s}
  recommendations:
    calls:
      - to: payments
        policy: {maxAttempts: 1, attemptTimeout: 500ms}
  payments:
    limit: 4s
    calls:
      - to: ledger-of-the-payment-processing-department
        policy: {maxAttempts: 1}
  ledger-of-the-payment-processing-department: {lease: 1s}
`

// example is what could be found in it. Only the file is read; the rules are not asked.
func example(t *testing.T) *report {
	t.Helper()
	file, err := manifest.Parse("riprap.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	ms, s := time.Millisecond, time.Second
	return &report{
		request: &request{},
		file:    file,
		rules:   []string{"unknown-service", "no-timeout", "no-jitter", "lease-shorter-than-limit"},
		hops: []chain.Hop{
			{Call: -1, Service: "web", Left: math.MaxInt64, Calls: 1},
			{Depth: 1, From: "web", Call: 0, Service: "orders", Left: 7 * s, Calls: 1},
			{Depth: 2, From: "orders", Call: 0, Service: "payments", Left: 100*ms + 900*time.Microsecond, Calls: 3},
			{Depth: 3, From: "payments", Call: 0, Service: "ledger-of-the-payment-processing-department", Left: 100 * ms, Calls: 3},
			{Depth: 2, From: "orders", Call: 1, Service: "stock", Left: 0, Calls: math.MaxInt},
			{Depth: 1, From: "web", Call: 1, Service: "recommendations", Left: 1500 * ms, Calls: 4},
			{Depth: 2, From: "recommendations", Call: 0, Service: "payments", Left: 12345 * time.Nanosecond, Calls: 4, Again: true},
		},
		findings: []chain.Finding{
			{Rule: "no-jitter", Service: "orders", To: "payments", Call: 0, Field: "policy.backoff.jitter",
				Text: "The waits of orders before it tries payments again are not random, and there are two of them at least.",
				Why:  "Callers that failed together come back together, at the same moment each time.", Fix: "Change it from none to full.",
				Figures: []chain.Figure{{Name: "policy.backoff.jitter", Value: "none"}, {Name: "policy.maxAttempts", Value: "3"}}},
			{Rule: "unknown-service", Service: "orders", To: "stock", Call: 1, Field: "to",
				Text: "No service is called stock.", Why: "Nothing below it can be judged.", Fix: "Add it."},
			{Rule: "no-timeout", Service: "payments", To: "ledger-of-the-payment-processing-department", Call: 0, Field: "policy.timeout",
				Text: "Nothing ends it.", Why: "It holds what it has.", Fix: "Set it to 3s."},
			{Rule: "lease-shorter-than-limit", Service: "ledger-of-the-payment-processing-department", Call: -1, Field: "lease",
				Text: "It works for longer than 1s.", Why: "Another takes it over.", Fix: "Raise it.",
				Figures: []chain.Figure{{Name: "lease", Value: "1s"}}},
		},
	}
}

func TestTheReportForPeople(t *testing.T) {
	for name, on := range map[string]terminal.Screen{
		"60 columns":              {Width: 60},
		"60 columns with colors":  {Width: 60, Palette: true},
		"80 columns":              {Width: 80},
		"80 columns with colors":  {Width: 80, Palette: true},
		"120 columns":             {Width: 120},
		"120 columns with colors": {Width: 120, Palette: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := example(t).text(on)
			golden.Check(t, strings.ReplaceAll(name, " ", "-")+".txt", got)
			for line := range strings.Lines(got) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > on.Width && !bool(on.Palette) {
					t.Errorf("%d columns: got a line of %d: %q", on.Width, n, line)
				}
				if strings.HasSuffix(line, " ") {
					t.Errorf("got a line that ends in blanks: %q", line)
				}
			}
			if strings.Contains(got, "\x1b") != bool(on.Palette) {
				t.Errorf("got colors: %t, want %t", !bool(on.Palette), on.Palette)
			}
		})
	}
}

func TestTheReportForPrograms(t *testing.T) {
	r := example(t)
	r.failOn = []string{"unknown-service"}
	got, err := r.json()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "report.json", indented(t, got))

	r.findings, r.hops = nil, nil
	got, err = r.json()
	want := `{"format":1,"file":"riprap.yaml","fine":true,"findings":[],"hops":[],"rules":["unknown-service","no-timeout","no-jitter","lease-shorter-than-limit"]}` + "\n"
	if err != nil || got != want {
		t.Errorf("without findings: got %s (%v), want %s", got, err, want)
	}
}

func TestTheVerdictSaysWhatDecides(t *testing.T) {
	all := example(t).findings
	tests := map[string]struct {
		findings []chain.Finding
		failOn   []string
		want     string
		failing  int
	}{
		"nothing": {nil, nil, "fine: 5 services and 6 calls keep to 4 rules", 0},
		"one":     {all[:1], nil, "not fine, 1 finding: no-jitter", 1},
		"all":     {all, nil, "not fine, 4 findings: no-jitter, unknown-service, no-timeout, lease-shorter-than-limit", 4},
		"some": {all, []string{"no-jitter", "cycle"},
			"not fine, 4 findings: no-jitter, unknown-service, no-timeout, lease-shorter-than-limit (1 of what -fail-on names)", 1},
		"none that counts": {all[:2], []string{"cycle"}, "nothing that -fail-on names, but 2 findings: no-jitter, unknown-service", 0},
		"none counts":      {all[:1], []string{}, "nothing that -fail-on names, but 1 finding: no-jitter", 0},
		"a rule twice":     {append(all[:1:1], all[0]), nil, "not fine, 2 findings: no-jitter", 2},
	}
	for name, tt := range tests {
		r := example(t)
		r.findings, r.failOn = tt.findings, tt.failOn
		if got := r.verdict(); got != tt.want || r.failing() != tt.failing {
			t.Errorf("%s: got %q and %d failing, want %q and %d", name, got, r.failing(), tt.want, tt.failing)
		}
	}
}

func TestAFindingAboutAServiceIsMarkedOnce(t *testing.T) {
	r := example(t)
	r.findings = []chain.Finding{{Rule: "lease-shorter-than-limit", Service: "payments", Call: -1, Text: "t", Why: "w", Fix: "f"}}
	if got := r.text(terminal.Screen{Width: 80}); strings.Count(got, "← 1") != 1 || !strings.Contains(got, "├─ payments ← 1\n") {
		t.Errorf("got\n%s\nwant one mark, where payments is drawn in full", got)
	}
}

// wide is a service that calls so many others.
func wide(t *testing.T, calls int) *report {
	t.Helper()
	r := example(t)
	r.findings, r.hops = nil, r.hops[:1]
	for i := range calls {
		r.hops = append(r.hops, chain.Hop{Depth: 1, From: "web", Call: i, Service: fmt.Sprint("s", i), Left: time.Second, Calls: 1})
		r.findings = append(r.findings, chain.Finding{Rule: "cycle", Service: "web", Call: i, Text: "t", Why: "w", Fix: "f"})
	}
	return r
}

func TestALargeChainIsDrawnInPart(t *testing.T) {
	got := wide(t, 1000).text(terminal.Screen{Width: 80})
	for what, want := range map[string]int{"─ s": mostHops - 1, "found": mostFindings, "Not drawn: 941 more hops": 1, "… and 950 more findings": 1} {
		if n := strings.Count(strings.ReplaceAll(got, "\n", " "), what); n != want {
			t.Errorf("%q: got it %d times, want %d", what, n, want)
		}
	}
	if strings.Contains(got, "└─ ") {
		t.Errorf("got a last call, though more follow that are not drawn:\n%s", got)
	}
	if got := wide(t, mostHops-1).text(terminal.Screen{Width: 80}); strings.Contains(got, "Not drawn") || strings.Count(got, "└─ ") != 1 {
		t.Errorf("got a part of what can be drawn:\n%s", got)
	}
}

func TestADeepChainStaysWithinTheScreen(t *testing.T) {
	r := wide(t, 0)
	for i := range 50 {
		r.hops = append(r.hops, chain.Hop{Depth: i + 1, From: "x", Call: 0, Service: fmt.Sprintf("service-number-%d-of-fifty", i), Left: time.Second, Calls: 1})
	}
	for _, width := range []int{60, 80, 120} {
		got := r.text(terminal.Screen{Width: width})
		if n := widest(got); n > width {
			t.Errorf("%d columns: got a line of %d in\n%s", width, n, got)
		}
		if !strings.Contains(got, "service-number-49-of-fifty") {
			t.Errorf("%d columns: the last service is missing in\n%s", width, got)
		}
	}
}

func TestTheTotalIsTheBoundThatHolds(t *testing.T) {
	for policy, want := range map[string]string{
		"{maxAttempts: 1, attemptTimeout: 500ms}":                                          "500ms",
		"{maxAttempts: 1, timeout: 4s, attemptTimeout: 3s}":                                "3s",
		"{maxAttempts: 1, timeout: 4s}":                                                    "4s",
		"{maxAttempts: 3, attemptTimeout: 1s, maxWait: 10s}":                               "27s", // a fifth is added to each wait
		"{maxAttempts: 3, timeout: 4s, attemptTimeout: 1s}":                                "4s",
		"{maxAttempts: 1}":                                                                 "none",
		"{maxAttempts: none, attemptTimeout: 1s}":                                          "none",
		"{maxAttempts: 2, attemptTimeout: 1s, maxWait: none}":                              "none",
		"{maxAttempts: 2, attemptTimeout: 1s, maxWait: 1ms, backoff: {base: 8s, max: 8s}}": "10s",
	} {
		file, err := manifest.Parse("riprap.yaml", []byte("services: {a: {calls: [{to: b, policy: "+policy+"}]}, b: }"))
		if err != nil {
			t.Fatal(err)
		}
		r := &report{request: &request{}, file: file, hops: file.Chain.Hops()}
		if got := r.rows()[1].cells[2]; got != want {
			t.Errorf("%s: the total is %s, want %s", policy, got, want)
		}
	}
}

func TestDurationsAreSaidWithoutZeros(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "none", -1: "none", time.Hour: "1h", 90 * time.Minute: "1h30m", time.Minute: "1m", 90 * time.Second: "1m30s",
		10 * time.Second: "10s", 100 * time.Minute: "1h40m", time.Hour + time.Second: "1h0m1s", 1200 * time.Millisecond: "1.2s",
	} {
		if got := length(d); got != want {
			t.Errorf("length(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestAProxyIsDrawnBeforeItsService(t *testing.T) {
	const file = `services:
  web:
    calls:
      - {to: shop, policy: {maxAttempts: 1, timeout: 35s}}
  shop:
    limit: 9s
    proxy:
      listen: 127.0.0.1:7070
      to: http://127.0.0.1:9000
      routes:
        - GET /items/
        - {match: GET /reports/, policy: {maxAttempts: 2}}
        - {match: POST /charge, policy: {timeout: 12s, attemptTimeout: 12s}}
`
	got, err := checked(t, file, "-")
	want := `fine: 2 services, 1 proxy and 4 calls keep to 18 rules

service                    limit    attempts  total    left
web                         none                     no end
└─ shop (proxy)             none           1    35s     35s
   ├─ shop                    9s    3 × 9.5s    30s      9s
   ├─ shop, GET /reports/     9s  2 × 14.75s    30s      9s
   └─ shop, POST /charge      9s     1 × 12s    12s      9s

`
	if err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	got, err = checked(t, strings.Replace(file, "maxAttempts: 2", "maxAttempts: 5, attemptTimeout: 9s", 1), "-")
	for _, part := range []string{
		"   ├─ shop, GET /reports/     9s    5 × 9s    30s      9s  ← 1\n",
		"1 attempts-do-not-fit, stdin:12:56\n",
		"  12 |         - {match: GET /reports/, policy: {maxAttempts: 5, attemptTimeout…\n     |                                                        ^\n",
	} {
		if err == nil || !strings.Contains(got, part) {
			t.Errorf("got %v\n%s\nwant %q in it", err, got, part)
		}
	}
}
