package manifest

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// A source is the text of a file in lines.
type source struct {
	name  string
	lines []string
	shown []string // the same, character for character, without passwords
}

// split ends lines where YAML does: also at the line ends of other times and places.
func split(name, text string) source {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	lines := strings.Split(text, "\n")
	return source{name, lines, strings.Split(masked(text), "\n")}
}

// secret is what may be a password in a line: what stands between a scheme and the last @ of a URL, and what a parameter is set to.
var secret = regexp.MustCompile(`(://)([^"'\n]*)(@)|(?i:(pass\w*|pwd|secret|token)=)([^&"'\s]+)()`)

// masked is a text with a * for each character that may be one of a password: a file with one mistake shows the lines of it, and
// what stands beside it.
func masked(text string) string {
	if !strings.ContainsAny(text, "@=") {
		return text
	}
	var b strings.Builder
	end := 0
	for _, m := range secret.FindAllStringSubmatchIndex(text, -1) {
		from, to := m[4], m[5]
		if from < 0 {
			from, to = m[10], m[11]
		}
		b.WriteString(text[end:from])
		b.WriteString(strings.Repeat("*", utf8.RuneCountInString(text[from:to])))
		end = to
	}
	b.WriteString(text[end:])
	return b.String()
}

// unreadable finds the first byte that may not stand in YAML, and says why. What is empty if there is none.
func unreadable(text string) (offset int, what string) {
	for i, c := range text {
		switch {
		case c == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i, "not a text in UTF-8"
			}
		case c == '\t', c == '\n', c == '\r', c == 0x85:
		case c < ' ', c >= 0x7f && c < 0xa0, c == 0xfeff && i > 0, c == 0xfffe, c == 0xffff:
			return i, fmt.Sprintf("a control character, %U", c)
		}
	}
	return 0, ""
}

// end is the place right behind a text.
func end(text string) Place {
	lines := split("", text).lines
	return Place{len(lines), utf8.RuneCountInString(lines[len(lines)-1]) + 1, 1}
}

// last is the place of the last character that is not blank.
func (s source) last() Place {
	for i := len(s.lines) - 1; i >= 0; i-- {
		if line := strings.TrimRight(s.lines[i], " \t"); line != "" {
			return Place{i + 1, utf8.RuneCountInString(line), 1}
		}
	}
	return Place{1, 1, 1}
}

// over reports whether nothing but blanks stands at or behind a place.
func (s source) over(at Place) bool {
	last := s.last()
	return at.Line > last.Line || at.Line == last.Line && at.Column > last.Column
}

// rest is the line from a place on.
func (s source) rest(at Place) string {
	if at.Line < 1 || at.Line > len(s.lines) {
		return ""
	}
	line := s.lines[at.Line-1]
	for range at.Column - 1 {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	return line
}

// mark is where a node stands: a scalar as a whole, of all others the beginning.
func (s source) mark(n *yaml.Node) Place {
	at := Place{max(n.Line, 1), max(n.Column, 1), 1}
	rest := s.rest(at)
	if strings.HasPrefix(rest, "&") { // an anchor before it is not what is meant
		if _, behind, ok := strings.Cut(rest, " "); ok {
			behind = strings.TrimLeft(behind, " ")
			at.Column += utf8.RuneCountInString(rest) - utf8.RuneCountInString(behind)
			rest = behind
		}
	}
	text := n.Value
	switch {
	case n.Kind == yaml.AliasNode:
		text = "*" + text
	case n.Kind != yaml.ScalarNode:
		text = ""
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "'"):
		text = rest[:1] + text + rest[:1]
	}
	if strings.HasPrefix(rest, text) {
		at.Width = max(1, utf8.RuneCountInString(text))
	}
	return at
}

// excerpt is the line of a place, with marks below it. It is cut to so many columns, around the marks, and ends in a
// newline.
func (s source) excerpt(at Place, columns int) string {
	number := fmt.Sprintf("%4d | ", at.Line)
	room := max(columns-len(number), 20)
	left := max(0, at.Column-1-room) // what is left out anyway
	line := first(strings.TrimRight(source{lines: s.shown}.rest(Place{at.Line, left + 1, 1}), " \t"), 2*room+1)
	before := min(at.Column-1-left, len(line)) // the marks
	behind := min(before+max(1, at.Width), len(line))

	from := 0
	if left > 0 || wide(line) > room {
		marks := min(max(1, wide(line[before:behind])), room/2)
		for from < before && wide(line[from:before])+marks+8 > room {
			from++
		}
	}
	if line, before, behind = line[from:], before-from, behind-from; left+from > 0 { // two columns are for the sign that something is left out
		line = append([]rune("… "), line[min(2, len(line)):]...)
		before = max(before, 2)
	}
	if wide(line) > room {
		for wide(line) > room-1 {
			line = line[:len(line)-1]
		}
		line = append(line, '…')
	}
	before, behind = min(before, len(line)), min(behind, len(line))
	blank := strings.Repeat(" ", len(number)-2) + "| " + strings.Repeat(" ", wide(line[:before]))
	return number + string(line) + "\n" + blank + strings.Repeat("^", max(1, wide(line[before:max(before, behind)]))) + "\n"
}

// wide is how many columns a part of a line takes.
func wide(line []rune) int { return terminal.Columns(string(line)) }

// first are so many characters of a text at most, such that they can be printed.
func first(text string, n int) (line []rune) {
	for _, c := range text {
		if len(line) == n {
			return line
		}
		line = append(line, printable(c))
	}
	return line
}

// printable is a character that stands for c and does nothing to a terminal but to be seen, whatever c would do.
func printable(c rune) rune {
	switch {
	case c == '\t':
		return '→'
	case !unicode.IsPrint(c):
		return utf8.RuneError
	}
	return c
}

// Printable is a text in which each character that would do something to a terminal has another in its place: the name of a
// file may be anything.
func Printable(text string) string { return strings.Map(printable, text) }
