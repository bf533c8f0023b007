package flaky

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A parser reads a script from left to right.
type parser struct {
	text string
	pos  int // in bytes
}

func (p *parser) errorf(at int, format string, args ...any) *ScriptError {
	return &ScriptError{p.text, utf8.RuneCountInString(p.text[:at]) + 1, fmt.Sprintf(format, args...)}
}

func (p *parser) end() bool { return p.pos == len(p.text) }

// at reports whether one of these characters is next, or the end.
func (p *parser) at(chars string) bool {
	return p.end() || strings.IndexByte(chars, p.text[p.pos]) >= 0
}

const blanks = " \t\r\n"

func (p *parser) skipBlanks() {
	for !p.end() && p.at(blanks) {
		p.pos++
	}
}

// word reads up to a blank, a comma or a semicolon: a name, or a name, "=" and a value, which may be quoted.
func (p *parser) word() (w word, err error) {
	w.at = p.pos
	for !p.at(blanks + ",;=\"") {
		p.pos++
	}
	w.name = p.text[w.at:p.pos]
	if p.end() || p.at(blanks+",;") {
		return w, nil
	}
	if p.at(`"`) {
		return w, p.errorf(p.pos, "a quotation mark can only stand behind =, around a whole value")
	}
	p.pos++ // the equals sign
	w.assigned, w.valueAt = true, p.pos
	if p.end() || p.at(blanks+",;") {
		return w, p.errorf(p.pos, "want a value behind %s=; an empty one is written \"\"", w.name)
	}
	if p.at(`"`) {
		w.quoted = true
		if w.value, err = p.quoted(); err != nil {
			return w, err
		}
		if !p.at(blanks + ",;") {
			return w, p.errorf(p.pos, "want a blank, a comma or a semicolon behind the quotation mark")
		}
		return w, nil
	}
	for !p.at(blanks + ",;\"") {
		p.pos++
	}
	if !p.end() && p.at(`"`) {
		return w, p.errorf(p.pos, `a quotation mark inside a value: quote the whole value and write \" for this one`)
	}
	w.value = p.text[w.valueAt:p.pos]
	return w, nil
}

// A word is a part of a step.
type word struct {
	name     string
	value    string
	assigned bool // there is a value, if only an empty one
	quoted   bool // it was quoted
	at       int  // where the word begins, in bytes
	valueAt  int
}

// quoted reads a quoted value, with the escapes of Go.
func (p *parser) quoted() (string, error) {
	start := p.pos
	for p.pos++; !p.end(); p.pos++ {
		switch p.text[p.pos] {
		case '\\':
			if p.pos++; p.end() {
				return "", p.errorf(start, "this quotation mark is never closed")
			}
		case '\n':
			return "", p.errorf(p.pos, `a value goes over the end of a line: write \n`)
		case '"':
			p.pos++
			value, err := strconv.Unquote(p.text[start:p.pos])
			if err != nil {
				return "", p.badEscape(start)
			}
			return value, nil
		}
	}
	return "", p.errorf(start, "this quotation mark is never closed")
}

// badEscape finds what Unquote did not like.
func (p *parser) badEscape(start int) error {
	for rest := p.text[start+1 : p.pos-1]; rest != ""; {
		_, _, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil {
			at := p.pos - 1 - len(rest)
			return p.errorf(at, `unknown escape: there are those of Go, such as \n, \t, \", \\, \x00`)
		}
		rest = tail
	}
	return p.errorf(start, "this value is not text in UTF-8")
}

// isToken reports whether s can be the name of a header (RFC 9110 §5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= utf8.RuneSelf-1 || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// isText reports whether s can be the value of a header (RFC 9110 §5.5).
func isText(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
