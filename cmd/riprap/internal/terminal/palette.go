package terminal

import (
	"regexp"
	"strings"
)

// A Palette paints text, or leaves it alone if it is false. A color always means the same and must never say anything
// that the text does not say too. Blank text is left alone.
//
// What is painted must not contain painted text: the end of the inner color would be the end of the outer one.
type Palette bool

// Retries paints what has to do with retries: amber.
func (p Palette) Retries(s string) string { return p.paint("38;5;172", s) }

// Good paints what went well, such as answers in time: teal.
func (p Palette) Good(s string) string { return p.paint("38;5;37", s) }

// Bad paints what failed: coral.
func (p Palette) Bad(s string) string { return p.paint("38;5;203", s) }

// Quiet dims what explains: heads, axes, methods.
func (p Palette) Quiet(s string) string { return p.paint("2", s) }

// Strong stresses what is read first: a verdict.
func (p Palette) Strong(s string) string { return p.paint("1", s) }

const unpainted = "\x1b[0m"

func (p Palette) paint(code, s string) string {
	if !p || strings.TrimSpace(s) == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + unpainted
}

var color = regexp.MustCompile("\x1b\\[[0-9;]*m")

// plain is s without colors.
func plain(s string) string { return color.ReplaceAllString(s, "") }

// carry ends the color that is open at the end of a line and begins it anew on the next, so that it does not run into
// what stands beside the lines.
func carry(lines []string) {
	open := ""
	for i, line := range lines {
		line = open + line
		if colors := color.FindAllString(line, -1); len(colors) > 0 {
			open = colors[len(colors)-1]
		}
		if open == unpainted {
			open = ""
		}
		if open != "" {
			line += unpainted
		}
		lines[i] = line
	}
}
