// Package keys is "riprap keys": what is in a store of idempotency keys, and what people do about a key of which nobody knows
// what happened. It is the Operator of package idempotency on a database.
package keys

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/flags"
	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
	"github.com/riprap-go/riprap/internal/suggest"
)

// A verb is one thing to do with keys.
type verb struct {
	name string
	run  func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error
}

var verbs = []verb{{"list", list}, {"show", show}, {"resolve", resolve}}

const usage = `usage: riprap keys list|show|resolve --store STORE [flags]

What is in a store of idempotency keys, and what to do about a key of which
nobody knows what happened: the process that ran its request was killed, or lost
the store. Requests with that key are answered with 409 until it is resolved.

  list      the keys; with --stuck those that somebody has to resolve
  show      all that is known of a key
  resolve   end a key that is stuck: free it, or give the answer to replay

STORE is a URL, postgres://…, or a SQLite file. Nothing is created in it. Leave
the password out of the URL, which other users of the machine can read: it is
taken from PGPASSWORD or from ~/.pgpass.

How to resolve a key: ask whoever has the effect, such as a payment provider,
whether it happened; show --child NAME prints the key that the request was sent
on with. If it did, resolve --status 201 gives the answer that the client is to
get; if surely not, resolve --free lets the request run when it comes again.

exit codes: 0 done, 1 there are keys to be resolved (list --stuck), or it could
not be done, 2 usage, or there is no such store
`

// Run is the subcommand.
func Run(ctx context.Context, args []string, stdout, _ io.Writer) error {
	return run(ctx, args, os.Stdin, stdout)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return wrong("", errors.New("want list, show or resolve"))
	}
	names := []string{}
	for _, v := range verbs {
		if v.name == args[0] {
			return interrupted(ctx, v.name, v.run(ctx, args[1:], stdin, stdout))
		}
		names = append(names, v.name)
	}
	switch near := suggest.Near(args[0], names); {
	case args[0] == "-h" || args[0] == "-help" || args[0] == "--help":
		return write(stdout, usage)
	case near != "":
		return wrong("", fmt.Errorf("unknown command %q, did you mean %q?", args[0], near))
	default:
		return wrong("", fmt.Errorf("unknown command %q: want list, show or resolve, and flags behind it", args[0]))
	}
}

// interrupted makes an error of a verb the one that is told. Whoever pressed Ctrl-C knows why a query ended.
func interrupted(ctx context.Context, verb string, err error) error {
	usageError, isUsage := errors.AsType[*exit.UsageError](err)
	switch {
	case err == nil, errors.Is(err, exit.ErrNotFine):
		return err
	case isUsage:
		return usageError
	case ctx.Err() != nil && verb == "resolve":
		return errors.New("riprap keys resolve: interrupted; riprap keys show tells whether it was done")
	case ctx.Err() != nil:
		return fmt.Errorf("riprap keys %s: interrupted", verb)
	default:
		return fmt.Errorf("riprap keys %s: %w", verb, err)
	}
}

// wrong is a mistake in the arguments or in the store that they name.
func wrong(verb string, err error) error {
	command := "riprap keys"
	if verb != "" {
		command += " " + verb
	}
	return &exit.UsageError{Command: command, Err: err}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// open opens the store that --store names.
func open(ctx context.Context, dsn string) (*keystore.Store, error) {
	return keystore.Place{DSN: dsn, Label: "--store", Program: "riprap keys"}.Open(ctx)
}

// newFlags are those of a verb, with the one that all have.
func newFlags(verb string, store *string) *flag.FlagSet {
	f := flag.NewFlagSet("riprap keys "+verb, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(store, "store", "", "postgres://… or a SQLite file; required")
	return f
}

// parse parses all flags of args, wherever they stand, and returns what is none. It prints the usage if that was asked for:
// flag.ErrHelp.
func parse(f *flag.FlagSet, args []string, about string, stdout io.Writer) (rest []string, err error) {
	rest, err = flags.Parse(f, args)
	if !errors.Is(err, flag.ErrHelp) {
		return rest, err
	}
	if err := write(stdout, about); err != nil {
		return nil, err
	}
	f.SetOutput(stdout)
	f.PrintDefaults()
	return nil, flag.ErrHelp
}
