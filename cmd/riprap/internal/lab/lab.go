// Package lab is "riprap lab": which retry policy survives what. Services, networks and their callers are simulated, and
// every caller decides by riprap.Operation, Budget and Backoff, the very code of the library.
package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// A request is what somebody wants to know, as flags say it.
type request struct {
	verb     string // run or compare
	study    study
	groups   []group // one, or one for each value of a list
	seeds    int
	seed     uint64
	asJSON   bool
	asCSV    bool
	svgFile  string
	figure   figure   // that a picture of lines or bars shows
	asBars   bool     // the picture is one of bars
	own      []string // names of the policies that flags describe
	changed  bool     // the scenario is no longer what it says about itself
	list     string   // the axis that is a list of values; empty if none is
	repeated string   // the command that does the same again
}

// A group is the trials with one value of a list.
type group struct {
	label  string // such as "clients 10"; empty if there is no list
	value  float64
	trials []trial
	rows   []*summary // of the trials, once they were simulated
}

// Run is the subcommand. When ctx ends it early, it prints what there is and returns exit.ErrNotFine. So does "run" if the
// service did not recover.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		usage(stderr)
		return &exit.UsageError{Command: "riprap lab", Err: errors.New("say what to do: list, run or compare")}
	}
	switch verb := args[0]; verb {
	case "-h", "-help", "--help", "help":
		return usage(stdout)
	case "list":
		if len(args) > 1 {
			return &exit.UsageError{Command: "riprap lab list", Err: fmt.Errorf("unexpected argument %q", args[1])}
		}
		return list(stdout)
	case "run", "compare":
		var help strings.Builder
		q, err := parse(verb, args[1:], &help)
		if errors.Is(err, flag.ErrHelp) {
			return write(stdout, help.String())
		}
		if err != nil {
			return &exit.UsageError{Command: "riprap lab " + verb, Err: err}
		}
		return q.answer(ctx, stdout, stderr)
	default:
		return &exit.UsageError{Command: "riprap lab", Err: fmt.Errorf("unknown verb %q: there are list, run and compare", verb)}
	}
}

func usage(w io.Writer) error {
	return write(w, `usage: riprap lab list
       riprap lab run SCENARIO [flags]
       riprap lab compare SCENARIO [flags]

Simulates services, what goes wrong with them, and their callers, who decide by
riprap itself. "run" shows in detail what becomes of a scenario with one policy,
"compare" what becomes of it with each in a table. "list" names the scenarios
and the policies of each; "riprap lab run -h" lists the flags.

exit codes: 0 fine; 1 "run": the service did not recover, or somebody stopped
it; 2 usage
`)
}

// write prints, and says who could not.
func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("riprap lab: %w", err)
	}
	return nil
}

func list(w io.Writer) error {
	var b strings.Builder
	on := terminal.Look(w)
	for i := range studies {
		st := &studies[i]
		if i > 0 {
			fmt.Fprintln(&b)
		}
		for _, line := range terminal.Wrap(st.Name+": "+st.About, on.Width) {
			fmt.Fprintln(&b, on.Palette.Strong(line))
		}
		for _, c := range st.candidates {
			about := c.About
			if c.Rival != nil {
				about += " (not riprap)"
			}
			for j, line := range terminal.Wrap(about, on.Width-20) {
				name := ""
				if j == 0 {
					name = c.Name
				}
				fmt.Fprintf(&b, "  %s  %s\n", terminal.Pad(name, 16), line)
			}
		}
	}
	return write(w, b.String())
}

// report simulates and shows its progress. When ctx ends it, the report has what there is.
func (q *request) report(ctx context.Context, progressTo io.Writer) *report {
	var trials []trial
	for _, g := range q.groups {
		trials = append(trials, g.trials...)
	}
	progress := terminal.NewProgress(progressTo, q.study.Name, len(trials)*q.seeds)
	summaries := simulate(ctx, trials, q.seed, q.seeds, func() { progress.Done(1) })
	progress.End()

	r := &report{request: q, stopped: ctx.Err() != nil}
	for i := range q.groups {
		g := &q.groups[i]
		g.rows, summaries = summaries[:len(g.trials)], summaries[len(g.trials):]
	}
	return r
}

// answer simulates and prints.
func (q *request) answer(ctx context.Context, stdout, stderr io.Writer) error {
	r := q.report(ctx, stderr)
	text, err := "", error(nil)
	switch {
	case q.asJSON:
		text, err = r.json()
	case q.asCSV:
		text, err = r.csv()
	default:
		text = r.text(terminal.Look(stdout))
	}
	if err != nil {
		return fmt.Errorf("riprap lab: %w", err)
	}
	if err := write(stdout, text); err != nil {
		return err
	}
	if q.svgFile != "" { // last, so that what was simulated is not lost with it
		if err := r.draw(q.svgFile); err != nil {
			return fmt.Errorf("riprap lab: %w", err)
		}
	}
	if r.stopped || q.verb == "run" && !r.fine() {
		return exit.ErrNotFine
	}
	return nil
}

// draw writes the picture.
func (r *report) draw(file string) error {
	picture, err := r.svg()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(picture), 0o644)
}

// A report is what the lab has to say.
type report struct {
	*request
	stopped bool
}

// all is every row of the report.
func (r *report) all() (rows []*summary) {
	for _, g := range r.groups {
		rows = append(rows, g.rows...)
	}
	return rows
}

// fine reports whether the service recovered wherever it had to, in every seed.
func (r *report) fine() bool {
	for _, s := range r.all() {
		if s.triggered() && s.recovered < s.seeds {
			return false
		}
	}
	return true
}
