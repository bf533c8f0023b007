// Package flaky is "riprap flaky": a server that fails on purpose, by a script. It is package flaky of the library on a
// socket.
package flaky

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/flaky"
	"github.com/riprap-go/riprap/internal/suggest"
)

// flags are what somebody has typed.
type flags struct {
	script  string
	host    string // to listen on
	port    string
	length  time.Duration // zero means until it is stopped
	tls     bool
	verbose bool
}

// Run is the subcommand. The first line on stdout is the server's base URL, and there is no other. It serves until ctx is
// done and does not wait for requests that hang then.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return &exit.UsageError{Command: "riprap flaky", Err: err}
	}
	h, err := flaky.New(f.script)
	if err != nil {
		return &exit.UsageError{Command: "riprap flaky", Err: marked{err}}
	}
	if f.verbose {
		h.Trace = (&watch{w: stderr}).arrival
	}
	s, err := listen(ctx, f, h, stderr)
	if err != nil {
		return fmt.Errorf("riprap flaky: %w", err)
	}
	defer s.Close()
	if !s.loopback() {
		fmt.Fprintln(stderr, "riprap flaky: other machines can reach this server")
	}
	if _, err := fmt.Fprintln(stdout, s.url()); err != nil {
		return fmt.Errorf("riprap flaky: %w", err)
	}
	if f.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.length)
		defer cancel()
	}
	if err := s.serve(ctx); err != nil {
		return fmt.Errorf("riprap flaky: %w", err)
	}
	return nil
}

// marked is the error of a script, whose last line is a mark that nothing else may follow.
type marked struct{ error }

func (m marked) Error() string { return m.error.Error() + "\n" }

// parse reads the arguments. The script may stand before, between or behind the flags.
func parse(args []string, help io.Writer) (*flags, error) {
	f := &flags{}
	set := flag.NewFlagSet("riprap flaky", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	addr := set.String("listen", "127.0.0.1:0", "HOST:PORT to listen on; port 0 is one that is free, and no host\nis this machine only (0.0.0.0 is every network)")
	set.Var((*suggest.Duration)(&f.length), "for", "end after a `duration` (default: when stopped)")
	set.BoolVar(&f.tls, "tls", false, "speak TLS, with a certificate that nobody trusts")
	set.BoolVar(&f.verbose, "v", false, "a line on stderr for each request")

	var scripts []string
	for rest := args; ; {
		if err := set.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				usage(set, help)
			}
			return nil, err
		}
		if set.NArg() == 0 {
			break
		}
		scripts, rest = append(scripts, set.Arg(0)), set.Args()[1:]
	}
	if len(scripts) == 0 {
		return nil, errors.New(`no script given, such as "503*2, 200"`)
	}
	if len(scripts) > 1 {
		return nil, fmt.Errorf("a second script %q: a script with blanks needs quotation marks around it", scripts[1])
	}
	if f.length < 0 {
		return nil, fmt.Errorf("-for %v: want no negative time", f.length)
	}
	var err error
	if f.host, f.port, err = net.SplitHostPort(*addr); err != nil {
		return nil, fmt.Errorf("-listen %q: want HOST:PORT, such as 127.0.0.1:8080", *addr)
	}
	f.host = cmp.Or(f.host, "127.0.0.1") // what ":8080" means elsewhere is seldom meant here
	f.script = scripts[0]
	return f, nil
}

func usage(set *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `usage: riprap flaky [flags] SCRIPT

A server that fails on purpose. Its first line is its URL. It answers each
request with the next step of the script, the last step again and again:

  riprap flaky "503*2, 429 retry-after=1, hang=5s, reset, 200 body=ok"

  503              a status from 200 to 999; 503*2 is two of them
  hang=5s          no answer; after 5s (hang: an hour) the connection is closed
  reset, close     the connection ends, with TCP's RST or FIN, once the request
                   was read
  cut=100          a body that ends after 100 bytes and was announced as longer
  slow=10ms/byte   a body that drips
  endless          a body that never ends

Options of a step stand behind it: body=TEXT, retry-after=SECONDS or date+2s,
header="Name: text", delay=100ms. A value with a blank, a comma or a semicolon
is quoted. Parts for paths: "/a: 503*2, 200; /b: reset; 200".

GET /_log shows every request that arrived, as JSON. Requests to /~ID/… or with
the header X-Flaky-Run: ID are counted and logged apart from others.

`)
	set.SetOutput(w)
	set.PrintDefaults()
	fmt.Fprint(w, "\nexit codes: 0 it served until it was stopped, 1 it could not, 2 usage, or the\nscript is wrong\n")
}
