package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/storetest"
)

// tape is a Transactor that writes down what it is asked.
type tape struct{ calls []string }

func (s *tape) call(name string) error {
	s.calls = append(s.calls, name)
	return nil
}

func (s *tape) Claim(context.Context, idempotency.Claim) (idempotency.Claimed, error) {
	return idempotency.Claimed{Verdict: idempotency.ClaimWon, Generation: 1}, s.call("Claim")
}

func (s *tape) Renew(context.Context, idempotency.Ticket, time.Duration) error {
	return s.call("Renew")
}

func (s *tape) Complete(context.Context, idempotency.Ticket, idempotency.Answer, time.Duration) error {
	return s.call("Complete")
}
func (s *tape) Release(context.Context, idempotency.Ticket) error { return s.call("Release") }
func (s *tape) Suspend(context.Context, idempotency.Ticket) error { return s.call("Suspend") }

func (s *tape) Transact(ctx context.Context, _ idempotency.Ticket) (context.Context, idempotency.Transaction) {
	return ctx, tapeTransaction{s}
}

type tapeTransaction struct{ *tape }

func (s tapeTransaction) Renew(context.Context, time.Duration) error { return s.call("Renew") }
func (s tapeTransaction) Commit(context.Context, idempotency.Answer, time.Duration) error {
	return s.call("Commit")
}
func (s tapeTransaction) Rollback() error { return s.call("Rollback") }

// callsOf are all that a Transactor can be asked, its transaction's too.
func callsOf(ctx context.Context, s idempotency.Transactor) map[string]func() error {
	_, tx := s.Transact(ctx, idempotency.Ticket{})
	return map[string]func() error{
		"Claim": func() error {
			claimed, err := s.Claim(ctx, idempotency.Claim{})
			if (claimed.Verdict == idempotency.ClaimWon) != (err == nil) {
				return fmt.Errorf("verdict %d and %v", claimed.Verdict, err)
			}
			return err
		},
		"Renew":    func() error { return errors.Join(s.Renew(ctx, idempotency.Ticket{}, 0), tx.Renew(ctx, 0)) },
		"Complete": func() error { return s.Complete(ctx, idempotency.Ticket{}, idempotency.Answer{}, 0) },
		"Release":  func() error { return s.Release(ctx, idempotency.Ticket{}) },
		"Suspend":  func() error { return s.Suspend(ctx, idempotency.Ticket{}) },
		"Commit":   func() error { return tx.Commit(ctx, idempotency.Answer{}, 0) },
		"Rollback": func() error { return tx.Rollback() },
	}
}

func TestFaultyFailsBeforeOrAfterACall(t *testing.T) {
	for name := range callsOf(t.Context(), &tape{}) {
		for _, after := range []bool{false, true} {
			inner := &tape{}
			step := storetest.Step{Call: name, After: after}
			faulty := storetest.Faulty{Store: inner, Fail: func(s storetest.Step) error {
				if s == step {
					return storetest.ErrFault
				}
				return nil
			}}.Transactor()
			for called, call := range callsOf(t.Context(), faulty) {
				inner.calls = nil
				err := call()
				if want := called == name; errors.Is(err, storetest.ErrFault) != want || (err != nil) != want {
					t.Errorf("%s with a fault %v = %v", called, step, err)
				}
				if reached := slices.Contains(inner.calls, called); reached != (called != name || after) {
					t.Errorf("%s with a fault %v reached the store: %t", called, step, reached)
				}
			}
		}
	}
}

func TestFaultyWithoutFaultsIsTheStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) idempotency.Store { return storetest.Faulty{Store: &idempotency.Memory{}} })
}

func TestEveryStepFailsOnceAndForGood(t *testing.T) {
	var runs []string
	t.Run("steps", func(t *testing.T) {
		storetest.EveryStep(t, func(t *testing.T, fail func(storetest.Step) error) {
			run := ""
			for _, s := range []storetest.Step{{Call: "Claim"}, {Call: "Claim", After: true}, {Call: "Complete"}} {
				if fail(s) != nil {
					run += "x"
				} else {
					run += "."
				}
			}
			runs = append(runs, run)
		})
	})
	if want := []string{"...", "x..", "xxx", ".x.", ".xx", "..x", "..x"}; !slices.Equal(runs, want) {
		t.Errorf("the steps failed as %q, want %q", runs, want)
	}
}
