package audit

import (
	"fmt"
	"slices"
	"strings"
)

// A Rule is what a client is to keep to.
type Rule struct {
	ID     string // by which it is named in an Audit
	Title  string // what a client does that keeps to it
	Why    string // what happens otherwise
	Source string // where the rule comes from
	Fix    string // what to change in a client that breaks it
}

// Rules returns all rules, in the order of a report.
func Rules() []Rule {
	all := make([]Rule, len(rules))
	for i, r := range rules {
		all[i] = r.Rule
	}
	return all
}

// A rule is a Rule with what decides it.
type rule struct {
	Rule
	scenarios []string // what it judges
	beside    []string // what it compares them with

	// judge is given the runs of scenarios in which at least one request came.
	judge func(*observed, []*run) outcome
}

// An outcome is what a judge says.
type outcome struct {
	verdict  Verdict
	seen     string
	evidence []string
}

// find judges the rule.
func (r *rule) find(o *observed) Finding {
	out := outcome{}
	out.verdict, out.seen = o.unjudged(r.scenarios)
	if out.verdict == "" {
		out = r.judge(o, o.of(r.scenarios...))
	}
	return Finding{Rule: r.Rule, Verdict: out.verdict, Seen: out.seen, Evidence: out.evidence}
}

// choose returns the rules with the ids, all if there are none.
func choose(ids []string) ([]*rule, error) {
	var chosen []*rule
	for i := range rules {
		if len(ids) == 0 || slices.Contains(ids, rules[i].ID) {
			chosen = append(chosen, &rules[i])
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.ID == id }) {
			all := make([]string, len(rules))
			for i, r := range rules {
				all[i] = r.ID
			}
			return nil, fmt.Errorf("audit: no rule %q; there are: %s", id, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}

var rules = slices.Concat(retryRules, hintRules, limitRules, safetyRules, wireRules)
