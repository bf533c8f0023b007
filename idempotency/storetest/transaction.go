package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// Effects are what handlers write through the transactions of a Transactor.
type Effects struct {
	// Write writes one effect through the transaction of a handler's context, and returns the error of that: ErrFenced if the
	// key was lost, and some error if there is no transaction to be had.
	Write func(context.Context) error

	// Count returns how many effects are there, as somebody else sees it: those of transactions that are open are not.
	Count func(testing.TB) int
}

// RunTransactions runs the part of the suite that is about transactions, besides Run. open returns a store without records
// and its effects, of which there are none, and closes it by Cleanup.
func RunTransactions(t *testing.T, open func(testing.TB) (idempotency.Transactor, Effects)) {
	for _, c := range slices.Concat(transactionChecks, lostTransactionChecks) {
		t.Run(c.name, func(t *testing.T) { c.run(newTransactionTrial(t, open)) })
	}
}

type transactionCheck struct {
	name string
	run  func(*transactionTrial)
}

type transactionTrial struct {
	trial
	transactor idempotency.Transactor
	effects    Effects
}

func newTransactionTrial(t testing.TB, open func(testing.TB) (idempotency.Transactor, Effects)) *transactionTrial {
	store, effects := open(t)
	return &transactionTrial{trial{t, store}, store, effects}
}

// begin takes a key and returns what the handler and the Middleware get.
func (s *transactionTrial) begin(c idempotency.Claim) (context.Context, idempotency.Transaction, idempotency.Ticket) {
	s.Helper()
	t := s.take(c)
	ctx, tx := s.transactor.Transact(s.Context(), t)
	s.Cleanup(func() { tx.Rollback() }) // of a check that failed, so that the store can be closed
	return ctx, tx, t
}

func (s *transactionTrial) write(ctx context.Context) {
	s.Helper()
	s.must("a write of the handler", s.effects.Write(ctx))
}

func (s *transactionTrial) count(want int, situation string) {
	s.Helper()
	if got := s.effects.Count(s); got != want {
		s.Fatalf("%d effects %s, want %d", got, situation, want)
	}
}

var transactionChecks = []transactionCheck{
	{"Commit keeps the effects and the answer", func(s *transactionTrial) {
		c := reexecutable()
		ctx, tx, _ := s.begin(c)
		s.write(ctx)
		s.write(ctx)
		s.count(0, "before Commit")
		a := idempotency.Answer{Status: 201, Header: map[string][]string{"Etag": {latin1(), "b"}}, Body: bytes.Repeat(everyByte(), 1<<12)}
		s.must("Commit", tx.Commit(s.Context(), a, time.Hour))
		s.count(2, "after Commit")
		s.replays(c, a, "after Commit")
	}},
	{"Rollback keeps neither, and the key is still held", func(s *transactionTrial) {
		c := reexecutable()
		ctx, tx, t := s.begin(c)
		s.write(ctx)
		s.must("Rollback", tx.Rollback())
		s.count(0, "after Rollback")
		s.expect(again(c), idempotency.ClaimInFlight, "after Rollback")
		s.must("Rollback again", tx.Rollback())
		s.must("Release", s.store.Release(s.Context(), t))
		s.expect(another(c), idempotency.ClaimWon, "after Rollback and Release")
	}},
	{"without a write Commit is Complete", func(s *transactionTrial) {
		c := reexecutable()
		_, tx, _ := s.begin(c)
		a := answer()
		s.must("Commit", tx.Commit(s.Context(), a, time.Hour))
		s.count(0, "after Commit without a write")
		s.replays(c, a, "after Commit without a write")
	}},
	{"Commit keeps the answer for its retention", func(s *transactionTrial) {
		for range 2 {
			c := reexecutable()
			ctx, tx, _ := s.begin(c)
			s.write(ctx)
			s.must("Commit", tx.Commit(s.Context(), answer(), over))
			s.expect(another(c), idempotency.ClaimWon, "after Commit with a retention that is over")
		}
		s.count(2, "of which the answers are over")
	}},
	{"to commit again asks once more and changes nothing", func(s *transactionTrial) {
		for _, writes := range []int{0, 1} {
			before := s.effects.Count(s)
			c := reexecutable()
			ctx, tx, _ := s.begin(c)
			for range writes {
				s.write(ctx)
			}
			first := answer()
			s.must("Commit", tx.Commit(s.Context(), first, time.Hour))
			s.must("Commit again", tx.Commit(s.Context(), answer(), over))
			s.count(before+writes, "after two commits")
			s.replays(c, first, "after two commits")
		}
	}},
	{"Rollback after Commit does nothing", func(s *transactionTrial) {
		c := reexecutable()
		ctx, tx, _ := s.begin(c)
		s.write(ctx)
		a := answer()
		s.must("Commit", tx.Commit(s.Context(), a, time.Hour))
		s.must("Rollback", tx.Rollback())
		s.count(1, "after Commit and Rollback")
		s.replays(c, a, "after Commit and Rollback")
	}},
	{"after its end the handler gets no transaction", func(s *transactionTrial) {
		for _, begun := range []bool{false, true} {
			for _, end := range []string{"Commit", "Rollback"} {
				before := s.effects.Count(s)
				ctx, tx, _ := s.begin(reexecutable())
				if begun {
					s.write(ctx)
				}
				if end == "Commit" {
					s.must("Commit", tx.Commit(s.Context(), answer(), time.Hour))
				} else {
					s.must("Rollback", tx.Rollback())
				}
				after := s.effects.Count(s)
				if err := s.effects.Write(ctx); err == nil {
					s.Errorf("a write after %s, begun before: %t, succeeded", end, begun)
				}
				if begun && end == "Commit" {
					before++
				}
				if after != before {
					s.Errorf("%d effects after %s, want %d", after, end, before)
				}
				s.count(after, "after a write that came too late")
			}
		}
	}},
	{"outside of a run there is no transaction", func(s *transactionTrial) {
		if err := s.effects.Write(s.Context()); err == nil {
			s.Error("a write without a run succeeded")
		}
		s.count(0, "without a run")
	}},
	{"Renew lets the handler's transaction be", func(s *transactionTrial) {
		c := lasting(reexecutable(), over, time.Hour)
		ctx, tx, _ := s.begin(c)
		s.must("Renew before the first write", tx.Renew(s.Context(), time.Minute))
		s.expect(again(c), idempotency.ClaimInFlight, "after Renew")
		s.write(ctx)
		s.must("Renew between writes", tx.Renew(s.Context(), time.Minute))
		s.write(ctx)
		s.must("Commit", tx.Commit(s.Context(), answer(), time.Hour))
		s.count(2, "after Renew and Commit")
	}},
	{"a run whose lease is over commits if nobody took the key", func(s *transactionTrial) {
		c := lasting(reexecutable(), over, over)
		ctx, tx, _ := s.begin(c)
		s.write(ctx)
		a := answer()
		s.must("Commit", tx.Commit(s.Context(), a, time.Hour))
		s.count(1, "after the lease")
		s.replays(c, a, "after the lease")
	}},
	{"a key is in flight for others while its transaction is open", func(s *transactionTrial) {
		c := reexecutable()
		ctx, tx, _ := s.begin(c)
		s.write(ctx)
		s.expect(again(c), idempotency.ClaimInFlight, "while the transaction is open")
		s.expect(another(c), idempotency.ClaimMismatch, "of another request while the transaction is open")
		s.must("Commit", tx.Commit(s.Context(), answer(), time.Hour))
	}},
	{"the transactions of many keys at once are all kept", func(s *transactionTrial) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				c := reexecutable()
				claimed, err := s.store.Claim(s.Context(), c)
				if err != nil {
					s.Errorf("Claim: %v", err)
					return
				}
				ctx, tx := s.transactor.Transact(s.Context(), c.Ticket(claimed.Generation))
				defer tx.Rollback()
				if err := s.effects.Write(ctx); err != nil {
					s.Errorf("a write of the handler: %v", err)
				}
				if err := tx.Commit(s.Context(), answer(), time.Hour); err != nil {
					s.Errorf("Commit: %v", err)
				}
			})
		}
		wg.Wait()
		s.count(8, "of 8 transactions at once")
	}},
}

var lostTransactionChecks = []transactionCheck{
	{"a run that was overtaken before it wrote is fenced off", func(s *transactionTrial) {
		c := lasting(reexecutable(), over, time.Hour)
		ctx, tx, _ := s.begin(c)
		next := lasting(again(c), time.Minute, time.Hour)
		t := s.take(next)
		if err := s.effects.Write(ctx); !errors.Is(err, idempotency.ErrFenced) {
			s.Errorf("the first write of a run that was overtaken = %v, want ErrFenced", err)
		}
		if err := tx.Renew(s.Context(), time.Hour); !errors.Is(err, idempotency.ErrFenced) {
			s.Errorf("Renew of a run that was overtaken = %v, want ErrFenced", err)
		}
		if err := tx.Commit(s.Context(), answer(), time.Hour); !errors.Is(err, idempotency.ErrFenced) {
			s.Errorf("Commit of a run that was overtaken = %v, want ErrFenced", err)
		}
		s.must("Rollback", tx.Rollback())
		s.count(0, "of a run that was overtaken")
		s.holds(t, next, "which was taken over")
	}},
	{"a run that was overtaken and wrote nothing keeps no answer", func(s *transactionTrial) {
		c := lasting(reexecutable(), over, time.Hour)
		_, tx, _ := s.begin(c)
		next := lasting(again(c), time.Minute, time.Hour)
		t := s.take(next)
		if err := tx.Commit(s.Context(), answer(), time.Hour); !errors.Is(err, idempotency.ErrFenced) {
			s.Errorf("Commit of a run that was overtaken = %v, want ErrFenced", err)
		}
		s.holds(t, next, "which was taken over")
	}},
	{"an open transaction is not overtaken", func(s *transactionTrial) {
		c := lasting(reexecutable(), over, time.Hour)
		ctx, tx, _ := s.begin(c)
		s.write(ctx)
		var claimed idempotency.Claimed
		thief := make(chan struct{})
		go func() { // it may wait until Commit, and it may fail
			defer close(thief)
			claimed, _ = s.store.Claim(s.Context(), lasting(again(c), time.Minute, time.Hour))
		}()
		select {
		case <-thief:
		case <-time.After(50 * time.Millisecond):
		}
		a := answer()
		committed := tx.Commit(s.Context(), a, time.Hour)
		<-thief
		stolen := claimed.Verdict == idempotency.ClaimStolen || claimed.Verdict == idempotency.ClaimWon
		if committed != nil || stolen {
			s.Fatalf("Commit = %v, and a claim at the same time = %s, want a commit and no theft", committed, claimed.Verdict)
		}
		s.count(1, "after a claim during the transaction")
		s.replays(c, a, "after a claim during the transaction")
	}},
	{"after Rollback a key whose lease is over can be taken", func(s *transactionTrial) {
		c := lasting(reexecutable(), over, time.Hour)
		ctx, tx, _ := s.begin(c)
		s.write(ctx)
		s.must("Rollback", tx.Rollback())
		next := lasting(again(c), time.Minute, time.Hour)
		s.expect(next, idempotency.ClaimStolen, "after the lease and Rollback")
		s.count(0, "after Rollback")
	}},
	{"a context that ended keeps nothing", func(s *transactionTrial) {
		c := reexecutable()
		t := s.take(c)
		run, cancel := context.WithCancel(s.Context())
		ctx, tx := s.transactor.Transact(run, t)
		s.Cleanup(func() { tx.Rollback() })
		s.write(ctx)
		cancel()
		if err := tx.Commit(run, answer(), time.Hour); err == nil {
			s.Error("Commit with an ended context succeeded")
		}
		s.must("Rollback", tx.Rollback())
		s.count(0, "after Commit with an ended context")
		s.holds(t, c, "after Commit with an ended context")
	}},
	{"a fault at any step leaves both or neither", func(s *transactionTrial) {
		for fault := range 6 { // before and after Claim, Renew and Commit
			before := s.effects.Count(s)
			n := -1
			store := Faulty{Store: s.store, Fail: func(Step) error {
				if n++; n == fault {
					return ErrFault
				}
				return nil
			}}.Transactor()
			c := lasting(reexecutable(), over, time.Hour)
			for try := 0; ; try++ {
				if try == 3 {
					s.Fatal("three runs failed after one fault")
				}
				c = again(c)
				a := answer()
				kept, err := s.runOnce(store, c, a)
				if err == nil {
					s.replays(c, kept, "after a fault")
					break
				}
				if !errors.Is(err, ErrFault) {
					s.Fatalf("a run after a fault: %v", err)
				}
			}
			s.count(before+1, "after a fault and another run")
		}
	}},
}

// runOnce is a Middleware in short: it claims, writes one effect and commits, or gets the answer of an earlier run.
func (s *transactionTrial) runOnce(store idempotency.Transactor, c idempotency.Claim, a idempotency.Answer) (idempotency.Answer, error) {
	claimed, err := store.Claim(s.Context(), c)
	if err != nil || claimed.Verdict == idempotency.ClaimReplay {
		return claimed.Answer, err
	}
	ctx, tx := store.Transact(s.Context(), c.Ticket(claimed.Generation))
	defer tx.Rollback()
	if err := tx.Renew(s.Context(), over); err != nil {
		return a, err
	}
	if err := s.effects.Write(ctx); err != nil {
		return a, err
	}
	return a, tx.Commit(s.Context(), a, time.Hour)
}
