package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The guide shows some columns of the table that the simulation writes into the page of decisions.
func TestDocsShowTheFiguresOfTheLayers(t *testing.T) {
	rows := func(page string) map[string][]string {
		text, err := os.ReadFile(filepath.Join(root(t), "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]string{}
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			name := strings.TrimSpace(cells[0])
			if strings.HasPrefix(name, "default, ") || strings.HasPrefix(name, "unlimited, ") {
				found[name] = cells[1:]
			}
		}
		return found
	}
	shown, simulated := rows("deadlines.md"), rows("decisions/layers.md")
	if len(simulated) != 6 || len(shown) != len(simulated) {
		t.Errorf("docs/deadlines.md has %d rows of figures, want the %d of docs/decisions/layers.md", len(shown), len(simulated))
	}
	for name, s := range simulated {
		want := []string{s[0], s[3], s[5], s[6]}
		if got := shown[name]; strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("docs/deadlines.md: %s: %q, want %q as in docs/decisions/layers.md", name, got, want)
		}
	}
}
