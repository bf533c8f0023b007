// Charge is an example: the payment endpoint that cannot charge twice.
//
//	client → POST /charges (server.go, SQLite or PostgreSQL) → payment provider (provider.go)
//
//	go run ./examples/charge                                   # on SQLite, in a temporary folder
//	go run ./examples/charge --db postgres://user@host/name    # on PostgreSQL; it makes its tables there, and leaves them
//
// It starts provider and server as processes, kills the server (kill -9) after the provider has charged and before
// anything is committed, starts it anew, and lets the client try again; then two clients race with one key, and one comes back
// with another amount. The exit code is 0 only if each key was charged once and became one order. server.go is what to copy
// from. docs/idempotency.md says what is promised and what is not.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

const usage = `usage: charge [--db DATABASE]

Charges by a server that is killed in the midst of it, and shows that each key
was charged once and became one order. The exit code is 1 if not.

  --db DATABASE   PostgreSQL, such as postgres://user@host/name; its tables are
                  made there and stay. Without it: SQLite in a temporary folder

It starts itself for the processes of the play:

  charge provider
  charge server DATABASE PROVIDER-URL
`

func main() {
	signal.Ignore(syscall.SIGPIPE) // as in "| head": the write fails, and what is to be cleaned up is
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("charge", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dsn := flags.String("db", "", "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	} else if err != nil {
		fmt.Fprintf(stderr, "charge: %v\n\n%s", err, usage)
		return 2
	}
	asked := false
	flags.Visit(func(*flag.Flag) { asked = true })
	if asked && !strings.HasPrefix(*dsn, "postgres") { // empty, as from a variable that is not set
		fmt.Fprintf(stderr, "charge: --db %q is no PostgreSQL, such as postgres://user@host/name. Without --db it is SQLite.\n", *dsn)
		return 2
	}
	var err error
	switch role := flags.Arg(0); {
	case role == "provider" && flags.NArg() == 1:
		err = serve(newProvider(), stdin, stdout)
	case role == "server" && flags.NArg() == 3:
		err = sell(ctx, flags.Arg(1), flags.Arg(2), stdin, stdout)
	case role == "":
		err = show(ctx, *dsn, stdout, stderr)
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "charge:", err)
		return 1
	}
	return 0
}

// sell is the server's process.
func sell(ctx context.Context, dsn, provider string, stdin io.Reader, stdout io.Writer) error {
	db, keys, err := open(ctx, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go keys.ReapEvery(ctx, time.Minute) // deletes what nobody needs any more; every instance may
	return serve(newShop(keys, provider), stdin, stdout)
}

// show plays all of it, and says after each scene what became of it.
func show(ctx context.Context, dsn string, stdout, stderr io.Writer) error {
	p, err := start(ctx, dsn, stderr)
	if err != nil {
		return err
	}
	defer p.end()

	first := newOrder()
	fmt.Fprintf(stdout, "1. The server is killed between the charge and the commit (%s).\n", p.name)
	a, err := p.crash(ctx, first, p.back, answered)
	if err := cmp.Or(err, p.once(ctx, first, a)); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "   kill -9, restart. The client sent its request %d times, with one key, and got\n   %v.\n", a.sends, a)
	fmt.Fprint(stdout, justOne)

	second := newOrder()
	fmt.Fprintln(stdout, "2. Two clients with one key, at the same time.")
	both, err := p.race(ctx, second)
	if err := cmp.Or(err, p.once(ctx, second, both[0]), p.once(ctx, second, both[1])); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "   They got\n   %v and\n   %v.\n", both[0], both[1])
	fmt.Fprint(stdout, justOne)

	changed := first
	changed.Cents++
	fmt.Fprintln(stdout, "3. The key of the first order comes back with another amount.")
	refused, err := p.send(ctx, changed)
	if err == nil && refused.status != http.StatusUnprocessableEntity {
		err = fmt.Errorf("NOT AS PROMISED: another amount got %v, want 422", refused)
	}
	if err := cmp.Or(err, p.once(ctx, first, a)); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "   The client got\n   %v.\n", refused)
	_, err = fmt.Fprint(stdout, justOne)
	return err
}

const justOne = "   Charges at the provider: 1. Orders: 1.\n"

// A play is the processes, the wires between them, and what is needed to see what became of them.
type play struct {
	name, dsn, folder string
	stderr            io.Writer
	db                *sql.DB
	provider, server  *process
	front, back       *wire // from the client to the server, and from there to the provider
}

func start(ctx context.Context, dsn string, stderr io.Writer) (p *play, err error) {
	p = &play{name: "PostgreSQL", dsn: dsn, stderr: stderr}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	if dsn == "" {
		if p.folder, err = os.MkdirTemp("", "riprap-charge-"); err != nil {
			return p, err
		}
		p.name, p.dsn = "SQLite", sqliteDSN(filepath.Join(p.folder, "orders.db"))
	}
	if p.provider, err = begin(stderr, "provider"); err != nil {
		return p, err
	}
	if p.back, err = lay(p.provider.url); err != nil {
		return p, err
	}
	if p.server, err = begin(stderr, "server", p.dsn, p.back.url); err != nil {
		return p, err
	}
	if p.front, err = lay(p.server.url); err != nil {
		return p, err
	}
	p.db, _, err = open(ctx, p.dsn)
	return p, err
}

func (p *play) end() {
	for _, s := range []*process{p.server, p.provider} {
		if s != nil {
			s.end()
		}
	}
	for _, w := range []*wire{p.front, p.back} {
		if w != nil {
			w.server.Close()
		}
	}
	if p.db != nil {
		p.db.Close()
	}
	if p.folder != "" {
		os.RemoveAll(p.folder)
	}
}

// crash sends an order, kills the server at a moment on one of the wires, and starts it anew.
func (p *play) crash(ctx context.Context, o order, w *wire, m moment) (answer, error) {
	restarted := make(chan error, 1)
	w.cutAt(m, func() {
		p.server.kill()
		server, err := begin(p.stderr, "server", p.dsn, p.back.url)
		if err == nil {
			p.server = server
		}
		restarted <- err
		if err == nil {
			p.front.lead(server.url)
		}
	})
	a, err := p.send(ctx, o)
	select {
	case failed := <-restarted:
		return a, cmp.Or(failed, err)
	default:
		return a, cmp.Or(err, errors.New("the server was not killed"))
	}
}

// race sends an order twice at once.
func (p *play) race(ctx context.Context, o order) (both [2]answer, err error) {
	var errs [2]error
	var clients sync.WaitGroup
	for i := range both {
		clients.Go(func() { both[i], errs[i] = p.send(ctx, o) })
	}
	clients.Wait()
	if err = cmp.Or(errs[0], errs[1]); err == nil && both[0].replayed == both[1].replayed {
		err = fmt.Errorf("NOT AS PROMISED: the racing clients got %v and %v, want one of them replayed", both[0], both[1])
	}
	return both, err
}

// once returns an error unless an answer is that of the one order, for the one charge at the provider.
func (p *play) once(ctx context.Context, o order, a answer) error {
	var charges []charge
	resp, err := http.Get(p.provider.url + "/charges?description=" + url.QueryEscape(o.Item))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&charges); err != nil {
		return err
	}
	var orders int
	var id, paid string
	err = p.db.QueryRowContext(ctx, `SELECT count(*), coalesce(min(orders.id), ''), coalesce(min(charges.id), '')
		FROM orders JOIN charges ON charges.order_id = orders.id WHERE item = $1`, o.Item).Scan(&orders, &id, &paid)
	if err != nil {
		return err
	}
	if len(charges) != 1 || orders != 1 || a.status != http.StatusCreated || a.Order != id || a.Charge != paid || paid != charges[0].ID {
		return fmt.Errorf("NOT AS PROMISED: %d charges at the provider (%v), %d orders (%s, paid by %s), and the client got %v",
			len(charges), charges, orders, id, paid, a)
	}
	return nil
}

// An order is what a client wants, with the key that it made for it before it first sent it, and keeps.
type order struct {
	Item  string `json:"item"`
	Cents int64  `json:"cents"`
	key   string
}

func newOrder() order { return order{"a pair of shoes, no. " + rand.Text(), 2599, rand.Text()} }

// An answer is what a client got for an order.
type answer struct {
	Order, Charge string
	Type          string // of a problem

	status, sends int
	replayed      bool
}

func (a answer) String() string {
	text := fmt.Sprintf("%d %s", a.status, http.StatusText(a.status))
	if a.Order != "" {
		text += ", order " + a.Order[:6]
	}
	if _, name, ok := strings.Cut(a.Type, "#"); ok {
		text += ", " + name
	}
	if a.replayed {
		text += " (replayed)"
	}
	return text
}

// client sends again what may be sent again.
var client = &http.Client{Transport: &riphttp.Transport{}}

// send sends an order, again and again if need be: its key makes that safe.
func (p *play) send(ctx context.Context, o order) (a answer, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return a, err
	}
	policy := &riprap.Policy{
		MaxAttempts: 20, // as many as it takes to start a server anew
		Timeout:     time.Minute,
		Trace:       &riprap.Trace{Done: func(_ context.Context, e riprap.Event) { a.sends = e.Sends }}, // those of net/http too
	}
	req, err := http.NewRequestWithContext(riphttp.WithPolicy(ctx, policy), http.MethodPost, p.front.url+"/charges", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer secret-of-alice")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", o.key)
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status, a.replayed = resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true"
	text, err := io.ReadAll(resp.Body)
	if err == nil && json.Unmarshal(text, &a) != nil {
		err = fmt.Errorf("the server answers %s: %q", resp.Status, text)
	}
	return a, err
}
