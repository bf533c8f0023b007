// Chain is an example: a chain of services whose timeouts shrink on the way down, with a real query at its end.
//
//	gateway 10 s → orders 7 s → payments 4 s → database 2 s
//
//	go run ./examples/chain                                   # on SQLite, in a temporary folder
//	go run ./examples/chain --db postgres://user@host/name    # on PostgreSQL; it makes nothing there
//
// It sends a handful of requests, shows for each what every hop saw of it, and ends within a few seconds; the exit code is 1 if
// something was not as it should be. services.go is what to copy from: the policies, the servers, the clients. riprap.yaml
// has the same figures for "riprap check", which finds out whether they fit each other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // as in "| head": the write fails, and what is to be cleaned up is
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// A request is one that the example sends, with what must come of it.
type request struct {
	id, title string
	path      string
	waits     time.Duration // what the caller says of its own time; zero: nothing
	leaves    bool          // the caller goes away once the query is at work

	status  int // of the answer; zero if the caller did not wait for it
	queries int // attempts that reached the database
	stopped int // of them were stopped
}

var requests = []request{
	{id: "quick", title: "All is well.", path: "/orders/7", status: 200, queries: 1},
	{id: "hangs", title: "The database hangs. Only payments tries again; this takes two seconds.",
		path: "/orders/7?database=hangs", status: 504, queries: 2, stopped: 2},
	{id: "short", title: "The database hangs, and the caller sends X-Request-Timeout-Ms: 800.",
		path: "/orders/7?database=hangs", waits: 800 * time.Millisecond, status: 504, queries: 1, stopped: 1},
	{id: "gone", title: "The database hangs, and the caller goes away while it does.",
		path: "/orders/7?database=hangs", leaves: true, queries: 1, stopped: 1},
	{id: "late", title: fmt.Sprintf("The caller waits 150 ms; payments does not begin with less than %d ms.", millis(leastForPayments)),
		path: "/orders/7", waits: 150 * time.Millisecond, status: 504},
}

const usage = `usage: chain [--db DATABASE]

Sends five requests through gateway → orders → payments to a database, on
loopback, and shows what every hop saw of them: how much time it had, and when
it stopped. The exit code is 1 if something was not as it should be.

  --db DATABASE   PostgreSQL, such as postgres://user@host/name; nothing is made
                  there. Without it: SQLite in a temporary folder
`

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("chain", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dsn := flags.String("db", "", "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	} else if err != nil {
		fmt.Fprintf(stderr, "chain: %v\n\n%s", err, usage)
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "chain: what is %q? A database comes behind --db.\n", flags.Arg(0))
		return 2
	}

	asked := false
	flags.Visit(func(*flag.Flag) { asked = true })
	if asked && *dsn == "" { // as from a variable that is not set
		fmt.Fprintln(stderr, "chain: --db without a database. Without --db it is SQLite.")
		return 2
	}
	db, err := open(ctx, *dsn)
	if err != nil {
		fmt.Fprintln(stderr, "chain:", err)
		return 2
	}
	defer db.close()
	s, err := start(db, &journal{})
	if err != nil {
		fmt.Fprintln(stderr, "chain:", err)
		return 2
	}
	defer s.stop()

	for i, service := range figures.Services {
		if i > 0 {
			fmt.Fprint(stdout, " → ")
		}
		fmt.Fprintf(stdout, "%s %v", service.Name, service.Limit)
	}
	fmt.Fprintf(stdout, " (%s)\n", db.name)

	code := 0
	for i, r := range requests {
		if _, err := fmt.Fprintf(stdout, "\n%d. %s\n", i+1, r.title); err != nil { // before it is sent: it may take a while
			fmt.Fprintln(stderr, "chain:", err)
			return 1
		}
		wrong := s.show(ctx, r, stdout)
		if ctx.Err() != nil {
			fmt.Fprintln(stderr, "chain: interrupted")
			return 1
		}
		for _, promise := range wrong {
			fmt.Fprintf(stdout, "   NOT AS PROMISED: %s\n", promise)
			code = 1
		}
	}
	return code
}

// show sends a request, shows what became of it, and says what is not as it should be.
func (s *services) show(ctx context.Context, r request, stdout io.Writer) (wrong []string) {
	sent := time.Now()
	status, err := s.send(ctx, r)
	took := time.Since(sent)
	if ctx.Err() != nil {
		return nil
	}
	var visits []visit
	over := eventually(ctx, func() bool { // a caller that goes away is ahead of its services
		var over bool
		visits, over = s.journal.of(r.id)
		return over
	})
	idle := eventually(ctx, func() bool { // PostgreSQL stops a query a moment after it was asked to
		working, err := s.db.working(ctx)
		return err == nil && !working
	})

	table(stdout, sent, visits)
	if r.status != 0 {
		fmt.Fprintf(stdout, "   The caller got %d %s after %d ms.\n", status, http.StatusText(status), millis(took))
	} else {
		fmt.Fprintf(stdout, "   The caller was gone after %d ms.\n", millis(took))
	}
	wrong = broken(r, status, err, visits)
	if !over {
		wrong = append(wrong, "a service is still at work")
	}
	if !idle {
		wrong = append(wrong, "a query is still at work in the database")
	} else if r.stopped > 0 {
		fmt.Fprintln(stdout, "   The database says that no query is at work any more.")
	}
	return wrong
}

// send sends a request as any client might, curl for example: the chain does not depend on who is in front of it.
func (s *services) send(ctx context.Context, r request) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.gateway+r.path, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Correlation-Id", r.id)
	if r.waits > 0 {
		req.Header.Set("X-Request-Timeout-Ms", fmt.Sprint(r.waits.Milliseconds()))
	}
	if r.leaves {
		go func() {
			defer cancel()
			eventually(ctx, func() bool {
				working, err := s.db.working(ctx)
				return err == nil && working
			})
		}()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// broken says what is not as it should be with a request.
func broken(r request, status int, err error, visits []visit) (wrong []string) {
	if status != r.status || err != nil && !(r.leaves && errors.Is(err, context.Canceled)) {
		wrong = append(wrong, fmt.Sprintf("the caller got %d, %v; want %d", status, err, r.status))
	}
	queries, stopped, had := 0, 0, time.Duration(0)
	for i, v := range visits {
		if v.hop == "database" {
			queries++
			if v.cancelled {
				stopped++
			}
		}
		if first := v.hop != "database" || queries == 1; i > 0 && first && v.had >= had {
			wrong = append(wrong, fmt.Sprintf("%s had %v, its caller %v", v.hop, v.had, had))
		}
		if r.leaves && !v.cancelled {
			wrong = append(wrong, v.hop+" did not see that its caller had gone")
		}
		had = v.had
	}
	if queries != r.queries || stopped != r.stopped {
		wrong = append(wrong, fmt.Sprintf("%d queries began and %d were stopped, want %d and %d", queries, stopped, r.queries, r.stopped))
	}
	return wrong
}

// eventually waits until a condition holds, for half a minute at most: a machine that is busy may take a while.
func eventually(ctx context.Context, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}
