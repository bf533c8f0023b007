// Command riprap brings the retries of package riprap to a terminal. "riprap help" lists what it can do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/riprap-go/riprap/cmd/riprap/internal/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/call"
	"github.com/riprap-go/riprap/cmd/riprap/internal/check"
	"github.com/riprap-go/riprap/cmd/riprap/internal/demo"
	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/flaky"
	"github.com/riprap-go/riprap/cmd/riprap/internal/keys"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab"
	"github.com/riprap-go/riprap/cmd/riprap/internal/proxy"
	"github.com/riprap-go/riprap/internal/suggest"
)

// A command is one subcommand. Its package lives under internal and has a Run of this shape.
type command struct {
	name  string
	about string // what it does for the reader, in one line
	run   func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

// onHangup is the command that does something of its own at SIGHUP, as servers do.
const onHangup = "proxy"

// commands is what "riprap help" lists, in this order. A new subcommand is one more line.
var commands = []command{
	{"demo", "a retry storm, with a tutorial's loops and then with riprap (28 s)", demo.Run},
	{"proxy", "in front of a service in any language: retries, deadlines, keys", proxy.Run},
	{"call", "one HTTP call with retries, like curl, and why each was made", call.Run},
	{"flaky", "a server that fails on purpose, by a script, and logs what arrives", flaky.Run},
	{"audit", "what any program's retries lack: jitter, limits, Retry-After", audit.Run},
	{"lab", "which retry policy survives what, simulated in tables and pictures", lab.Run},
	{"check", "what cannot work in a chain of services: timeouts, retries, keys", check.Run},
	{"keys", "idempotency keys in a store: list them, resolve those that are stuck", keys.Run},
}

func main() {
	// The first Ctrl-C asks the subcommand to end and to say what it knows; the second one ends the process.
	// So does a terminal that is closed: processes that a subcommand has started would outlive it. Under nohup it goes on.
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) && (len(os.Args) < 2 || os.Args[1] != onHangup) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop)

	os.Exit(tell(os.Stderr, run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}

// tell prints an error, if there is one that nobody has told, and returns its exit code. What was typed may be pasted from
// anywhere and is repeated in many errors: none of it does anything to a terminal.
func tell(stderr io.Writer, err error) int {
	if err != nil && !errors.Is(err, exit.ErrNotFine) {
		fmt.Fprintln(stderr, strings.Map(func(c rune) rune {
			if c != '\n' && c != '\t' && !unicode.IsGraphic(c) {
				return unicode.ReplacementChar
			}
			return c
		}, err.Error()))
	}
	return exit.Code(err)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		help(stderr)
		return &exit.UsageError{Command: "riprap", Err: errors.New("no command given")}
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(rest) > 0 && find(rest[0]) != nil {
			return run(ctx, []string{rest[0], "-h"}, stdout, stderr)
		}
		if len(rest) > 0 {
			return unknown(rest[0])
		}
		help(stdout)
		return nil
	case "version", "-version", "--version":
		_, err := fmt.Fprintln(stdout, version())
		return err
	}
	c := find(name)
	if c == nil && strings.HasPrefix(name, "-") {
		return &exit.UsageError{Command: "riprap", Err: fmt.Errorf("no flag %s here: flags stand behind the command", name)}
	}
	if c == nil {
		return unknown(name)
	}
	return c.run(ctx, rest, stdout, stderr)
}

func find(name string) *command {
	for i := range commands {
		if commands[i].name == name {
			return &commands[i]
		}
	}
	return nil
}

func unknown(name string) error {
	names := []string{"help", "version"}
	for _, c := range commands {
		names = append(names, c.name)
	}
	err := fmt.Errorf("unknown command %q", name)
	if near := suggest.Near(name, names); near != "" {
		err = fmt.Errorf("%w, did you mean %q?", err, near)
	}
	return &exit.UsageError{Command: "riprap", Err: err}
}

func help(w io.Writer) {
	fmt.Fprint(w, "Riprap decides when, how often and for how long a failed call is tried again.\n\n"+
		"usage: riprap COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.about)
	}
	fmt.Fprintf(w, "  %-9s %s\n", "version", "which riprap this is")
	fmt.Fprintf(w, "  %-9s %s\n", "help", "this list; riprap help COMMAND for the flags of one")
	fmt.Fprint(w, "\nexit codes: 0 fine, 1 the thing checked is not fine, 2 usage or configuration\n")
}
