//go:build unix

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell runs a command from the root of the repository and returns what it prints. Whatever it started ends with it.
func shell(t *testing.T, limit time.Duration, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = root(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The commands under Set-up are the first that anyone types. All run here but make test, which runs this test, and those
// that work only with what is published, which the release script proves.
func TestDocsSetUpCommandsRun(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := setUp(parse("README.md", string(text)))
	if !slices.Contains(commands, "make test") {
		t.Errorf("README.md: the commands under Set-up are %q, want make test among them", commands)
	}
	ran := 0
	for _, command := range commands {
		if command == "make test" || slices.ContainsFunc([]string{"git clone ", "cd ", "go get ", "go install "},
			func(prefix string) bool { return strings.HasPrefix(command, prefix) }) {
			continue
		}
		out, err := shell(t, 2*time.Minute, command)
		for tries := 1; err != nil && strings.Contains(out, "too busy for a verdict") && tries < 4; tries++ {
			out, err = shell(t, 2*time.Minute, command)
		}
		if err != nil {
			t.Errorf("README.md says %s: %v\n%s", command, err, out)
		}
		ran++
	}
	if ran == 0 {
		t.Errorf("README.md: the commands under Set-up are %q, want one that runs riprap", commands)
	}
}

func TestReleaseDryRunServesEveryModuleAndChangesNothing(t *testing.T) {
	const refs = "git for-each-ref; git rev-parse HEAD; git status --porcelain"
	before, err := shell(t, time.Minute, refs)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("not a git checkout: %v\n%s", err, before)
	}
	out, err := shell(t, 5*time.Minute, "scripts/release v0.999.0 --dry-run")
	if err != nil || !strings.Contains(out, "dry run of v0.999.0 passed") {
		t.Errorf("scripts/release v0.999.0 --dry-run: %v\n%s", err, out)
	}
	if after, err := shell(t, time.Minute, refs); after != before {
		t.Errorf("after the dry run git says (%v)\n%s\nwant what it said before\n%s", err, after, before)
	}
}
