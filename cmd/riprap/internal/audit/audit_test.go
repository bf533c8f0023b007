package audit

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

// verdicts runs the command with --json and returns what it says of each rule.
func verdicts(t *testing.T, args ...string) (map[string]string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := Run(t.Context(), slices.Concat([]string{"--json"}, args), &stdout, &stderr)
	var got document
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("riprap audit --json %q: %v in %q, stderr %q", args, err, &stdout, &stderr)
	}
	found := map[string]string{}
	for _, r := range got.Rules {
		found[r.ID] = string(r.Verdict)
	}
	if got.Client != filepath.Base(os.Args[0]) || got.Command != got.Client+" … {url}" || got.Seconds < got.Slowest || got.Slowest <= 0 {
		t.Errorf("riprap audit --json %q: got the head %+v", args, got)
	}
	return found, err
}

func TestAProgramIsJudgedByWhatItSends(t *testing.T) {
	args := func(kind string) []string {
		return append([]string{"--rules", "final-status,retries-503,post-503", "--"}, self(kind, "{url}")...)
	}
	if got, err := verdicts(t, args("careful")...); err != nil || got["retries-503"] != "pass" || got["final-status"] != "pass" || got["post-503"] != "not applicable" {
		t.Errorf("a client that repeats after 503 only: got %v and error %v, want passes, not applicable for POSTs, and no error", got, err)
	}
}

func TestTheExitCodeSaysWhetherARequiredRuleFails(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		want  error
	}{
		"all are":            {nil, exit.ErrNotFine},
		"the one that fails": {[]string{"--require", "final-status"}, exit.ErrNotFine},
		"another one":        {[]string{"--require", "tls-final"}, nil},
		"none is":            {[]string{"--require", "none"}, nil},
	} {
		args := slices.Concat([]string{"--rules", "final-status,tls-final"}, tt.flags, []string{"--"}, self("careless", "{url}"))
		got, err := verdicts(t, args...)
		if got["final-status"] != "fail" || got["tls-final"] != "pass" {
			t.Errorf("a client that repeats after every status: got %v, want final-status to fail", got)
		}
		if err != tt.want {
			t.Errorf("required: %s: got error %v, want %v", name, err, tt.want)
		}
	}
}

func TestAFileForJUnitIsWrittenBesideTheTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.xml")
	command := append([]string{"--"}, self("careful", "{url}")...)
	var table, printed, stderr bytes.Buffer
	if err := Run(t.Context(), slices.Concat([]string{"--rules", "tls-final", "--junit", file}, command), &table, &stderr); err != nil {
		t.Fatalf("with --junit FILE: got error %v", err)
	}
	if !strings.HasPrefix(table.String(), filepath.Base(os.Args[0])+" keeps to the rule.\n") {
		t.Errorf("with --junit FILE: got %q, want the table", &table)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), slices.Concat([]string{"--rules", "tls-final", "--junit", "-"}, command), &printed, &stderr); err != nil {
		t.Fatalf("with --junit -: got error %v", err)
	}
	for what, text := range map[string][]byte{"the file": written, "stdout": printed.Bytes()} {
		var got suites
		if err := xml.Unmarshal(text, &got); err != nil || len(got.Suite.Cases) != 1 || got.Suite.Cases[0].Name != "tls-final" {
			t.Errorf("%s: got %q (%v), want a case for tls-final", what, text, err)
		}
	}
}

func TestACommandThatMakesNoCallIsAUsageError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := Run(t.Context(), append([]string{"--"}, self("broken", "{url}")...), &stdout, &stderr)
	want := "riprap audit: the client sent nothing when asked for a GET: exit status 3: cannot do {url} (riprap audit -h"
	if err == nil || !strings.HasPrefix(err.Error(), want) || exit.Code(err) != exit.Usage {
		t.Errorf("got error %v with exit code %d, want %s… with %d", err, exit.Code(err), want, exit.Usage)
	}
	if stdout.Len() > 0 {
		t.Errorf("got %q on stdout, want nothing", &stdout)
	}
}

func TestAnAuditThatFailsLeavesTheFileForJUnitAsItIs(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old.xml"), filepath.Join(dir, "fresh.xml")
	if err := os.WriteFile(old, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{old, fresh} {
		var stdout, stderr bytes.Buffer
		if err := Run(t.Context(), append([]string{"--junit", file, "--"}, self("broken", "{url}")...), &stdout, &stderr); exit.Code(err) != exit.Usage {
			t.Errorf("with --junit %s: got error %v, want that the client sent nothing", file, err)
		}
	}
	if text, err := os.ReadFile(old); string(text) != "before" {
		t.Errorf("the report that was there: got %q (%v), want it as before", text, err)
	}
	if _, err := os.Lstat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a report that was not there: got %v, want none", err)
	}
	if err := Run(t.Context(), slices.Concat([]string{"--rules", "tls-final", "--junit", old, "--"}, self("careful", "{url}")), io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(old); !bytes.HasPrefix(text, []byte("<?xml")) || !bytes.HasSuffix(text, []byte("</testsuites>\n")) {
		t.Errorf("in place of a report that was there: got %q (%v), want XML alone", text, err)
	}
}
