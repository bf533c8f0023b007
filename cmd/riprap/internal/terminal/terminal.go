// Package terminal shows text, pictures of blocks, tables and progress on a terminal, and the same without colors and
// without movement in a file or a pipe. It knows nothing of what is shown.
//
// A column is a rune: it does not know of runes that take two columns or none.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// The widths of screens, in columns. Look squeezes or stretches none beyond them.
const (
	Narrowest = 60
	Usual     = 80 // of what is no terminal, too
	Widest    = 120
)

// A Screen is what can be shown where the output goes. The zero Screen has no room: what can be wrapped is wrapped at
// every blank.
type Screen struct {
	Terminal bool // what has been written can be written over
	Width    int  // columns; Look sees to it that it is between Narrowest and Widest
	Palette  Palette
}

// Look finds out about w. What is no terminal gets the usual width and no colors. A terminal has them unless NO_COLOR is
// set (https://no-color.org); one that says it is dumb gets a terminal's width and nothing else.
func Look(w io.Writer) Screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Screen{Width: Usual}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return Screen{
		Terminal: os.Getenv("TERM") != "dumb",
		Width:    usable(width),
		Palette:  os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

// usable is the width of a screen on a terminal of so many columns, zero if it does not say.
func usable(columns int) int {
	if columns <= 0 {
		return Usual
	}
	return min(max(columns, Narrowest), Widest)
}
