package effects

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A toll is how many processes die of what. That happens between operations as clients count them, and so in the midst of what
// the servers do.
type toll struct {
	kills   int // of servers
	pauses  int // of servers, which stand still until their leases are over, and go on
	crashes int // of the database, if it is a process
}

// operationsPerDeath is how many operations are acknowledged from one death to the next, on average.
const operationsPerDeath = 60

func TestNothingHappensTwiceOrGetsLostThoughServersAreKilled(t *testing.T) {
	each(t, func(t *testing.T, d *database) { proveTransactional(t, d, toll{kills: 10, pauses: 2, crashes: 5}) })
}

func TestSoakNothingHappensTwiceOrGetsLostThoughServersAreKilled(t *testing.T) {
	soaks(t)
	each(t, func(t *testing.T, d *database) { proveTransactional(t, d, toll{kills: 100, pauses: 20, crashes: 10}) })
}

func TestNothingHappensTwiceWithoutATransaction(t *testing.T) {
	each(t, func(t *testing.T, d *database) { proveSeparate(t, d, toll{kills: 5, pauses: 1}) })
}

func TestSoakNothingHappensTwiceWithoutATransaction(t *testing.T) {
	soaks(t)
	each(t, func(t *testing.T, d *database) { proveSeparate(t, d, toll{kills: 50, pauses: 10}) })
}

func soaks(t *testing.T) {
	if !soaking() {
		t.Skip("a long test: make soak")
	}
}

// proveTransactional kills servers that write the row and the key together, and crashes their database if it is a process: each
// operation has its row, and no key is left.
func proveTransactional(t *testing.T, d *database, deaths toll) {
	ctx := patiently(t)
	dsn, db := d.prepare(t)
	f := launch(t, plan{Database: d.name, DSN: dsn, Mode: transactional, Lease: time.Second, Seed: 2, Faults: everything}, 2)
	l := newLoad(f, 64, 0)
	die(t, ctx, f, l, deaths)
	if err := f.end(); err != nil {
		t.Error(err)
	}
	ledger := readLedger(t, db)
	compare(ledger, l.told).mustAgree(t)
	if len(ledger) != len(l.told) || len(l.held) > 0 {
		t.Errorf("%d operations in the ledger, %d acknowledged, and %d held: want all acknowledged", len(ledger), len(l.told), len(l.held))
	}
	mustBeSettled(t, d.store(db))
}

// proveSeparate kills servers that write the row in a transaction of its own: no operation has two rows, and for each one either the client
// was told of its row, or its key is held for an operator.
func proveSeparate(t *testing.T, d *database, deaths toll) {
	ctx := patiently(t)
	dsn, db := d.prepare(t)
	f := launch(t, plan{Database: d.name, DSN: dsn, Mode: separate, Lease: 2 * time.Second, Seed: 3, Faults: everything}, 2)
	l := newLoad(f, 64, 0)
	die(t, ctx, f, l, deaths)
	if err := f.end(); err != nil {
		t.Error(err)
	}
	ledger := readLedger(t, db)
	compare(ledger, l.told).mustAgree(t)

	var want []idempotency.ID // what List is to show
	happened := 0
	for operation := range l.held {
		record, err := d.store(db).Show(t.Context(), keyID(operation))
		switch {
		case err != nil:
			t.Errorf("Show of the key of %s, which is held: %v", operation, err)
		case record.State != idempotency.StateCompleted:
			want = append(want, record.ID)
			happened += len(ledger[operation])
		case len(ledger[operation]) == 0: // a run that only seemed to be dead has ended well, and has done it
			t.Errorf("%s is completed and has no row", operation)
		}
	}
	slices.SortFunc(want, compareIDs)
	stuck, err := d.store(db).List(t.Context(), idempotency.Filter{Stuck: true, Limit: len(l.told) + len(l.held)})
	if err != nil {
		t.Fatal(err)
	}
	var got []idempotency.ID
	for _, r := range stuck {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List of what is stuck has %d keys, want the %d of which clients were told that nobody knows", len(got), len(want))
	}
	t.Logf("after %d kills %d keys of %d are left unknown; %d of them have a row", deaths.kills, len(want), len(l.told)+len(l.held), happened)
}

func compareIDs(a, b idempotency.ID) int { return slices.Compare(a[:], b[:]) }

// die runs the load until that many processes have died, at random moments of it.
func die(t *testing.T, ctx context.Context, f *fleet, l *load, of toll) {
	t.Helper()
	deaths := slices.Concat(slices.Repeat([]func() error{f.kill}, of.kills), slices.Repeat([]func() error{f.pause}, of.pauses))
	if f.plan.Database == "PostgreSQL" {
		deaths = slices.Concat(deaths, slices.Repeat([]func() error{func() error { return crash(t) }}, of.crashes))
	}
	random := rand.New(rand.NewPCG(f.plan.Seed, 0))
	random.Shuffle(len(deaths), func(i, j int) { deaths[i], deaths[j] = deaths[j], deaths[i] })

	var over atomic.Bool
	l.more = func() bool { return !over.Load() && ctx.Err() == nil }
	running := make(chan struct{})
	go func() {
		defer close(running)
		l.run(t, ctx)
	}()
	defer func() {
		over.Store(true)
		<-running
	}()
	for _, death := range deaths {
		next := l.acknowledged.Load() + 1 + random.Int64N(2*operationsPerDeath)
		waitFor(t, ctx, "the next operations", func() bool { return l.acknowledged.Load() >= next })
		if err := death(); err != nil {
			t.Fatal(err)
		}
	}
}

// kill kills one of the servers.
func (f *fleet) kill() error { return f.replace(rand.IntN(len(f.slots))) }

// pause lets one of the servers stand still for longer than its leases last.
func (f *fleet) pause() error {
	p := f.slots[rand.IntN(len(f.slots))].process
	if err := p.stop(); err != nil {
		return nil // there is no such thing on this system
	}
	<-time.After(2 * f.plan.Lease)
	return p.resume()
}

// crash crashes the database and starts it again.
func crash(t testing.TB) error {
	s := postgres(t)
	if err := s.Crash(); err != nil {
		return err
	}
	return s.Restart()
}
