package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// mostFindings is how many of them are told. Whoever has more mends these first.
const mostFindings = 50

// text is the report for people: the answer, the picture, then what stands behind each finding.
func (r *report) text(on terminal.Screen) string {
	var b strings.Builder
	lines(&b, on, "", r.verdict(), on.Palette.Strong)
	b.WriteByte('\n')
	r.picture(&b, on)
	for i, f := range r.findings {
		if i == mostFindings {
			b.WriteByte('\n')
			lines(&b, on, "", fmt.Sprintf("… and %d more findings, which --json lists", len(r.findings)-i), on.Palette.Quiet)
			break
		}
		r.finding(&b, on, i+1, f)
	}
	return b.String()
}

// finding is what is said of one of them, below its number in the picture.
func (r *report) finding(b *strings.Builder, on terminal.Screen, number int, f chain.Finding) {
	at := r.place(f)
	head := fmt.Sprintf("%d %s, %s:%d:%d", number, f.Rule, manifest.Printable(r.file.Name), at.Line, at.Column)
	if !r.fails(f.Rule) {
		head += " (only reported)"
	}
	b.WriteByte('\n')
	lines(b, on, "", head, on.Palette.Strong)
	source, marks, _ := strings.Cut(strings.TrimSuffix(r.file.Excerpt(at, on.Width), "\n"), "\n")
	frame, carets, _ := strings.Cut(marks, "^")
	fmt.Fprintf(b, "%s\n%s%s\n", source, frame, on.Palette.Bad("^"+carets))
	lines(b, on, "  found  ", f.Text, nil)
	lines(b, on, "  why    ", f.Why, nil)
	lines(b, on, "  fix    ", f.Fix, on.Palette.Good)
}

// verdict is the answer in one line.
func (r *report) verdict() string {
	if len(r.findings) == 0 {
		what := counted(len(r.file.Chain.Services)-len(r.file.Proxies), "service", "services")
		if n := len(r.file.Proxies); n > 0 {
			what += ", " + counted(n, "proxy", "proxies")
		}
		calls := 0
		for _, s := range r.file.Chain.Services {
			calls += len(s.Calls)
		}
		return fmt.Sprintf("fine: %s and %s keep to %s", what, counted(calls, "call", "calls"), counted(len(r.rules), "rule", "rules"))
	}
	var broken []string
	for _, f := range r.findings {
		if !slices.Contains(broken, f.Rule) {
			broken = append(broken, f.Rule)
		}
	}
	text := counted(len(r.findings), "finding", "findings") + ": " + strings.Join(broken, ", ")
	switch n := r.failing(); {
	case n == len(r.findings):
		return "not fine, " + text
	case n == 0:
		return "nothing that -fail-on names, but " + text
	default:
		return fmt.Sprintf("not fine, %s (%d of what -fail-on names)", text, n)
	}
}

func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// lines writes text beside a label, which stands before the first of its lines.
func lines(b *strings.Builder, on terminal.Screen, label, text string, paint func(string) string) {
	indent := len([]rune(label))
	for _, line := range terminal.Wrap(text, on.Width-indent) {
		if paint != nil {
			line = paint(line)
		}
		fmt.Fprintf(b, "%s%s\n", terminal.Pad(label, indent), line)
		label = ""
	}
}
