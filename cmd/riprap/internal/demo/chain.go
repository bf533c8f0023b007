package demo

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/cmd/riprap/internal/proxy"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// A chain is what a click goes through on one side: the shoppers' app, the gateway, the orders service, on riprap's side the
// proxy, and the payments service with its ledger. Each has an address of its own on loopback.
type chain struct {
	scenario scenario
	side     side
	tally    *tally
	dir      string // for files

	front    string                                         // URL that the app of the shoppers calls
	click    func(ctx context.Context, c click, n int) told // what the app of the shoppers does
	payments *host
	ledger   *ledger
	ends     []func() // what has to be ended, in the order in which it was begun
}

// newChain starts a side's services with files in dir. The caller ends them with close.
func newChain(ctx context.Context, s scenario, d side, dir string, t *tally) (c *chain, err error) {
	c = &chain{scenario: s, side: d, tally: t, dir: dir}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.ledger, err = openLedger(ctx, filepath.Join(dir, d.name+"-ledger.db")); err != nil {
		return nil, err
	}
	c.ends = append(c.ends, c.ledger.close)
	if c.payments, err = newHost(ctx, s, c.ledger, t); err != nil {
		return nil, err
	}
	c.ends = append(c.ends, c.payments.down)
	url := "http://" + c.payments.addr
	if d.proxied {
		if url, err = c.proxy(ctx, url); err != nil {
			return nil, err
		}
		c.ends = append(c.ends, c.payments.down) // before the proxy ends: then nothing waits there any more
	}
	url += "/charges"
	for i, path := range []string{"/orders", "/buy"} {
		base := c.base()
		if i == 0 {
			base = &meter{base, t}
		}
		layer, err := serve(ctx, "127.0.0.1:0", timed(d.service(relay(d.sender(s, base, t), url)), t))
		if err != nil {
			return nil, err
		}
		c.ends = append(c.ends, layer.close)
		url = layer.url() + path
	}
	c.front = url
	buy := d.app(s, c.base(), t)
	c.click = func(ctx context.Context, at click, n int) told {
		return buy(ctx, url, newPurchase(fmt.Sprintf("shopper %d", at.Shopper), n)).told
	}
	return c, nil
}

// base is a transport of one layer's own.
func (c *chain) base() http.RoundTripper {
	base := newBase(c.scenario)
	c.ends = append(c.ends, base.CloseIdleConnections)
	return &stamp{base, c.tally}
}

// proxy starts riprap's proxy before the service at url and returns its own. What it is told is what one line of its command
// says: --to URL --require-key 'POST /charges' --scope header:X-Customer.
func (c *chain) proxy(ctx context.Context, url string) (string, error) {
	keys, err := c.keys(ctx)
	if err != nil {
		return "", err
	}
	service, err := proxy.NewService(manifest.Proxy{
		Service:    "payments",
		To:         url,
		RequireKey: []string{"POST /charges"},
		Scope:      "header:X-Customer",
		Policy:     riprap.Policy{MaxAttempts: c.scenario.Attempts, Backoff: riprap.Backoff{Base: c.scenario.Backoff}},
	}, &timedKeys{keys, c.tally}, proxy.Watch{Ended: c.visited})
	if err != nil {
		return "", err
	}
	server, err := serve(ctx, "127.0.0.1:0", timed(service, c.tally))
	if err != nil {
		return "", err
	}
	c.ends = append(c.ends, server.close, service.CloseIdleConnections)
	return server.url(), nil
}

// keys makes the proxy's store in a file.
func (c *chain) keys(ctx context.Context) (idempotency.Store, error) {
	file := filepath.Join(c.dir, c.side.name+"-keys.db")
	safe, err := openSQLite(file, "full") // else it makes no tables
	if err != nil {
		return nil, err
	}
	err = sqlstore.SQLite(safe).Migrate(ctx)
	safe.Close()
	if err != nil {
		return nil, err
	}
	db, err := openSQLite(file, "off")
	if err != nil {
		return nil, err
	}
	c.ends = append(c.ends, func() { db.Close() })
	return sqlstore.SQLite(db), nil
}

// visited counts what the proxy sent.
func (c *chain) visited(v *proxy.Visit) {
	for i, a := range v.Attempts {
		if i > 0 {
			c.tally.countAt(retried, c.tally.at(a.Begun))
		}
		if a.Failure == "refused" {
			c.tally.countAt(refused, c.tally.at(a.Begun.Add(a.Took)))
		}
	}
}

// close ends everything that was begun, the last first.
func (c *chain) close() {
	for len(c.ends) > 0 {
		last := len(c.ends) - 1
		c.ends[last]()
		c.ends = c.ends[:last]
	}
}

// run lets the shoppers of one side click while the payments service goes through its faults. What is counted is in t, the
// more so when ctx ended it early. The account is that of the ledger at the end. An error is that something could not be run.
func (d side) run(ctx context.Context, s scenario, clicks []click, dir string, t *tally) (account, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	c, err := newChain(ctx, s, d, dir, t)
	if err != nil {
		return account{}, err
	}
	defer c.close()
	t.begin()

	var running, failing sync.WaitGroup
	failing.Go(func() {
		if err := c.payments.fail(ctx); err != nil {
			t.fail(err)
			end()
		}
	})
	for n, at := range clicks {
		if t.wait(ctx, at.At) != nil || t.now() >= s.Length {
			break
		}
		t.countAt(made, at.At)
		t.highest(behind, int((t.now() - at.At).Milliseconds()))
		running.Go(func() {
			patient, cancel := context.WithTimeout(ctx, s.Patience)
			defer cancel()
			outcome := c.click(patient, at, n)
			if ctx.Err() == nil { // else the run's end ended it, and nobody knows what would have become of it
				t.ended(n, at.At, outcome)
			}
		})
	}
	t.wait(ctx, s.Length)
	end()
	failing.Wait()
	c.payments.down() // what it has not charged by now it never will
	running.Wait()
	charges, err := c.ledger.charges()
	if err == nil {
		err = t.broken()
	}
	return reckon(charges, t.outcomes()), err
}
