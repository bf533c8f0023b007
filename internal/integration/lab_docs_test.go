//go:build unix

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Blocks marked console show what riprap lab prints: a line that begins with $ is a command, and the lines below it stand
// in what it prints, in this order; … stands for lines left out. The pictures of a page are drawn by such commands too.
func TestDocsShowWhatTheLabPrints(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round the last digit otherwise, and a simulation takes another course")
	}
	commands := labCommands(t)
	if len(commands) < 5 {
		t.Fatalf("%d commands of riprap lab in the documents, want those of storms.md and sources.md", len(commands))
	}
	riprap := filepath.Join(t.TempDir(), "riprap")
	if out, err := shell(t, 5*time.Minute, "go build -o "+riprap+" ./cmd/riprap"); err != nil {
		t.Fatalf("go build ./cmd/riprap: %v\n%s", err, out)
	}
	drawn := map[string]bool{}
	for _, c := range commands {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(c.text, "riprap ", riprap+" ", 1)
			file, picture := "", ""
			if m := svgPattern.FindStringSubmatch(text); m != nil {
				file, picture = m[1], filepath.Join(t.TempDir(), "picture.svg")
				text = strings.Replace(text, file, picture, 1)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
			cmd.Dir = root(t)
			out, err := cmd.Output()
			if exit, ok := err.(*exec.ExitError); err != nil && !(ok && exit.ExitCode() == 1) { // 1: it did not recover
				t.Fatalf("%s says %s: %v\n%s", c.file, c.text, err, out)
			}
			if missing := firstMissing(c.output, strings.Split(string(out), "\n")); missing != "" {
				t.Errorf("%s shows a line that %s does not print, or not there:\n%s\nit prints\n%s", c.file, c.text, missing, out)
			}
			if file == "" {
				return
			}
			got, err := os.ReadFile(picture)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := os.ReadFile(filepath.Join(root(t), file)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %s is not what %s draws (%v): run it", c.file, file, c.text, err)
			}
		})
		if m := svgPattern.FindStringSubmatch(c.text); m != nil {
			drawn[m[1]] = true
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root(t), "docs/pictures/*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		name := filepath.ToSlash(strings.TrimPrefix(p, root(t)+string(filepath.Separator)))
		if !drawn[name] {
			t.Errorf("no document has the command that draws %s", name)
		}
	}
}

var svgPattern = regexp.MustCompile(`-svg[ =](\S+)`)

type labCommand struct {
	file, text string
	output     []string
}

// labCommands finds the commands of riprap lab in the documents' console and sh blocks.
func labCommands(t *testing.T) (commands []labCommand) {
	docs, err := documents(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		for _, b := range doc.blocks {
			commands = append(commands, labCommandsOf(b)...)
		}
	}
	return commands
}

func labCommandsOf(b block) (commands []labCommand) {
	if b.lang != "console" && b.lang != "sh" {
		return nil
	}
	for line := range strings.Lines(b.text) {
		line = strings.TrimRight(line, "\n")
		text, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case prompted || b.lang == "sh":
			commands = append(commands, labCommand{b.file, text, nil})
		case len(commands) > 0:
			last := &commands[len(commands)-1]
			last.output = append(last.output, line)
		}
	}
	return slices.DeleteFunc(commands, func(c labCommand) bool { return !strings.HasPrefix(c.text, "riprap lab ") })
}

// firstMissing returns the first of the lines shown that does not stand in the output behind the one before.
func firstMissing(shown, output []string) string {
	for _, line := range shown {
		if line = strings.TrimRight(line, " "); line == "" || line == "…" {
			continue
		}
		at := slices.IndexFunc(output, func(s string) bool { return strings.TrimRight(s, " ") == line })
		if at < 0 {
			return line
		}
		output = output[at+1:]
	}
	return ""
}

func TestLinesThatAreNotPrintedAreFound(t *testing.T) {
	b := block{lang: "console", text: "$ riprap lab list\na 1\n…\nc 3\n$ ls\nx\n$ riprap lab run outage -svg docs/o.svg\n"}
	commands := labCommandsOf(b)
	if len(commands) != 2 || commands[1].text != "riprap lab run outage -svg docs/o.svg" {
		t.Fatalf("commands %q, want the two of the lab", commands)
	}
	output := []string{"head", "a 1", "b 2", "c 3  "}
	if got := firstMissing(commands[0].output, output); got != "" {
		t.Errorf("missing %q, want none", got)
	}
	if got := firstMissing([]string{"c 3", "a 1"}, output); got != "a 1" {
		t.Errorf("missing %q, want the line that is out of order", got)
	}
	if got := firstMissing([]string{"a 2"}, output); got != "a 2" {
		t.Errorf("missing %q, want a 2", got)
	}
}
