package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/riprap-go/riprap/audit"
)

// A report is what the audit of a command found.
type report struct {
	*audit.Report
	*request
	runs int
}

// groups are the headings of a report, each with the first of its rules.
var groups = []struct{ heading, first string }{
	{"Retries and waits", "retries-503"},
	{"Retry-After", "retry-after-seconds"},
	{"Limits", "bounded-attempts"},
	{"What must not be repeated, and what must stay the same", "post-503"},
	{"On the wire", "redirect-secrets"},
}

// grouped calls row for each of the rules, and head before the first of a group.
func grouped(rules []audit.Rule, head func(heading string), row func(i int)) {
	heading, headed := "", ""
	for _, known := range audit.Rules() {
		for _, g := range groups {
			if g.first == known.ID {
				heading = g.heading
			}
		}
		i := slices.IndexFunc(rules, func(r audit.Rule) bool { return r.ID == known.ID })
		if i < 0 {
			continue
		}
		if heading != headed {
			head(heading)
			headed = heading
		}
		row(i)
	}
}

// requires reports whether the exit code depends on a rule.
func (q *request) requires(id string) bool {
	return !q.lax && (q.required == nil || slices.Contains(q.required, id))
}

// of returns the findings with the verdict.
func (r *report) of(v audit.Verdict) (found []audit.Finding) {
	for _, f := range r.Findings {
		if f.Verdict == v {
			found = append(found, f)
		}
	}
	return found
}

// offenders are the findings for which the exit code is 1.
func (r *report) offenders() []audit.Finding {
	return slices.DeleteFunc(r.of(audit.Fail), func(f audit.Finding) bool { return !r.requires(f.ID) })
}

// verdict is the answer in a sentence.
func (r *report) verdict() string {
	total, passed, failed, required := len(r.Findings), r.of(audit.Pass), r.of(audit.Fail), r.offenders()
	switch {
	case len(passed) == total:
		return fmt.Sprintf("%s keeps to %s.", r.name, all(total))
	case len(passed)+len(failed) == 0 && total == 1:
		return "The rule could not be judged."
	case len(passed)+len(failed) == 0:
		return fmt.Sprintf("None of %d rules could be judged.", total)
	case len(failed) == 0:
		return fmt.Sprintf("None of %d rules fails.", total)
	case r.lax || len(required) == len(failed):
		return fmt.Sprintf("%s: %s.", fails(len(failed), total), names(failed))
	case len(required) == 0:
		return fmt.Sprintf("%s, none of them required: %s.", fails(len(failed), total), names(failed))
	default:
		return fmt.Sprintf("%s, %d of them required: %s.", fails(len(failed), total), len(required), names(required))
	}
}

func all(rules int) string {
	if rules == 1 {
		return "the rule"
	}
	return fmt.Sprintf("all %d rules", rules)
}

func fails(failed, total int) string {
	switch {
	case total == 1:
		return "The rule fails"
	case failed == 1:
		return fmt.Sprintf("1 of %d rules fails", total)
	default:
		return fmt.Sprintf("%d of %d rules fail", failed, total)
	}
}

// names lists the ids of findings.
func names(found []audit.Finding) string {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return strings.Join(ids, ", ")
}
