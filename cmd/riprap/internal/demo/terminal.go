package demo

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

const (
	narrow = 60 // columns below which the output is not squeezed any further
	usual  = 80
	widest = 120
)

// A screen is what can be shown where the output goes.
type screen struct {
	terminal bool
	width    int // columns
	palette  palette
}

// look finds out about w. What is no terminal gets the usual width and no colors.
func look(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return screen{width: usual}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = usual
	}
	return screen{
		terminal: os.Getenv("TERM") != "dumb",
		width:    min(max(width, narrow), widest),
		palette:  os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

// A palette paints text, or leaves it alone if it is false. A color always means the same and never says anything that
// the text does not say too.
type palette bool

func (p palette) retries(s string) string { return p.paint("38;5;172", s) } // amber
func (p palette) good(s string) string    { return p.paint("38;5;37", s) }  // teal
func (p palette) bad(s string) string     { return p.paint("38;5;203", s) } // coral
func (p palette) quiet(s string) string   { return p.paint("2", s) }
func (p palette) strong(s string) string  { return p.paint("1", s) }

func (p palette) paint(code, s string) string {
	if !p || strings.TrimSpace(s) == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
