package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

func TestHelpListsEveryCommandThatExists(t *testing.T) {
	for _, arg := range []string{"help", "-h", "--help"} {
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), []string{arg}, &stdout, &stderr); err != nil {
			t.Fatalf("riprap %s: got error %v, want none", arg, err)
		}
		for _, c := range commands {
			if !strings.Contains(stdout.String(), "\n  "+c.name+" ") {
				t.Errorf("riprap %s: got no line for %q in\n%s", arg, c.name, &stdout)
			}
		}
		if stderr.Len() > 0 {
			t.Errorf("riprap %s: got %q on stderr, want nothing", arg, &stderr)
		}
	}
}

func TestHelpForOneCommandShowsItsFlags(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"help", "demo"}, &stdout, &stderr); err != nil {
		t.Fatalf("riprap help demo: got error %v, want none", err)
	}
	if !strings.Contains(stdout.String(), "-seed") {
		t.Errorf("riprap help demo: got no -seed in\n%s", &stdout)
	}
}

func TestHelpFitsIntoATerminal(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"help", "demo"}, {"help", "call"}, {"help", "flaky"}, {"help", "audit"}, {"help", "lab"}, {"help", "check"}, {"help", "keys"}, {"help", "proxy"}, {"keys", "list", "-h"}, {"keys", "show", "-h"}, {"keys", "resolve", "-h"}} {
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), args, &stdout, &stderr); err != nil {
			t.Fatalf("riprap %s: got error %v, want none", strings.Join(args, " "), err)
		}
		for line := range strings.Lines(strings.ReplaceAll(stdout.String(), "\t", "    ")) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("riprap %s: got a line of %d columns, want at most 80: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

func TestArgumentsThatMakeNoSenseAreUsageErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // part of the message
	}{
		"no command":                     {nil, "no command given"},
		"an unknown command":             {[]string{"frobnicate"}, `unknown command "frobnicate" (`},
		"a slip of the finger":           {[]string{"dmeo"}, `did you mean "demo"?`},
		"the beginning of a command":     {[]string{"vers"}, `did you mean "version"?`},
		"help for an unknown command":    {[]string{"help", "dem"}, `did you mean "demo"?`},
		"a flag before the command":      {[]string{"--json", "demo"}, "no flag --json here: flags stand behind the command"},
		"a flag that demo does not know": {[]string{"demo", "-frob"}, "riprap demo: flag provided but not defined: -frob"},
		"an argument that demo ignores":  {[]string{"demo", "now"}, `riprap demo: unexpected argument "now"`},
		"too few callers":                {[]string{"demo", "-callers", "3"}, "riprap demo: -callers 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), tt.args, &stdout, &stderr)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("riprap %s: got error %v, want one with %q", strings.Join(tt.args, " "), err, tt.want)
			}
			if got := exit.Code(err); got != exit.Usage {
				t.Errorf("riprap %s: got exit code %d, want %d", strings.Join(tt.args, " "), got, exit.Usage)
			}
			if stdout.Len() > 0 {
				t.Errorf("riprap %s: got %q on stdout, want nothing", strings.Join(tt.args, " "), &stdout)
			}
		})
	}
}

func TestWhatIsTypedDoesNothingToATerminal(t *testing.T) {
	const hostile = "\x1b[31m\a\u202e\u009b"
	lines := [][]string{{hostile}, {"-" + hostile}, {"help", hostile}}
	for _, c := range commands {
		lines = append(lines, []string{c.name, "-" + hostile}, []string{c.name, "--" + hostile + "=1", "x"}, []string{c.name, hostile, hostile, hostile})
	}
	lines = append(lines, []string{"lab", "run", "-" + hostile}, []string{"call", "http://" + hostile}, []string{"flaky", "200 body=" + hostile + ", " + hostile})
	for _, args := range lines {
		var stdout, stderr bytes.Buffer
		code := tell(&stderr, run(t.Context(), args, &stdout, &stderr))
		if code != exit.Usage || strings.ContainsAny(stdout.String()+stderr.String(), hostile[:1]+"\a\u202e\u009b") {
			t.Errorf("riprap %q: got exit code %d, stdout %q, stderr %q, want %d and nothing that a terminal obeys", args, code, &stdout, &stderr, exit.Usage)
		}
	}
}

func TestVersionNamesTheBuild(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"version"}, &stdout, &stderr); err != nil {
		t.Fatalf("riprap version: got error %v, want none", err)
	}
	if !strings.HasPrefix(stdout.String(), "riprap ") || !strings.Contains(stdout.String(), "go1.") {
		t.Errorf("riprap version: got %q, want riprap's version and Go's", &stdout)
	}
}

func TestAnUnreleasedBuildIsNamedByItsCommit(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"},
			{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
		},
	}
	want := "riprap (devel) 0123456789ab, modified, go1.26.0 linux/arm64"
	if got := describe(info); got != want {
		t.Errorf("describe = %q, want %q", got, want)
	}
	info.Main.Version, info.Settings = "v1.2.3", info.Settings[2:]
	if got, want := describe(info), "riprap v1.2.3, go1.26.0 linux/arm64"; got != want {
		t.Errorf("describe of a release = %q, want %q", got, want)
	}
}
