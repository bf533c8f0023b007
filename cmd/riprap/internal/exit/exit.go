// Package exit says what the command's exit codes mean, in the errors that its subcommands return.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes of every subcommand.
const (
	Fine    = 0 // what was asked is done, what was checked is fine
	NotFine = 1 // what was checked is not fine, or the work could not be done
	Usage   = 2 // the arguments or the configuration make no sense
)

// ErrNotFine says that the thing checked is not fine and that the subcommand has already said so: nothing is left to print.
var ErrNotFine = errors.New("not fine")

// A UsageError is a mistake in the arguments or in the configuration.
type UsageError struct {
	Command string // as typed, such as "riprap demo"
	Err     error  // what is wrong
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("%s: %v (%s -h shows what it takes)", e.Command, e.Err, e.Command)
}

func (e *UsageError) Unwrap() error { return e.Err }

// Code is the exit code that stands for err.
func Code(err error) int {
	if err == nil {
		return Fine
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return Usage
	}
	return NotFine
}
