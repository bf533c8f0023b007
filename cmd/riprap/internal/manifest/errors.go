package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Error is one thing that is wrong in a file.
type Error struct {
	File         string // its name, such that it can be printed
	Line, Column int    // from 1; columns are characters
	Message      string // what is wrong and, if it can be told, what was meant
	Excerpt      string // the line, with marks below it; "" if it may hold a secret
}

// Error is a line, and the excerpt below it.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s\n%s", e.File, e.Line, e.Column, e.Message, e.Excerpt)
}

// Errors are all that is wrong in a file, in the order of their lines. There is at least one, and no more than a hundred
// are looked for: a file with more of them is likely to be something else.
type Errors []*Error

const (
	mostErrors = 100
	mostShown  = 20 // of them
)

// Error tells the first of them, each as Error.Error does, and how many there are.
func (e Errors) Error() string {
	var b strings.Builder
	for i, err := range e {
		if i == mostShown {
			fmt.Fprintf(&b, "\nand %d more", len(e)-mostShown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Unwrap gives each of them.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, err := range e {
		list[i] = err
	}
	return list
}

func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return e
}
