package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/internal/suggest"
)

// A program is the client under audit, as its user told how to run it.
type program struct {
	command template
	post    *template // makes a POST without a key; nil: the command does, if it can
	keyed   *template // makes a POST with a key
}

// call is the audit.Client.
func (p *program) call(ctx context.Context, c audit.Call) error {
	t, err := p.forCall(c)
	if err != nil {
		return err
	}
	values := []string{"{url}", c.URL, "{method}", c.Method, "{body}", c.Body, "{key}", c.Key, "{token}", c.Token,
		"{calls}", strconv.Itoa(c.Calls)}
	if t.holds("{body-file}") {
		file, err := writeBody(c.Body)
		if err != nil {
			return err
		}
		defer os.Remove(file)
		values = append(values, "{body-file}", file)
	}
	return run(t.fill(ctx, values), values)
}

// forCall chooses what makes a call. Its error, if nothing can, says what to give.
func (p *program) forCall(c audit.Call) (*template, error) {
	switch {
	case c.Key != "" && p.keyed != nil:
		return p.keyed, nil
	case c.Key != "" && !(p.command.posts() && p.command.holds("{key}")):
		return nil, unable("-keyed 'LINE with {url}, {body} and {key}' to audit POSTs with a key")
	case c.Key == "" && c.Method != "GET" && p.post != nil:
		return p.post, nil
	case c.Method != "GET" && !p.command.posts():
		return nil, unable("-post 'LINE with {url} and {body}' to audit POSTs")
	case c.Token != "" && !p.command.holds("{token}"):
		return nil, unable("{token} in the command, to be sent as Authorization: Bearer")
	case c.Calls > 1 && !p.command.holds("{calls}"):
		return nil, unable("{calls} in the command, for so many calls in one process")
	}
	return &p.command, nil
}

// unable is an errors.ErrUnsupported, of which the audit shows what to give.
func unable(what string) error { return fmt.Errorf("%w: give %s", errors.ErrUnsupported, what) }

func writeBody(body string) (name string, err error) {
	f, err := os.CreateTemp("", "riprap-body-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(body)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// name is what the program is called.
func (p *program) name() string { return filepath.Base(p.command.words[0]) }

// String is the command without anything that may be a secret: the program's name and the placeholders, with … for what stands
// between them.
func (p *program) String() string {
	shown := []string{p.name()}
	for _, word := range p.command.words[1:] {
		parts := known.FindAllString(word, -1)
		if strings.Join(parts, "") != word && shown[len(shown)-1] != "…" {
			shown = append(shown, "…")
		}
		shown = append(shown, parts...)
	}
	return strings.Join(shown, " ")
}

// A template is a command with placeholders.
type template struct {
	words []string
	shell bool // it is one word, a line for the shell
}

var (
	placeholders = []string{"{url}", "{method}", "{body}", "{body-file}", "{key}", "{token}", "{calls}"}
	known        = regexp.MustCompile(`\{(url|method|body|body-file|key|token|calls)\}`)
	braced       = regexp.MustCompile(`\{[0-9A-Za-z_-]+\}`)
)

func (t *template) holds(placeholder string) bool {
	return slices.ContainsFunc(t.words, func(w string) bool { return strings.Contains(w, placeholder) })
}

// posts reports whether it can make a GET and a POST.
func (t *template) posts() bool {
	return t.holds("{method}") && (t.holds("{body}") || t.holds("{body-file}"))
}

// slip finds what was probably meant to be a placeholder, and which: it differs in one edit or in its case. Braces behind a
// character that makes them another language's, as in ${url} and %{url}, are left alone.
func (t *template) slip() (typed, meant string) {
	for _, word := range t.words {
		for _, at := range braced.FindAllStringIndex(word, -1) {
			typed := word[at[0]:at[1]]
			if at[0] > 0 && strings.IndexByte(`$%#\{`, word[at[0]-1]) >= 0 || slices.Contains(placeholders, typed) {
				continue
			}
			for _, meant := range placeholders {
				if suggest.Slip(strings.ToLower(typed), meant) {
					return typed, meant
				}
			}
		}
	}
	return "", ""
}

// fill puts values in place of the placeholders.
func (t *template) fill(ctx context.Context, values []string) *exec.Cmd {
	r := strings.NewReplacer(values...)
	if t.shell {
		return shell(ctx, r.Replace(t.words[0]))
	}
	words := make([]string, len(t.words))
	for i, w := range t.words {
		words[i] = r.Replace(w)
	}
	return exec.CommandContext(ctx, words[0], words[1:]...)
}
