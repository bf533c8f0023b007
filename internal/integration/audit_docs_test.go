package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/audit"
)

func TestDocsListTheRulesOfTheAudit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := "| rule | a client that keeps to it | otherwise |\n|---|---|---|\n"
	for _, r := range audit.Rules() {
		want += fmt.Sprintf("| `%s` | %s | %s |\n", r.ID, r.Title, r.Why)
	}
	if !strings.Contains(string(text), "\n"+want+"\n") {
		t.Errorf("docs/audit.md: its table of rules is not that of the audit:\n%s", want)
	}
}
