// Package demo is "riprap demo": a retry storm on this machine, made twice with the same clicks and the same faults.
// Shoppers buy through a gateway and an orders service, and a payments service charges them. First every layer has the retry
// loop of a tutorial, then riprap, with its proxy before payments. Nothing is simulated: the services listen on
// loopback, call each other by real HTTP, and the ledger is a table in SQLite.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// The callers that the demo can be asked for. With fewer, a second holds so few calls that luck decides; with more, a
// slow machine's CPU becomes the bottleneck in place of the service.
const (
	fewest = 100
	most   = 600
)

// A report is what the demo has to say.
type report struct {
	Seed     uint64
	Scenario scenario
	Sides    []outcome // those that ran, in order
}

// An outcome is what one side's run came to.
type outcome struct {
	Name    string
	Series  series
	Figures figures
}

// Run is the subcommand. It ends by itself within half a minute; when ctx ends it earlier, it says what it knows and
// returns exit.ErrNotFine, as it does if payments did not recover with riprap or a click was charged twice there.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("riprap demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "print one JSON document with the figures and the time series")
	seed := flags.Uint64("seed", 1, "of the times of the clicks, which are both sides'")
	callers := flags.Int("callers", 300, fmt.Sprintf("%d to %d, and the capacity grows with them", fewest, most))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stdout)
			return nil
		}
		return &exit.UsageError{Command: flags.Name(), Err: err}
	}
	if flags.NArg() > 0 {
		return &exit.UsageError{Command: flags.Name(), Err: fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	if *callers < fewest || *callers > most {
		return &exit.UsageError{Command: flags.Name(), Err: fmt.Errorf("-callers %d: want %d to %d", *callers, fewest, most)}
	}

	r, err := play(ctx, standard(*callers), *seed, newProgress(stderr))
	if err != nil {
		return fmt.Errorf("riprap demo: %w", err)
	}
	out := ""
	if *asJSON {
		if out, err = r.json(); err != nil {
			return fmt.Errorf("riprap demo: %w", err)
		}
	} else {
		out = r.text(terminal.Look(stdout))
	}
	if _, err := io.WriteString(stdout, out); err != nil {
		return fmt.Errorf("riprap demo: %w", err)
	}
	if !r.fine() {
		return exit.ErrNotFine
	}
	return nil
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `usage: riprap demo [flags]

Makes a retry storm on this machine. Shoppers buy through a gateway and an
orders service; payments charges them and goes through an outage, slow answers,
lost answers, a spell of 429. First with the retry loop of a tutorial in each
layer, then, with the same clicks and the same faults, with riprap and riprap
proxy. Who was charged twice is read from the ledger. Real HTTP on loopback,
nothing to install, about 28 s.

`)
	flags.SetOutput(w)
	flags.PrintDefaults()
	fmt.Fprint(w, "\nexit codes: 0 with riprap payments recovered and nobody was charged twice,\n1 otherwise, or if the demo was stopped, 2 usage\n")
}

// play runs the sides one after another. When ctx ends it early, the report holds what there is.
func play(ctx context.Context, s scenario, seed uint64, p *progress) (report, error) {
	r := report{Seed: seed, Scenario: s}
	arrivals := s.arrivals(seed)
	dir, err := os.MkdirTemp("", "riprap-demo-")
	if err != nil {
		return report{}, err
	}
	defer os.RemoveAll(dir)
	p.begin(s, sides)
	defer p.end()
	for _, d := range sides {
		if ctx.Err() != nil {
			break
		}
		t := newTally(s.Length)
		shown := p.show(d.name, t)
		a, err := d.run(ctx, s, arrivals, dir, t)
		shown()
		if err != nil {
			return report{}, err
		}
		b := t.read()
		r.Sides = append(r.Sides, outcome{d.name, b, measure(s, b, a)})
	}
	return r, nil
}

// whole reports whether every side ran to its end.
func (r report) whole() bool {
	for _, o := range r.Sides {
		if !o.Figures.Whole {
			return false
		}
	}
	return len(r.Sides) == len(sides)
}

// fine is the verdict: the payments service recovered with riprap and nobody was charged twice. What became of the naive side is reported
// and not judged.
func (r report) fine() bool {
	if !r.whole() {
		return false
	}
	last := r.Sides[len(r.Sides)-1].Figures
	return last.Recovered && last.Account.Twice == 0
}

// late is the most by which a call was made or worked on too late.
func (r report) late() time.Duration {
	var late time.Duration
	for _, o := range r.Sides {
		late = max(late, o.Figures.Late)
	}
	return late
}

// elapsed is how long the sides ran, all together.
func (r report) elapsed() time.Duration {
	var sum time.Duration
	for _, o := range r.Sides {
		sum += o.Figures.Elapsed
	}
	return sum
}
