package audit

import (
	"strings"
	"testing"
	"time"
)

func TestAFaultlessClientPassesEveryRule(t *testing.T) {
	report := auditIn(t, Audit{}, faultless)
	for _, f := range report.Findings {
		if f.Verdict != Pass {
			t.Errorf("a client without faults: %v", f)
		}
	}
	if len(report.Findings) != len(rules) {
		t.Errorf("%d findings, want one of each of the %d rules", len(report.Findings), len(rules))
	}
}

func TestEachRuleFailsTheClientThatBreaksIt(t *testing.T) {
	faults := []string{
		"attempt-header/piles up", "body-whole/redirected", "body-whole/the rest", "connections-reused/unread", "deadline-shrinks/computed once", "deadline-shrinks/grows",
		"final-status/501", "jitter/whole seconds", "key-same/another body", "key-same/lost", "redirect-secrets/credentials",
		"redirect-secrets/second hop", "retry-after-huge/overflows", "retry-after-huge/overflows any integer",
		"retry-after-huge/overflows milliseconds", "retry-after-huge/sleeps", "retry-after-seconds/as milliseconds", "timeout-hang/tries for ever",
	}
	for _, r := range Rules() {
		faults = append(faults, r.ID)
	}
	for _, fault := range faults {
		t.Run(fault, func(t *testing.T) {
			id, _, _ := strings.Cut(fault, "/")
			report := auditIn(t, Audit{Rules: []string{id}, Claims: []string{"x-should-retry"}}, withFault(fault))
			if f := report.finding(t, id); f.Verdict != Fail {
				t.Errorf("a client with fault %s: %v, want fail", fault, f)
			}
		})
	}
}

func TestAnAuditTakesLittleLongerThanItsSlowestRun(t *testing.T) {
	report := auditIn(t, Audit{}, faultless)
	if limit := report.Slowest + report.Slowest/2; report.Slowest < 20*time.Second || report.Elapsed > limit {
		t.Errorf("an audit whose slowest run took %v was over after %v, want %v at most", report.Slowest, report.Elapsed, limit)
	}
}
