package audit

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"
)

const (
	// straggling is how long a process that was killed, or children that keep its stderr open, are waited for.
	straggling = time.Second

	// Of stderr so many bytes are kept, and of a line so many runes are shown.
	maxStderr = 4 << 10
	maxLine   = 160
)

// run runs a process to its end, or kills it with its children when its context ends. Its error tells what the process said,
// with the placeholders in place of their values.
func run(cmd *exec.Cmd, values []string) error {
	said := &tail{}
	cmd.Stderr = said
	cmd.Env = withoutProxy(os.Environ())
	group(cmd)
	cmd.Cancel = func() error { return kill(cmd.Process) }
	cmd.WaitDelay = straggling
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	sweep(cmd.Process)
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if text := said.summary(masked(values)); text != "" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// withoutProxy is an environment in which no proxy is used for loopback: it would be the proxy that is audited.
func withoutProxy(env []string) []string {
	const loopback = "127.0.0.1,localhost"
	value := map[string]string{}
	for _, e := range env {
		name, v, _ := strings.Cut(e, "=")
		value[name] = v
	}
	extended := func(v string) string {
		if v == "*" {
			return v
		}
		return strings.TrimPrefix(v+","+loopback, ",")
	}
	small, large := value["no_proxy"], value["NO_PROXY"]
	small, large = extended(cmp.Or(small, large)), extended(cmp.Or(large, small))
	return append(env[:len(env):len(env)], "NO_PROXY="+large, "no_proxy="+small)
}

// masked makes a replacer that does the opposite of that of fill.
func masked(values []string) *strings.Replacer {
	var pairs []string
	for i := 0; i < len(values); i += 2 {
		if v := values[i+1]; len(v) > 4 { // not the method, nor a number
			pairs = append(pairs, v, values[i])
		}
	}
	return strings.NewReplacer(pairs...)
}

// A tail keeps the end of what is written to it.
type tail struct {
	text []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - maxStderr; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
		t.cut = true
	}
	return len(p), nil
}

// summary is the first line and the last: some programs say what is wrong first, others after a trace of calls.
func (t *tail) summary(mask *strings.Replacer) string {
	text := string(t.text)
	if t.cut {
		_, text, _ = strings.Cut(text, "\n") // what it begins with is the end of a line
	}
	var lines []string
	for line := range strings.Lines(mask.Replace(text)) {
		if line = clean(line); line != "" {
			lines = append(lines, clip(line))
		}
	}
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	default:
		return lines[0] + " … " + lines[len(lines)-1]
	}
}

// clip shortens a line.
func clip(line string) string {
	if runes := []rune(line); len(runes) > maxLine {
		return string(runes[:maxLine]) + "…"
	}
	return line
}

// clean leaves out of foreign text what would do something to a terminal.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}
