// Package check is "riprap check": what cannot work in a chain of services. It reads riprap.yaml, and shows what package
// chain finds in it, at the lines where it is written, and what is left of the time at each hop.
package check

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// Run is the subcommand. It returns exit.ErrNotFine if there is a finding that the flags do not pardon, and an error with
// the exit code of a wrong configuration if the file cannot be read.
func Run(_ context.Context, args []string, stdout, _ io.Writer) error {
	return run(args, os.Stdin, stdout)
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	var help strings.Builder
	q, err := parse(args, &help)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return write(stdout, help.String())
	case err != nil:
		return &exit.UsageError{Command: "riprap check", Err: err}
	}
	file, err := manifest.Read(q.file, stdin)
	if err != nil {
		return q.unread(err)
	}
	r := &report{q, file, chain.Check(&file.Chain), file.Chain.Hops(), ids()}
	return r.deliver(stdout)
}

// A fileError is what is wrong in the file. It speaks for itself: the flags are not to blame.
type fileError struct{ manifest.Errors }

func (e *fileError) Unwrap() []error {
	return []error{e.Errors, &exit.UsageError{Command: "riprap check", Err: e.Errors}}
}

// unread makes the error of a file in which there is no chain.
func (q *request) unread(err error) error {
	if wrong, ok := errors.AsType[manifest.Errors](err); ok {
		return &fileError{wrong}
	}
	if errors.Is(err, fs.ErrNotExist) && q.file == manifest.Name {
		err = fmt.Errorf("no %s in this folder: go where it is, or name the file", manifest.Name)
	}
	return &exit.UsageError{Command: "riprap check", Err: err}
}

// A report is what was found in a file.
type report struct {
	*request
	file     *manifest.File
	findings []chain.Finding
	hops     []chain.Hop
	rules    []string // the ids of all that were looked at
}

// deliver prints the report. Its error says whether the chain is fine.
func (r *report) deliver(stdout io.Writer) error {
	var out string
	var err error
	if r.asJSON {
		out, err = r.json()
	} else {
		out = r.text(terminal.Look(stdout))
	}
	if err != nil {
		return fmt.Errorf("riprap check: %w", err)
	}
	if err := write(stdout, out); err != nil {
		return err
	}
	if r.failing() > 0 {
		return exit.ErrNotFine
	}
	return nil
}

// failing is how many findings there are that decide the exit code.
func (r *report) failing() (n int) {
	for _, f := range r.findings {
		if r.fails(f.Rule) {
			n++
		}
	}
	return n
}

// write prints, and says who could not.
func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("riprap check: %w", err)
	}
	return nil
}
