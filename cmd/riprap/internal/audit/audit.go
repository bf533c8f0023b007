// Package audit is "riprap audit": how a program tries again, whatever it is written in. It runs the program against a server that
// fails on purpose and says what the server saw. The scenarios and the verdicts are those of the library's package audit; this
// one starts processes and shows what was found.
package audit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// Run is the subcommand. It returns exit.ErrNotFine if a required rule fails, and an exit.UsageError if the command to audit
// cannot be run. When ctx ends, so do all processes that it started.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var help strings.Builder
	q, err := parse(args, &help)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return write(stdout, help.String())
	case err != nil:
		return &exit.UsageError{Command: "riprap audit", Err: err}
	case q.list:
		return write(stdout, list(terminal.Look(stdout)))
	}
	r, err := q.audit(ctx, stderr)
	if err != nil {
		return err
	}
	return r.deliver(stdout)
}

// audit runs the command in all scenarios and shows the progress.
func (q *request) audit(ctx context.Context, progressTo io.Writer) (*report, error) {
	defer exit.OutlivePipe()() // or the progress would end it, and leave processes behind
	var progress *terminal.Progress
	runs, told := 0, 0
	var called atomic.Bool
	a := audit.Audit{
		Client: func(ctx context.Context, c audit.Call) error {
			called.Store(true)
			return q.program.call(ctx, c)
		},
		Patience: q.patience,
		Calls:    q.calls,
		Rules:    q.rules,
		Claims:   q.required,
		Progress: func(done, total int) {
			if progress == nil {
				progress = terminal.NewCount(progressTo, "runs", total, fmt.Sprintf("waiting for clients to give up, %v at most", q.longest()))
			}
			progress.Done(done - told)
			runs, told = total, done
		},
	}
	found, err := a.Run(ctx)
	if progress != nil {
		progress.End()
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("riprap audit: stopped: %w", context.Cause(ctx))
	case err != nil && called.Load():
		err = errors.New(strings.TrimPrefix(err.Error(), "audit: ")) // which is said already
		return nil, &exit.UsageError{Command: "riprap audit", Err: err}
	case err != nil:
		return nil, fmt.Errorf("riprap audit: %w", err)
	}
	return &report{Report: found, request: q, runs: runs}, nil
}

// longest is how long a run can take: package audit gives it a tenth more than patience.
func (q *request) longest() time.Duration {
	return (q.patience + q.patience/10).Round(time.Millisecond)
}

// deliver prints the report and writes the file that is asked for. Its error says whether the client is fine.
func (r *report) deliver(stdout io.Writer) error {
	var out string
	var err error
	switch {
	case r.asJSON:
		out, err = r.json()
	case r.junit == "-":
		out, err = r.xml()
	default:
		out = r.text(terminal.Look(stdout))
	}
	if err != nil {
		return fmt.Errorf("riprap audit: %w", err)
	}
	if err := write(stdout, out); err != nil {
		return err
	}
	if r.junit != "" && r.junit != "-" { // last, so that what was found is not lost with it
		out, err := r.xml()
		if err == nil {
			err = os.WriteFile(r.junit, []byte(out), 0o644)
		}
		if err != nil {
			return fmt.Errorf("riprap audit: -junit: %w", err)
		}
	}
	if len(r.offenders()) > 0 {
		return exit.ErrNotFine
	}
	return nil
}

// write prints, and says who could not.
func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("riprap audit: %w", err)
	}
	return nil
}
