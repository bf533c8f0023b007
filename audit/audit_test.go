package audit

import (
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
	for _, r := range Rules() {
		t.Run(r.ID, func(t *testing.T) {
			report := auditIn(t, Audit{Rules: []string{r.ID}, Claims: []string{"x-should-retry"}}, withFault(r.ID))
			if f := report.finding(t, r.ID); f.Verdict != Fail {
				t.Errorf("a client that breaks %s: %v, want fail", r.ID, f)
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
