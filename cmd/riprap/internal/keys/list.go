package keys

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
	"github.com/riprap-go/riprap/idempotency"
)

const listUsage = `usage: riprap keys list --store STORE [--stuck] [--json]

The keys of a store, in the order of their IDs, which says nothing of time. An
ID is a hash of scope, operation and key; the key itself is not in the store.
show and resolve take the digits of the first column.

  in progress   a run holds the key
  completed     it was run, and its answer is replayed
  runs again    its run was lost; the next request with the key runs
  lease over    its run was lost, and it must not run again: to be resolved
  unknown       it was run, and nobody knows how far: to be resolved

Exit code 1 with --stuck: there are keys to be resolved.

`

// page is how many records are asked for at a time.
const page = 500

// list is the verb. It holds one page in memory, however many keys there are.
func list(ctx context.Context, args []string, _ io.Reader, stdout io.Writer) error {
	var dsn string
	var only, asJSON bool
	f := newFlags("list", &dsn)
	f.BoolVar(&only, "stuck", false, "only keys that somebody has to resolve")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	rest, err := parse(f, args, listUsage, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return wrong("list", err)
	case len(rest) > 0:
		return wrong("list", fmt.Errorf("unexpected argument %q: riprap keys show takes an ID", rest[0]))
	}
	s, err := open(ctx, dsn)
	if err != nil {
		return unopened("list", err)
	}
	defer s.Close()

	var out printer = &table{w: stdout, on: terminal.Look(stdout), only: only, where: s.Name()}
	if asJSON {
		out = &lines{w: stdout}
	}
	found := 0
	filter := idempotency.Filter{Limit: page, Stuck: only}
	for {
		records, err := s.List(ctx, filter)
		if err != nil {
			return s.Failed(err)
		}
		for i := range records {
			found++
			if err := out.key(&records[i]); err != nil {
				return err
			}
		}
		if len(records) < page {
			break
		}
		filter.After = records[len(records)-1].ID
	}
	if err := out.end(); err != nil {
		return err
	}
	if only && found > 0 {
		return exit.ErrNotFine
	}
	return nil
}

// unopened is the error of a store that could not be opened.
func unopened(verb string, err error) error {
	if config, ok := errors.AsType[*keystore.ConfigError](err); ok {
		return wrong(verb, config.Err)
	}
	return err
}

// A printer prints keys as they come.
type printer interface {
	key(*idempotency.Record) error
	end() error
}

// A table is for people. Its columns have fixed widths, since what comes later is not known, and the one that has none comes last.
type table struct {
	w          io.Writer
	on         terminal.Screen
	only       bool
	where      string
	all, stuck int
}

func (t *table) key(r *idempotency.Record) error {
	if t.all == 0 {
		head := row("ID", "state", "age", "lease", "kept for", "operation")
		if err := write(t.w, t.on.Palette.Quiet(head)+"\n"); err != nil {
			return err
		}
	}
	t.all++
	if stuck(r) {
		t.stuck++
	}
	lease := ""
	if r.State == idempotency.StateInProgress {
		lease = left(r.Lease)
	}
	line := row(r.ID.String()[:shown], state(r), span(age(r)), lease, kept(r), printable(r.Operation))
	if stuck(r) {
		line = t.on.Palette.Bad(line)
	}
	return write(t.w, line+"\n")
}

func row(id, state, age, lease, retention, operation string) string {
	return terminal.Pad(id, shown) + "  " + terminal.Pad(state, 13) + "  " + terminal.Left(age, 7) + "  " +
		terminal.Left(lease, 7) + "  " + terminal.Left(retention, 8) + "  " + operation
}

func (t *table) end() error {
	text := counted(t.all, "key", "keys")
	switch {
	case t.all == 0 && t.only:
		text = "no key is to be resolved"
	case t.all == 0:
		text = "no keys"
	case t.stuck == 0:
		text += ", none to be resolved"
	case t.only:
		text += " to be resolved"
	default:
		text += fmt.Sprintf(", %d to be resolved", t.stuck)
	}
	return write(t.w, t.on.Palette.Strong(text+" in "+t.where)+"\n")
}

// lines is for programs: one document, a line for each key.
type lines struct {
	w     io.Writer
	begun bool
}

func (l *lines) key(r *idempotency.Record) error {
	text, err := marshal(document(r))
	if err != nil {
		return err
	}
	return write(l.w, l.before()+text)
}

func (l *lines) before() string {
	if l.begun {
		return ",\n"
	}
	l.begun = true
	return fmt.Sprintf(`{"format":%d,"keys":[`+"\n", format)
}

func (l *lines) end() error {
	if !l.begun {
		return write(l.w, l.before()+"]}\n")
	}
	return write(l.w, "\n]}\n")
}
