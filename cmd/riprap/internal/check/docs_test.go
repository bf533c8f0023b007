package check

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

const page = "../../../../docs/check.md"

func docs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An example of docs/check.md: what is changed in examples/chain/riprap.yaml, where \n is a new line, or, with <=>, exchanged,
// the arguments, and what is printed.
var shown = regexp.MustCompile("(?:<!-- change: (.*) (<?=>) (.*) -->\n)?```console\n\\$ riprap check ?(.*)\n((?:.*\n)*?)```")

func TestDocsShowWhatCheckPrints(t *testing.T) {
	found := shown.FindAllStringSubmatch(docs(t), -1)
	if len(found) < 5 {
		t.Fatalf("docs/check.md has %d examples, want 5", len(found))
	}
	file := chainOfFour(t)
	t.Chdir(t.TempDir())
	for _, e := range found {
		text := file
		if e[1] != "" && !strings.Contains(text, e[1]) || e[2] == "<=>" && !strings.Contains(text, e[3]) {
			t.Errorf("examples/chain/riprap.yaml has no %q", e[1])
		}
		switch e[2] {
		case "=>":
			text = strings.Replace(text, e[1], strings.ReplaceAll(e[3], `\n`, "\n"), 1)
		case "<=>":
			text = strings.NewReplacer(e[1], e[3], e[3], e[1]).Replace(text)
		}
		if err := os.WriteFile(manifest.Name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := checked(t, "", strings.Fields(e[4])...)
		if got == "" {
			got = err.Error() + "\n"
		}
		if got != e[5] {
			t.Errorf("with %s %s %s: got\n%sdocs/check.md shows\n%s", e[1], e[2], e[3], got, e[5])
		}
	}
}

func TestDocsShowFilesThatAreFine(t *testing.T) {
	files := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(docs(t), -1) {
		if !strings.Contains(m[1], "services:") {
			continue
		}
		files++
		f, err := manifest.Parse("docs/check.md", []byte(m[1]))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, found := range chain.Check(&f.Chain) {
			t.Errorf("%s: %s in\n%s", found.Rule, found.Text, m[1])
		}
	}
	if files < 2 {
		t.Errorf("docs/check.md has %d files, want two at least", files)
	}
}

func TestDocsListEveryRule(t *testing.T) {
	want := "| rule | otherwise | what mends it |\n|---|---|---|\n"
	_, table, found := strings.Cut(docs(t), want)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if !found || len(rows) != len(chain.Rules()) {
		t.Fatalf("docs/check.md has %d rows of rules, want %d", len(rows), len(chain.Rules()))
	}
	for i, r := range chain.Rules() {
		if want := fmt.Sprintf("| `%s` | %s | ", r.ID, r.Why); !strings.HasPrefix(rows[i], want) || len(rows[i]) < len(want)+10 {
			t.Errorf("docs/check.md has the row\n%s\nwant\n%s… |", rows[i], want)
		}
	}
}

func TestDocsListEveryKey(t *testing.T) {
	_, table, _ := strings.Cut(docs(t), "| key | of | means | left out |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	keys := 0
	for _, wrong := range []string{
		"?: 1", "services: {a: {?: 1}}", "services: {a: {calls: [{to: b, ?: 1}]}}", "services: {a: {calls: [{to: b, policy: {?: 1}}]}}",
		"services: {a: {calls: [{to: b, policy: {latency: {?: 1}}}]}}", "services: {a: {calls: [{to: b, policy: {backoff: {?: 1}}}]}}",
		"services: {a: {calls: [{to: b, policy: {budget: {?: 1}}}]}}",
	} {
		_, err := manifest.Parse("f", []byte(strings.Replace(wrong, "?", "nosuchkey", 1)))
		_, list, found := strings.Cut(fmt.Sprint(err), "has no key \"nosuchkey\": want ")
		list, _, _ = strings.Cut(list, "\n")
		if !found {
			t.Fatalf("%s: got %v, want the keys that there are", wrong, err)
		}
		for key := range strings.SplitSeq(strings.ReplaceAll(list, " or ", ", "), ", ") {
			keys++
			if !strings.Contains(table, "`"+key+"`") {
				t.Errorf("docs/check.md does not list the key %s", key)
			}
		}
	}
	if keys < 26 {
		t.Errorf("got %d keys, want all", keys)
	}
}

func TestDocsOfTheProxyListEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, wrong := range []string{"proxy: {nosuchkey: 1}", "services: {a: {proxy: {nosuchkey: 1}}}"} {
		_, err := manifest.Parse("f", []byte(wrong))
		_, list, found := strings.Cut(fmt.Sprint(err), "has no key \"nosuchkey\": want ")
		list, _, _ = strings.Cut(list, "\n")
		if !found {
			t.Fatalf("%s: got %v, want the keys that there are", wrong, err)
		}
		for key := range strings.SplitSeq(strings.ReplaceAll(list, " or ", ", "), ", ") {
			keys++
			if !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("docs/proxy.md does not name the key %s", key)
			}
		}
	}
	if keys < 26 {
		t.Errorf("got %d keys, want all", keys)
	}
}
