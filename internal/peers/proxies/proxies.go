// Proxies compares riprap proxy with reverse proxies of other projects, on loopback, and prints a table:
//
//	proxies [-rounds 6] [-seconds 5] [-dir dist/proxies]
//
// It is run by scripts/bench-proxy, from the root of the repository, which builds riprap and caddy into the folder and looks for
// nginx, haproxy and wrk. Linux only: CPU time comes from /proc.
//
// In each round every candidate has its turn, so that whatever else the machine does meets all of them alike, and the next round
// begins with another one. Ratios are taken inside a round.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "proxies:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] { // what the program starts itself as
		case "reverseproxy":
			return reverseProxy(args[1:])
		case "keep":
			return keep(args[1:])
		}
	}
	flags := flag.NewFlagSet("proxies", flag.ContinueOnError)
	rounds := flags.Int("rounds", 6, "rounds")
	seconds := flags.Int("seconds", 5, "length of a turn")
	dir := flags.String("dir", "dist/proxies", "folder of riprap and caddy, and of what is written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	where, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	b := &bench{dir: where, rounds: *rounds, turn: time.Duration(*seconds) * time.Second}
	if err := b.describe(os.Stdout); err != nil {
		return err
	}
	for _, p := range []placement{free, pinned} {
		rows, err := b.compare(ctx, p)
		if err != nil {
			return err
		}
		printRows(os.Stdout, p, rows)
	}
	k, err := b.keyed(ctx)
	if err != nil {
		return err
	}
	printKeyed(os.Stdout, k)
	return nil
}

// A bench is one run of the comparison.
type bench struct {
	dir    string
	rounds int
	turn   time.Duration
}

// A turn is what one candidate did in one round.
type turn struct {
	rate float64       // requests a second
	p99  time.Duration // of the time that a request takes
	cpu  time.Duration // of the proxy, for each request
}

// A row is what a candidate did in all rounds.
type row struct {
	name  string
	turns []turn
}

// compare lets all candidates have their turns.
func (b *bench) compare(ctx context.Context, p placement) ([]row, error) {
	var procs processes
	defer procs.stop()
	backend, err := b.backend(&procs, p)
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(candidates))
	running := make([]*process, len(candidates))
	for i, c := range candidates {
		rows[i].name = c.name
		if running[i], err = b.start(&procs, c, p, backend); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for round := range b.rounds {
		for i := range candidates {
			i = (i + round) % len(candidates)
			progress("%s, round %d of %d: %s", p, round+1, b.rounds, rows[i].name)
			t, err := b.measure(ctx, running[i], load{url: running[i].url + "/orders/42", placement: p})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rows[i].name, err)
			}
			rows[i].turns = append(rows[i].turns, t)
		}
	}
	return rows, nil
}

// measure puts a load on a proxy.
func (b *bench) measure(ctx context.Context, p *process, l load) (turn, error) {
	before, err := p.cpu()
	if err != nil {
		return turn{}, err
	}
	l.length = b.turn
	r, err := l.run(ctx)
	if err != nil {
		return turn{}, err
	}
	after, err := p.cpu()
	if err != nil {
		return turn{}, err
	}
	return turn{rate: r.rate, p99: r.p99, cpu: (after - before) / time.Duration(r.requests)}, nil
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "== "+format+"\n", args...) }
