package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// checked runs the subcommand and returns what it prints.
func checked(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := run(args, strings.NewReader(stdin), &stdout)
	return stdout.String(), err
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.String()
}

// chainOfFour is the file that the repository shows.
func chainOfFour(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../examples/chain/riprap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheExampleIsFineAndEachChangeOfItHasOneFinding(t *testing.T) {
	tests := map[string]struct {
		old, new string // twice, if they are exchanged
		want     []string
	}{
		"as it is":                {"", "", nil},
		"two timeouts exchanged":  {"timeout: 7s, attemptTimeout: 7s", "timeout: 4s, attemptTimeout: 4s", []string{"callee-outlives-caller"}},
		"two limits exchanged":    {"limit: 7s", "limit: 4s", []string{"callee-outlives-caller"}},
		"the ends exchanged":      {"limit: 10s", "limit: 2s", []string{"callee-outlives-caller"}},
		"a fourth attempt":        {"maxAttempts: 2", "maxAttempts: 4", []string{"attempts-do-not-fit"}},
		"no jitter":               {"jitter: full", "jitter: none", []string{"no-jitter"}},
		"no budget":               {"budget: {ratio: 0.2, reserve: 10, window: 10s}", "budget: none", []string{"no-budget"}},
		"not idempotent any more": {"idempotent: true", "idempotent: false", []string{"retry-not-safe"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := chainOfFour(t)
			if tt.old != "" && !strings.Contains(text, tt.old) {
				t.Fatalf("the example has no %q", tt.old)
			}
			if tt.old != "" {
				text = strings.NewReplacer(tt.old, tt.new, tt.new, tt.old).Replace(text)
			}
			out, err := checked(t, text, "--json", "-")
			var got document
			if e := json.Unmarshal([]byte(out), &got); e != nil {
				t.Fatalf("%v in %q, error %v", e, out, err)
			}
			var broken []string
			for _, f := range got.Findings {
				broken = append(broken, f.Rule)
			}
			if strings.Join(broken, " ") != strings.Join(tt.want, " ") || exit.Code(err) != min(1, len(tt.want)) || got.Fine != (len(tt.want) == 0) {
				t.Errorf("got %q, exit code %d, fine %t; want %q", broken, exit.Code(err), got.Fine, tt.want)
			}
			if len(got.Hops) != 4 || len(got.Rules) < 15 {
				t.Errorf("got %d hops and %d rules, want 4 and all", len(got.Hops), len(got.Rules))
			}
		})
	}
}

func TestFailOnDecidesTheExitCode(t *testing.T) {
	text := strings.Replace(chainOfFour(t), "jitter: full", "jitter: none", 1)
	for flag, want := range map[string]int{"all": 1, "none": 0, "no-jitter": 1, "no-budget": 0, "no-budget, no-jitter": 1} {
		out, err := checked(t, text, "-fail-on", flag, "-")
		if got := exit.Code(err); got != want || !strings.Contains(out, "1 no-jitter, stdin:29:54") {
			t.Errorf("-fail-on %s: got exit code %d (%v) and\n%s\nwant %d and the finding", flag, got, err, out, want)
		}
	}
}

func TestTheFileOfThisFolderIsTheDefault(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := checked(t, "")
	want := "riprap check: no riprap.yaml in this folder: go where it is, or name the file (riprap check -h shows what it takes)"
	if err == nil || err.Error() != want || exit.Code(err) != exit.Usage {
		t.Errorf("without a file: got %v, want %s", err, want)
	}
	if err := os.WriteFile("riprap.yaml", []byte("services: {a: }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := checked(t, ""); err != nil || !strings.HasPrefix(out, "fine: 1 service and 0 calls") {
		t.Errorf("got %q, %v, want that the file is fine", out, err)
	}
}

func TestWhatCannotBeReadIsAMistakeInTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.yaml")
	if err := os.WriteFile(file, []byte("services:\n  a: {limt: 3s}\n  b: {limit: 3}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"wrong": {[]string{file}, file + `:2:7: a service has no key "limt", did you mean "limit"?
   2 |   a: {limt: 3s}
     |       ^^^^

` + file + `:3:14: limit: a number without a unit, did you mean 3s?
   3 |   b: {limit: 3}
     |              ^`},
		"missing":       {[]string{file + "x"}, "riprap check: " + file + "x: no such file or directory (riprap check -h shows what it takes)"},
		"a folder":      {[]string{dir}, "riprap check: " + dir + ": is a directory (riprap check -h shows what it takes)"},
		"empty stdin":   {[]string{"-"}, "stdin:1:1: there is nothing in it: want services and their calls\n   1 | \n     | ^"},
		"wrong as JSON": {[]string{"--json", "-"}, "stdin:1:1: there is nothing in it: want services and their calls\n   1 | \n     | ^"},
	}
	for name, tt := range tests {
		out, err := checked(t, "", tt.args...)
		if err == nil || err.Error() != tt.want || out != "" || exit.Code(err) != exit.Usage {
			t.Errorf("%s: got exit code %d, %q and\n%v\nwant 2 and\n%s", name, exit.Code(err), out, err, tt.want)
		}
	}
}

func TestTheNameOfAFileDoesNothingToATerminal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a\x1b[31m\n.yaml")
	for text, want := range map[string]string{
		"":                          "no such file",
		"services: {a: }":           "",
		"services: {a: , b: }":      "unreachable",
		"services: {a: {limit: 5}}": "a number without a unit",
		strings.Repeat("#", manifest.Largest) + "##": "over 1024 KiB",
	} {
		if text != "" {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Skip("no file can have this name here: ", err)
			}
		}
		out, err := checked(t, "", name)
		if all := fmt.Sprint(out, err); strings.ContainsAny(all, "\x1b") || !strings.Contains(all, want) {
			t.Errorf("%.30q: got %q, want %q and no escape", text, all, want)
		}
		os.Remove(name)
	}
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for args, want := range map[string]string{
		"-fail-on jitter -":     `-fail-on: no rule "jitter"; there are unknown-service`,
		"-fail-on no-jiter -":   `-fail-on: no rule "no-jiter", did you mean no-jitter?`,
		"-fail-on all,none -":   `-fail-on: all stands alone, got "all,none"`,
		"-fail-on al -":         `-fail-on: no rule "al", did you mean all?`,
		"-fail-on no-jitter, -": `-fail-on: no rule ""; there are`,
		"- --jsn":               "flag provided but not defined: -jsn, did you mean --json?",
		"--failon none":         "flag provided but not defined: -failon, did you mean --fail-on?",
		"--verbose":             "flag provided but not defined: -verbose",
		"a.yaml b.yaml":         `unexpected argument "b.yaml": want one file`,
		"-- a.yaml --json":      `unexpected argument "--json": want one file`,
		"-fail-on":              "flag needs an argument: -fail-on",
	} {
		out, err := checked(t, "", strings.Fields(args)...)
		if err == nil || !strings.HasPrefix(err.Error(), "riprap check: "+want) || out != "" || exit.Code(err) != exit.Usage {
			t.Errorf("riprap check %s: got %q and %v, want %s", args, out, err, want)
		}
	}
	if _, err := checked(t, "", ""); exit.Code(err) != exit.Usage {
		t.Errorf("riprap check '': got %v, want an error in the usage", err)
	}
}

func TestFlagsMayStandBehindTheFile(t *testing.T) {
	text := chainOfFour(t)
	for _, args := range []string{"- --json", "--json -", "--json -- -", "- -fail-on none --json"} {
		if out, err := checked(t, text, strings.Fields(args)...); err != nil || !strings.HasPrefix(out, `{"format":1,`) {
			t.Errorf("riprap check %s: got %.100q and %v, want JSON", args, out, err)
		}
	}
}

func TestHelpNamesFlagsRulesAndExitCodes(t *testing.T) {
	out, err := checked(t, "", "-h")
	for _, want := range []string{"usage: riprap check [flags] [FILE]", "-fail-on RULES", "-json", "retention-shorter-than-retries", "exit codes: 0 fine"} {
		if !strings.Contains(out, want) {
			t.Errorf("riprap check -h has no %q:\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if len([]rune(line)) > 81 {
			t.Errorf("riprap check -h has a line of %d columns: %s", len(line), line)
		}
	}
	if err != nil {
		t.Errorf("riprap check -h: got %v, want no error", err)
	}
}

// full is a disk on which there is no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAReportThatCannotBeWrittenIsNotFine(t *testing.T) {
	err := run([]string{"-"}, strings.NewReader("services: {a: }"), full{})
	if err == nil || err.Error() != "riprap check: no space left" || exit.Code(err) != exit.NotFine {
		t.Errorf("got %v, want that there is no space left", err)
	}
}
