package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// ErrFault is what EveryStep lets calls fail with.
var ErrFault = errors.New("storetest: a fault on purpose")

// A Step is a moment at which a call of a store can fail: before it does anything, or after it did all of it, so that the
// caller is not told.
type Step struct {
	Call  string // Claim, Renew, Complete, Release, Suspend; of a Transaction: Commit, Rollback
	After bool   // after the call did all of its work, and not before
}

// String returns something like "before Claim".
func (s Step) String() string {
	if s.After {
		return "after " + s.Call
	}
	return "before " + s.Call
}

// A Faulty is a Store that fails where Fail says so: the call returns its error. Fail is called by as many goroutines as
// the Store; nil never fails. [EveryStep] makes one that fails everywhere, in turn.
type Faulty struct {
	Store idempotency.Store // that does the work
	Fail  func(Step) error  // returns the error for a step, nil if it does not fail
}

// Transactor returns the same for a Store that is a Transactor. It panics if Store is none.
func (f Faulty) Transactor() idempotency.Transactor {
	return faultyTransactor{f, f.Store.(idempotency.Transactor)}
}

func (f Faulty) do(call string, do func() error) error {
	if f.Fail == nil {
		return do()
	}
	if err := f.Fail(Step{call, false}); err != nil {
		return err
	}
	err := do()
	if fault := f.Fail(Step{call, true}); fault != nil {
		return fault
	}
	return err
}

// Claim is the Store's.
func (f Faulty) Claim(ctx context.Context, c idempotency.Claim) (claimed idempotency.Claimed, err error) {
	err = f.do("Claim", func() (err error) {
		claimed, err = f.Store.Claim(ctx, c)
		return err
	})
	if err != nil {
		return idempotency.Claimed{}, err
	}
	return claimed, nil
}

// Renew is the Store's.
func (f Faulty) Renew(ctx context.Context, t idempotency.Ticket, lease time.Duration) error {
	return f.do("Renew", func() error { return f.Store.Renew(ctx, t, lease) })
}

// Complete is the Store's.
func (f Faulty) Complete(ctx context.Context, t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	return f.do("Complete", func() error { return f.Store.Complete(ctx, t, a, retention) })
}

// Release is the Store's.
func (f Faulty) Release(ctx context.Context, t idempotency.Ticket) error {
	return f.do("Release", func() error { return f.Store.Release(ctx, t) })
}

// Suspend is the Store's.
func (f Faulty) Suspend(ctx context.Context, t idempotency.Ticket) error {
	return f.do("Suspend", func() error { return f.Store.Suspend(ctx, t) })
}

type faultyTransactor struct {
	Faulty
	transactor idempotency.Transactor
}

func (f faultyTransactor) Transact(ctx context.Context, t idempotency.Ticket) (context.Context, idempotency.Transaction) {
	ctx, tx := f.transactor.Transact(ctx, t)
	return ctx, faultyTransaction{f.Faulty, tx}
}

type faultyTransaction struct {
	faulty Faulty
	tx     idempotency.Transaction
}

func (f faultyTransaction) Renew(ctx context.Context, lease time.Duration) error {
	return f.faulty.do("Renew", func() error { return f.tx.Renew(ctx, lease) })
}

func (f faultyTransaction) Commit(ctx context.Context, a idempotency.Answer, retention time.Duration) error {
	return f.faulty.do("Commit", func() error { return f.tx.Commit(ctx, a, retention) })
}

func (f faultyTransaction) Rollback() error { return f.faulty.do("Rollback", f.tx.Rollback) }

// EveryStep runs a test of something that uses a store, such as a handler in a Middleware, with a fault at each step of its way. It
// calls test once without a fault, to see which steps there are, and then twice for each step in a subtest: the step fails
// once, as when a connection is lost, and the step and all that come after it fail, which is what a process that crashes
// there looks like from the store. test gives fail to a [Faulty], sends its requests until they are
// answered, and looks at the effects. What never is answered, since the store is gone for good, goes to a second handler on
// the Store itself, as to the next process:
//
//	storetest.EveryStep(t, func(t *testing.T, fail func(storetest.Step) error) {
//		store := &idempotency.Memory{}
//		crashing := handler(storetest.Faulty{Store: store, Fail: fail})
//		…
//	})
//
// The steps should come in the same order each time.
func EveryStep(t *testing.T, test func(t *testing.T, fail func(Step) error)) {
	t.Helper()
	var mu sync.Mutex
	var steps []Step
	test(t, func(s Step) error {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, s)
		return nil
	})
	mu.Lock()
	steps = slices.Clone(steps)
	mu.Unlock()
	for i, s := range steps {
		for _, mode := range []struct {
			name string
			fail func(n int) bool
		}{
			{"fails once", func(n int) bool { return n == i }},
			{"and all that follows fail", func(n int) bool { return n >= i }},
		} {
			t.Run(fmt.Sprintf("%d %v %s", i+1, s, mode.name), func(t *testing.T) {
				n := -1
				test(t, func(Step) error {
					mu.Lock()
					defer mu.Unlock()
					if n++; mode.fail(n) {
						return ErrFault
					}
					return nil
				})
			})
		}
	}
}

var faultChecks = []check{
	{name: "a fault at any step is cured by asking again", run: func(s *trial) {
		for _, end := range []string{"Complete", "Release", "Suspend"} {
			for fault := range 6 { // before and after each of three calls
				n := -1
				s.survives(end, Faulty{Store: s.store, Fail: func(Step) error {
					if n++; n == fault {
						return ErrFault
					}
					return nil
				}})
			}
		}
	}},
}

// survives makes a run on a store that fails once, does what may be done about it, and looks at what became of the key.
func (s *trial) survives(end string, store idempotency.Store) {
	s.Helper()
	c := lasting(reexecutable(), over, time.Hour)
	claimed, err := store.Claim(s.Context(), c)
	if err != nil {
		c = again(c)
		claimed, err = store.Claim(s.Context(), c)
	}
	s.must("Claim after a fault", err)
	if v := claimed.Verdict; v != idempotency.ClaimWon && v != idempotency.ClaimStolen {
		s.Fatalf("Claim after a fault = %s, want a key that is taken", v)
	}
	t, a := c.Ticket(claimed.Generation), answer()
	calls := map[string]func() error{
		"Renew":    func() error { return store.Renew(s.Context(), t, time.Minute) },
		"Complete": func() error { return store.Complete(s.Context(), t, a, time.Hour) },
		"Release":  func() error { return store.Release(s.Context(), t) },
		"Suspend":  func() error { return store.Suspend(s.Context(), t) },
	}
	for _, call := range []string{"Renew", end} {
		err := calls[call]()
		if errors.Is(err, ErrFault) {
			err = calls[call]()
			if call == "Release" && errors.Is(err, idempotency.ErrFenced) {
				err = nil // it was done
			}
		}
		s.must(call+" after a fault", err)
	}
	switch end {
	case "Complete":
		s.replays(c, a, "after a fault")
	case "Release":
		s.expect(another(c), idempotency.ClaimWon, "after a fault and a release")
	case "Suspend":
		s.expect(again(c), idempotency.ClaimUnknown, "after a fault and Suspend")
	}
}
