package flaky

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// A ScriptError says what is wrong with a script, and where.
type ScriptError struct {
	Script string // as given

	// Column is where it is wrong, in characters (runes) from the script's beginning, which is 1. It is one past the end if
	// something is missing there.
	Column int

	Problem string // what is wrong, and what would be right
}

// Error shows the line of the script, or the part of a long one, and a mark below the column.
func (e *ScriptError) Error() string {
	const before, behind = 60, 20 // characters that are shown at most
	text := []rune(e.Script)
	at := min(max(e.Column-1, 0), len(text))
	from, to := at, at
	for from > 0 && text[from-1] != '\n' && at-from < before {
		from--
	}
	for to < len(text) && text[to] != '\n' && to-at < behind {
		to++
	}
	shown := slices.Clone(text[from:to])
	for i, c := range shown {
		if !unicode.IsPrint(c) {
			shown[i] = ' ' // the mark stands below the right one, and a terminal is left as it is
		}
	}
	return fmt.Sprintf("script, column %d: %s\n\t%s\n\t%s^", e.Column, e.Problem, string(shown), strings.Repeat(" ", at-from))
}

// A script is what New was given, parsed.
type script struct {
	rules []rule // longest path first
}

// A rule is the steps for a path and what is below it. The one with an empty path is for the rest.
type rule struct {
	path  string
	steps []step
}

// match returns the index of the rule for a path, -1 if there is none.
func (s *script) match(path string) int {
	return slices.IndexFunc(s.rules, func(r rule) bool { return r.serves(path) })
}

func (r rule) serves(path string) bool {
	rest, ok := strings.CutPrefix(path, r.path)
	return ok && (rest == "" || r.path == "" || strings.HasSuffix(r.path, "/") || rest[0] == '/')
}

// step returns the step for the n-th request, from 1. The last one repeats.
func (r rule) step(n int64) *step {
	i := sort.Search(len(r.steps)-1, func(i int) bool { return r.steps[i].until >= n })
	return &r.steps[i]
}

// parse reads a script. Its error is a *ScriptError.
func parse(text string) (*script, error) {
	p := &parser{text: text}
	s := &script{}
	taken := map[string]bool{}
	for {
		p.skipBlanks()
		at := p.pos
		r, err := p.rule()
		if err != nil {
			return nil, err
		}
		if taken[r.path] {
			if r.path == "" {
				return nil, p.errorf(at, "a second part without a path: one such as \"/a: \" stands in front of the others")
			}
			return nil, p.errorf(at, "a second part for %s", r.path)
		}
		taken[r.path] = true
		s.rules = append(s.rules, r)
		if p.end() {
			break
		}
		p.pos++ // the semicolon
	}
	slices.SortStableFunc(s.rules, func(a, b rule) int { return cmp.Compare(len(b.path), len(a.path)) })
	return s, nil
}

// rule reads what is between semicolons.
func (p *parser) rule() (r rule, err error) {
	if !p.end() && p.at(`/"`) {
		if r.path, err = p.path(); err != nil {
			return r, err
		}
	}
	until := int64(0)
	for {
		st, err := p.step()
		if err != nil {
			return r, err
		}
		until += st.count
		st.until = until
		r.steps = append(r.steps, *st)
		if p.at(";") {
			return r, nil
		}
		p.pos++ // the comma
	}
}

// path reads a path and the colon behind it.
func (p *parser) path() (string, error) {
	start := p.pos
	path := ""
	if p.at(`"`) {
		var err error
		if path, err = p.quoted(); err != nil {
			return "", err
		}
		if p.end() || !p.at(":") {
			return "", p.errorf(p.pos, "want a colon behind the path")
		}
		p.pos++
	} else {
		for !p.at(blanks + ",;\"") {
			p.pos++
		}
		var ok bool
		if path, ok = strings.CutSuffix(p.text[start:p.pos], ":"); !ok {
			return "", p.errorf(p.pos, "want a colon and a blank behind the path, as in \"/a: 503\"")
		}
	}
	switch {
	case !strings.HasPrefix(path, "/"):
		return "", p.errorf(start, "a path begins with /: write %q:", clip("/"+path, 80))
	case path == logPath:
		return "", p.errorf(start, "%s is where the log is", logPath)
	case strings.HasPrefix(path, "/~"):
		return "", p.errorf(start, "a path that begins with /~ names a run, which scripts do not see")
	}
	return path, nil
}

// misplaced is the error of a path where a step should be: text has a colon, which no step begins with.
func (p *parser) misplaced(text string, at int) error {
	path, _, _ := strings.Cut(text, ":")
	if _, rest, isURL := strings.Cut(text, "://"); isURL {
		_, path, _ = strings.Cut(rest, "/")
		path, _, _ = strings.Cut(path, ":")
	}
	path = clip("/"+strings.TrimPrefix(path, "/"), 80)
	if strings.HasSuffix(strings.TrimRight(p.text[:at], blanks), ",") {
		return p.errorf(at, "a part for another path stands behind a semicolon: write %q", "; "+path+": ")
	}
	return p.errorf(at, "a path begins with /: write %q", path+": ")
}
