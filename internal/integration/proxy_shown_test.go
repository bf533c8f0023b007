//go:build unix

package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The console blocks of docs/proxy.md are one session: a line that begins with $ is a command, one that ends with & goes on, and the
// lines below stand in what it prints, in this order; … stands for whatever is left out.
func TestDocsShowWhatTheProxyDoes(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docs/proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := sessionOf(parse("docs/proxy.md", string(text)))
	if len(commands) < 8 {
		t.Fatalf("docs/proxy.md has %d commands, want a session", len(commands))
	}
	bin, dir := t.TempDir(), t.TempDir()
	if out, err := shell(t, 10*time.Minute, "go build -o "+bin+"/riprap ./cmd/riprap"); err != nil {
		t.Fatalf("go build ./cmd/riprap: %v\n%s", err, out)
	}
	var addresses []string
	for _, shown := range []string{"127.0.0.1:9000", "127.0.0.1:7070", "127.0.0.1:7071"} {
		addresses = append(addresses, shown, freeAddress(t))
	}
	here := strings.NewReplacer(addresses...)
	for _, c := range commands {
		line, goesOn := strings.CutSuffix(here.Replace(c.text), " &")
		line = strings.Replace(line, "riprap proxy ", "riprap proxy --admin "+addresses[5]+" ", 1)
		cmd := exec.Command("sh", "-c", "exec "+line) // not with the test's context, which ends before what goes on is asked to
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		said := newOutput()
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, line := range c.output {
			shown = append(shown, here.Replace(line))
		}
		var ended error
		over := make(chan struct{})
		go func() {
			ended = cmd.Wait()
			close(over)
		}()
		if goesOn {
			t.Cleanup(func() {
				cmd.Process.Signal(syscall.SIGTERM)
				if <-over; ended != nil {
					t.Errorf("%s: after SIGTERM %v, want exit code 0\n%s", line, ended, said.String())
				}
			})
			said.waitFor(shown[len(shown)-1]+"\n", over)
		} else if <-over; ended != nil && cmd.ProcessState.ExitCode() != 1 { // 1: there are keys to be resolved
			t.Errorf("%s: %v\n%s", line, ended, said.String())
		}
		if missing := firstUnlike(shown, strings.Split(said.String(), "\n")); missing != "" {
			t.Fatalf("docs/proxy.md shows a line that %s does not print, or not there:\n%s\nit prints\n%s", line, missing, said.String())
		}
	}
}

func sessionOf(doc document) (commands []labCommand) {
	for _, b := range doc.blocks {
		if b.lang != "console" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line = strings.TrimRight(line, "\n")
			if text, prompted := strings.CutPrefix(line, "$ "); prompted {
				commands = append(commands, labCommand{b.file, text, nil})
			} else if n := len(commands) - 1; n >= 0 {
				commands[n].output = append(commands[n].output, line)
			}
		}
	}
	return commands
}

// firstUnlike returns the first of the lines shown that no line of the output behind the one before is like.
func firstUnlike(shown, output []string) string {
	for _, line := range shown {
		if line == "" || line == "…" {
			continue
		}
		like := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "\r?$")
		at := slices.IndexFunc(output, like.MatchString)
		if at < 0 {
			return line
		}
		output = output[at+1:]
	}
	return ""
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestLinesOfASessionThatAreNotPrintedAreFound(t *testing.T) {
	output := []string{"HTTP/1.1 200 OK\r", "Date: today\r", "", `{"a":1,"b":2}`, ""}
	for _, c := range []struct {
		shown []string
		want  string
	}{
		{[]string{"HTTP/1.1 200 OK", "…", `{"a":1,…}`}, ""},
		{[]string{`{"a":2,…}`}, `{"a":2,…}`},
		{[]string{`{"a":1,…}`, "HTTP/1.1 200 OK"}, "HTTP/1.1 200 OK"},
		{[]string{"HTTP/1.1 200"}, "HTTP/1.1 200"},
		{[]string{"Date: …", "Date: …"}, "Date: …"},
	} {
		if got := firstUnlike(c.shown, output); got != c.want {
			t.Errorf("firstUnlike(%q) = %q, want %q", c.shown, got, c.want)
		}
	}
}
