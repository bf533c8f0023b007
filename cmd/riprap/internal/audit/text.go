package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// words are the verdicts as the table has them. A failure is seen without colors too.
var words = map[audit.Verdict]string{
	audit.Pass: "pass", audit.Fail: "FAIL", audit.Inconclusive: "inconclusive", audit.NotApplicable: "n/a",
}

// text is the report for people: the answer, a row for each rule, then what stands behind each failure.
func (r *report) text(on terminal.Screen) string {
	var b strings.Builder
	p := on.Palette
	lines(&b, on, "", r.verdict(), p.Strong)
	lines(&b, on, "", r.rest(), p.Quiet)
	r.table(&b, on)
	for _, f := range r.of(audit.Fail) {
		r.head(&b, on, f)
		lines(&b, on, "  seen      ", f.Seen, nil)
		proof(&b, on, "  evidence  ", f)
		lines(&b, on, "  why       ", f.Why, nil)
		lines(&b, on, "  source    ", f.Source, nil)
		lines(&b, on, "  fix       ", f.Fix, nil)
	}
	if r.verbose {
		r.proofs(&b, on)
	}
	b.WriteByte('\n')
	lines(&b, on, "", r.closing(), p.Quiet)
	return b.String()
}

// head is the heading of what is said of one finding.
func (r *report) head(b *strings.Builder, on terminal.Screen, f audit.Finding) {
	b.WriteByte('\n')
	lines(b, on, "", words[f.Verdict]+" "+f.ID+": "+f.Title, on.Palette.Strong)
}

// proof is a finding's evidence, beside a label.
func proof(b *strings.Builder, on terminal.Screen, label string, f audit.Finding) {
	for _, e := range f.Evidence {
		lines(b, on, label, e, nil)
		label = terminal.Pad("", len(label))
	}
}

// lines writes text beside a label, which stands before the first of its lines.
func lines(b *strings.Builder, on terminal.Screen, label, text string, paint func(string) string) {
	indent := len(label)
	for _, line := range terminal.Wrap(clean(text), on.Width-indent) {
		if paint != nil {
			line = paint(line)
		}
		fmt.Fprintf(b, "%s%s\n", terminal.Pad(label, indent), line)
		label = ""
	}
}

// table has a row for each rule. What was seen is wrapped in its column.
func (r *report) table(b *strings.Builder, on terminal.Screen) {
	p := on.Palette
	paint := map[audit.Verdict]func(string) string{
		audit.Pass: p.Good, audit.Fail: p.Bad, audit.Inconclusive: p.Quiet, audit.NotApplicable: p.Quiet,
	}
	word, id := 0, 0
	for _, f := range r.Findings {
		word, id = max(word, len(words[f.Verdict])), max(id, len(f.ID))
	}
	grouped(r.rules(), func(heading string) { fmt.Fprintf(b, "\n%s\n", p.Strong(heading)) }, func(i int) {
		f := r.Findings[i]
		mark := paint[f.Verdict](words[f.Verdict])
		for _, seen := range terminal.Wrap(clean(f.Seen), on.Width-word-id-6) {
			fmt.Fprintf(b, "  %s  %s  %s\n", terminal.Pad(mark, word), terminal.Pad(f.ID, id), seen)
			mark, f.ID = "", ""
		}
	})
}

// rules are the rules that were judged.
func (r *report) rules() []audit.Rule {
	rules := make([]audit.Rule, len(r.Findings))
	for i, f := range r.Findings {
		rules[i] = f.Rule
	}
	return rules
}

// proofs is the evidence of what did not fail.
func (r *report) proofs(b *strings.Builder, on terminal.Screen) {
	for _, f := range r.Findings {
		if f.Verdict == audit.Fail || len(f.Evidence) == 0 {
			continue
		}
		r.head(b, on, f)
		lines(b, on, "  seen      ", f.Seen, nil)
		proof(b, on, "  evidence  ", f)
	}
}

// rest says what became of the rules that do not fail.
func (r *report) rest() string {
	text := fmt.Sprintf("%s: %s", r.name, counted(len(r.of(audit.Pass)), "passes", "pass"))
	if n := len(r.of(audit.Inconclusive)); n > 0 {
		text += ", " + counted(n, "is inconclusive", "are inconclusive")
	}
	if n := len(r.of(audit.NotApplicable)); n > 0 {
		text += ", " + counted(n, "is not applicable (n/a)", "are not applicable (n/a)")
	}
	return text + "."
}

func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// closing says what the exit code stands for, and how long it took.
func (r *report) closing() string {
	var text string
	var open []audit.Finding
	for _, f := range append(r.of(audit.Inconclusive), r.of(audit.NotApplicable)...) {
		if r.requires(f.ID) {
			open = append(open, f)
		}
	}
	switch {
	case r.lax:
		text = "No rule is required."
	case r.required == nil && len(open) == 0:
		text = "Every rule is required."
	case r.required == nil:
		text = fmt.Sprintf("Every rule is required; %d could not be judged, which is no failure.", len(open))
	case len(open) == 0:
		text = fmt.Sprintf("Required: %s.", strings.Join(r.required, ", "))
	default:
		text = fmt.Sprintf("Required: %s. Not judged, which is no failure:", strings.Join(r.required, ", "))
		for i, f := range open {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprintf(" %s (%s)", f.ID, f.Verdict)
		}
		text += "."
	}
	return fmt.Sprintf("%s %s in %s, the slowest of them %s.", text, counted(r.runs, "run", "runs"), seconds(r.Elapsed), seconds(r.Slowest))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// list is every rule, with its reason and its source.
func list(on terminal.Screen) string {
	var b strings.Builder
	rules := audit.Rules()
	grouped(rules, func(heading string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, on.Palette.Strong(heading))
	}, func(i int) {
		r := rules[i]
		lines(&b, on, "  "+terminal.Pad(r.ID, 24), r.Title, nil)
		lines(&b, on, strings.Repeat(" ", 26), r.Why+" ("+r.Source+")", on.Palette.Quiet)
	})
	return b.String()
}
