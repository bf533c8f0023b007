package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/internal/pgtest"
)

// TestMain makes the program of the test's binary where a process of the play is to be one.
func TestMain(m *testing.M) {
	if os.Getenv("CHARGE_TEST_MAIN") != "" {
		main()
	}
	os.Setenv("CHARGE_TEST_MAIN", "1") // for the processes that tests start
	os.Exit(m.Run())
}

// onEachDatabase runs a test on both, at the same time.
func onEachDatabase(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Parallel() // they wait for leases most of the time
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, "")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Start(t))
	})
}

func TestAllIsAsPromised(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		args := []string{"--db", dsn}
		if dsn == "" {
			args = nil
		}
		var out bytes.Buffer
		var errs shared
		if code := run(t.Context(), args, nil, &out, &errs); code != 0 || errs.text != "" {
			t.Errorf("run(%q) = %d, stderr %q, want 0 and nothing", args, code, errs.text)
		}
		for _, want := range []string{"kill -9", "201 Created", "(replayed)", "422 Unprocessable Entity, key-reused"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("run(%q) does not print %q", args, want)
			}
		}
		fitsIntoATerminal(t, out.String())
		if t.Failed() {
			t.Log(out.String())
		}
	})
}

// shared is written by several processes.
type shared struct {
	mu   sync.Mutex
	text string
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += string(p)
	return len(p), nil
}

func fitsIntoATerminal(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("the line %q has %d columns, want 80 at most", line, n)
		}
	}
}

func TestOneChargeWhereverTheServerIsKilled(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		p := begun(t, dsn)
		for _, test := range []struct {
			name     string
			wire     *wire
			at       moment
			replayed bool
		}{
			{"before the charge", p.back, asked, false},
			{"between the charge and the commit", p.back, answered, false},
			{"after the commit, before the answer", p.front, answered, true},
			{"before the request", p.front, asked, false},
		} {
			t.Run(test.name, func(t *testing.T) {
				o := newOrder()
				a, err := p.crash(t.Context(), o, test.wire, test.at)
				if err != nil {
					t.Fatal(err)
				}
				if a.sends < 2 || a.replayed != test.replayed {
					t.Errorf("crash() = %v after %d sends, want more than one, and replayed: %v", a, a.sends, test.replayed)
				}
				if err := p.once(t.Context(), o, a); err != nil {
					t.Error(err)
				}

				again, err := p.send(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if !again.replayed || again.Order != a.Order {
					t.Errorf("asked once more, the answer is %v, want that of %v, replayed", again, a)
				}
				if err := p.once(t.Context(), o, again); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// A lock stops the server at a place where nothing on a wire shows what it does.
func TestOneChargeIfTheServerIsKilledInTheMidstOfItsWrites(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t)
	p := begun(t, dsn)
	for _, test := range []struct {
		name, table string
	}{
		{"the order is written, its charge is not", "charges"},
		{"nothing is written, since that begins with the key", "riprap_keys"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lock, err := p.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Rollback()
			// The provider has charged, and its answer is lost: the server asks it once more.
			locked := make(chan error, 1)
			p.back.cutAt(answered, func() {
				_, err := lock.Exec(`LOCK TABLE ` + test.table + ` IN EXCLUSIVE MODE`)
				locked <- err
			})
			type result struct {
				answer
				error
			}
			got := make(chan result, 1)
			o := newOrder()
			go func() {
				a, err := p.send(t.Context(), o)
				got <- result{a, err}
			}()
			if err := <-locked; err != nil {
				t.Fatal(err)
			}
			if !eventually(t.Context(), func() bool {
				var n int
				err := p.db.QueryRow(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::regclass`, test.table).Scan(&n)
				return n > 0 && err == nil
			}) {
				t.Fatal("the server does not wait for the lock")
			}

			p.server.kill()
			// PostgreSQL would do what it was last told before it sees that nobody is there.
			if _, err := p.db.Exec(`SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE NOT granted AND relation = $1::regclass`, test.table); err != nil {
				t.Fatal(err)
			}
			lock.Rollback()
			if p.server, err = begin(t.Output(), "server", dsn, p.back.url); err != nil {
				t.Fatal(err)
			}
			p.front.lead(p.server.url)
			r := <-got
			if r.error != nil {
				t.Fatal(r.error)
			}
			if err := p.once(t.Context(), o, r.answer); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnswersThatAreNoOrderAreKeptToo(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		p := begun(t, dsn)
		dear := newOrder()
		dear.Cents = 1_000_000
		for _, replayed := range []string{"", "true"} {
			resp := post(t, p, dear, "secret-of-alice")
			if got := resp.Header.Get("Idempotent-Replayed"); resp.StatusCode != 402 || got != replayed {
				t.Errorf("a charge that is declined gets %s, replayed %q, want 402 and %q", resp.Status, got, replayed)
			}
		}
	})
}

func TestAKeyIsOneOfItsCustomer(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		p := begun(t, dsn)
		o := newOrder()
		for _, token := range []string{"secret-of-alice", "secret-of-bob"} {
			resp := post(t, p, o, token)
			if got := resp.Header.Get("Idempotent-Replayed"); resp.StatusCode != 201 || got != "" {
				t.Errorf("%s gets %s, replayed %q, want a 201 of its own", token, resp.Status, got)
			}
		}
	})
}

func TestWhoIsNoCustomerIsToldBeforeAnythingElse(t *testing.T) {
	p := begun(t, "")
	o := newOrder()
	if resp := post(t, p, o, "guessed"); resp.StatusCode != 401 {
		t.Errorf("a stranger gets %s, want 401", resp.Status)
	}
	o.key = ""
	if resp := post(t, p, o, "secret-of-alice"); resp.StatusCode != 400 {
		t.Errorf("a customer without a key gets %s, want 400", resp.Status)
	}
}

// A test of the test: once has to see what is not as promised.
func TestWhatIsNotAsPromisedIsSaid(t *testing.T) {
	p := begun(t, "")
	o := newOrder()
	a, err := p.send(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.once(t.Context(), o, a); err != nil {
		t.Fatal(err)
	}
	other := a
	other.Order = "another"
	if err := p.once(t.Context(), o, other); err == nil {
		t.Error("once() finds nothing wrong with the answer of another order")
	}
	twice := o
	twice.key += "2"
	if _, err := p.send(t.Context(), twice); err != nil {
		t.Fatal(err)
	}
	if err := p.once(t.Context(), o, a); err == nil || !strings.Contains(err.Error(), "2 charges at the provider") {
		t.Errorf("once() = %v for what was charged twice, want 2 charges", err)
	}
}

func TestWrongUsageIsTold(t *testing.T) {
	for _, args := range [][]string{{"--dsn", "x"}, {"nobody"}, {"server"}, {"provider", "x"}, {"--db"}, {"--db="}, {"--db", "orders.db"}} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, nil, io.Discard, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("run(%q) = %d, stderr %q, want 2 and a reason", args, code, &errs)
		}
	}
}

func TestHelpIsForAPager(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--help"}, nil, &out, &errs)
	if code != 0 || errs.Len() > 0 || !strings.HasPrefix(out.String(), "usage: charge ") {
		t.Errorf("run(--help) = %d, stdout %q, stderr %q, want 0 and the usage on stdout", code, &out, &errs)
	}
	fitsIntoATerminal(t, out.String())
}

func begun(t *testing.T, dsn string) *play {
	t.Helper()
	p, err := start(t.Context(), dsn, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

// post sends an order once.
func post(t *testing.T, p *play, o order, token string) *http.Response {
	t.Helper()
	body := strings.NewReader(fmt.Sprintf(`{"item":%q,"cents":%d}`, o.Item, o.Cents))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.front.url+"/charges", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if o.key != "" {
		req.Header.Set("Idempotency-Key", o.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
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
