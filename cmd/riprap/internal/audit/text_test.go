package audit

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/golden"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// example is a report made up of a few rules, with a verdict of each kind.
func example() *report {
	found := []audit.Finding{
		{Rule: audit.Rule{ID: "retries-503"}, Verdict: audit.Pass, Seen: "sent 4 times", Evidence: []string{"GET 503: 0s, +1s, +3s, +7s; over after 7s"}},
		{Rule: audit.Rule{ID: "jitter"}, Verdict: audit.Fail, Seen: "of 32 waits around 1s, 32 lie within 50ms of each other", Evidence: []string{
			"GET 503: 0s, +1s, +3.01s, +7.01s; over after 7.01s", "GET 503: 0s, +1s, +3s, +7.01s, +11.02s, +15.02s, +19.03s; over after 23s", "and 30 more runs"}},
		{Rule: audit.Rule{ID: "jitter-at-cap"}, Verdict: audit.Inconclusive, Seen: "the machine is too busy"},
		{Rule: audit.Rule{ID: "retry-after-unreadable"}, Verdict: audit.Pass, Seen: "its own waits, a quarter of them 4s or longer"},
		{Rule: audit.Rule{ID: "post-503"}, Verdict: audit.Inconclusive, Seen: "no request came: exit status 2: curl: \x1b[31mno\x07"},
		{Rule: audit.Rule{ID: "key-new"}, Verdict: audit.NotApplicable, Seen: "its keys are given to it, or it sends none"},
		{Rule: audit.Rule{ID: "connections-reused"}, Verdict: audit.Fail, Seen: "in 32 of 32 runs each attempt opened a connection"},
	}
	for _, r := range audit.Rules() {
		for i := range found {
			if found[i].ID == r.ID {
				found[i].Rule = audit.Rule{ID: r.ID, Title: "what a client does", Why: "what happens otherwise, told at some length, so that it takes two lines at least",
					Source: "a page", Fix: "what to change"}
			}
		}
	}
	return &report{
		Report: &audit.Report{Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			Elapsed: 33400 * time.Millisecond, Slowest: 33012 * time.Millisecond, Findings: found},
		request: &request{name: "curl", program: *programOf("curl -u me:secret {url}", "", "curl", "--retry", "3", "{url}")},
		runs:    110,
	}
}

func TestTheReportForPeople(t *testing.T) {
	for name, on := range map[string]terminal.Screen{
		"60 columns":             {Width: 60},
		"80 columns":             {Width: 80},
		"80 columns with colors": {Width: 80, Palette: true},
		"120 columns verbose":    {Width: 120},
	} {
		t.Run(name, func(t *testing.T) {
			r := example()
			r.verbose = strings.HasSuffix(name, "verbose")
			got := r.text(on)
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
			if strings.ContainsAny(strings.ReplaceAll(got, "\x1b[", ""), "\x1b\x07") || strings.Contains(got, "\x1b[31m") {
				t.Errorf("got what a client said as it was: %q", got)
			}
		})
	}
}

func TestTheVerdictAndTheClosingLineSayWhatIsRequired(t *testing.T) {
	only := func(ids ...string) func(*report) {
		return func(r *report) {
			r.Findings = slices.DeleteFunc(r.Findings, func(f audit.Finding) bool { return !slices.Contains(ids, f.ID) })
		}
	}
	tests := map[string]struct {
		change        func(*report)
		first, closed string
		offenders     int
	}{
		"everything": {func(*report) {}, "2 of 7 rules fail: jitter, connections-reused.",
			"Every rule is required; 3 could not be judged, which is no failure.", 2},
		"nothing": {func(r *report) { r.lax = true }, "2 of 7 rules fail: jitter, connections-reused.",
			"No rule is required.", 0},
		"one that fails": {func(r *report) { r.required = []string{"retries-503", "jitter"} }, "2 of 7 rules fail, 1 of them required: jitter.",
			"Required: retries-503, jitter.", 1},
		"none that fails": {func(r *report) { r.required = []string{"key-new", "post-503"} }, "2 of 7 rules fail, none of them required: jitter, connections-reused.",
			"Required: key-new, post-503. Not judged, which is no failure: post-503 (inconclusive), key-new (not applicable).", 0},
		"no failure":                {only("retries-503", "key-new"), "None of 2 rules fails.", "Every rule is required; 1 could not be judged, which is no failure.", 0},
		"only passes":               {only("retries-503", "retry-after-unreadable"), "curl keeps to all 2 rules.", "Every rule is required.", 0},
		"a rule passes":             {only("retries-503"), "curl keeps to the rule.", "Every rule is required.", 0},
		"a rule fails":              {only("jitter"), "The rule fails: jitter.", "Every rule is required.", 1},
		"a rule that is not judged": {only("key-new"), "The rule could not be judged.", "Every rule is required; 1 could not be judged, which is no failure.", 0},
		"rules that are not judged": {only("key-new", "post-503"), "None of 2 rules could be judged.", "Every rule is required; 2 could not be judged, which is no failure.", 0},
		"one of two":                {only("jitter", "key-new"), "1 of 2 rules fails: jitter.", "Every rule is required; 1 could not be judged, which is no failure.", 1},
	}
	for name, tt := range tests {
		r := example()
		tt.change(r)
		if got := r.verdict(); got != tt.first {
			t.Errorf("%s: verdict = %q, want %q", name, got, tt.first)
		}
		if got, want := r.closing(), tt.closed+" 110 runs in 33.4 s, the slowest of them 33.0 s."; got != want {
			t.Errorf("%s: closing = %q, want %q", name, got, want)
		}
		if got := len(r.offenders()); got != tt.offenders {
			t.Errorf("%s: got %d required failures, want %d", name, got, tt.offenders)
		}
	}
}

func TestEveryRuleStandsBelowAHeading(t *testing.T) {
	rules := audit.Rules()
	heading := ""
	headings, rows := 0, 0
	grouped(rules, func(h string) { heading, headings = h, headings+1 }, func(i int) {
		rows++
		if heading == "" {
			t.Errorf("%s: it stands below no heading", rules[i].ID)
		}
	})
	if headings != len(groups) || rows != len(rules) {
		t.Errorf("got %d headings and %d rules, want %d and %d", headings, rows, len(groups), len(rules))
	}
}
