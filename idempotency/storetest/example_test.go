package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/storetest"
)

// The test of a store of your own.
func ExampleRun() {
	_ = func(t *testing.T) {
		storetest.Run(t, func(testing.TB) idempotency.Store { return &idempotency.Memory{} })
	}
}

// The test of a store that is a Transactor.
func ExampleRunTransactions() {
	var open func(testing.TB) idempotency.Transactor // an empty database
	var insert func(context.Context) error           // a row, through the transaction of the context
	var rows func(testing.TB) int
	_ = func(t *testing.T) {
		storetest.RunTransactions(t, func(t testing.TB) (idempotency.Transactor, storetest.Effects) {
			return open(t), storetest.Effects{Write: insert, Count: rows}
		})
	}
}

// A store that loses the connection when the first run is over, so that the caller does not know whether it was recorded.
func ExampleFaulty() {
	lost := errors.New("connection reset")
	store := storetest.Faulty{Store: &idempotency.Memory{}, Fail: func(s storetest.Step) error {
		if s.Call == "Complete" && s.After && lost != nil {
			defer func() { lost = nil }()
			return lost
		}
		return nil
	}}
	ctx := context.Background()
	claim := idempotency.Claim{Fingerprint: []byte("request"), Owner: idempotency.Owner{1}, Lease: time.Minute, Retention: time.Hour}
	claimed, _ := store.Claim(ctx, claim)
	ticket := claim.Ticket(claimed.Generation)
	fmt.Println(store.Complete(ctx, ticket, idempotency.Answer{Status: 201}, time.Hour))
	fmt.Println(store.Complete(ctx, ticket, idempotency.Answer{Status: 201}, time.Hour))
	// Output:
	// connection reset
	// <nil>
}

// Whatever step a crash comes at, the effect is there at most once.
func ExampleEveryStep() {
	_ = func(t *testing.T) {
		storetest.EveryStep(t, func(t *testing.T, fail func(storetest.Step) error) {
			charges := 0
			charge := func(store idempotency.Store) error { // for a handler in a Middleware
				claim := idempotency.Claim{Fingerprint: []byte("request"), Lease: time.Minute, Retention: time.Hour}
				claimed, err := store.Claim(t.Context(), claim)
				if err != nil || claimed.Verdict != idempotency.ClaimWon {
					return err
				}
				charges++
				return store.Complete(t.Context(), claim.Ticket(claimed.Generation), idempotency.Answer{Status: 201}, time.Hour)
			}
			store := &idempotency.Memory{}
			for range 3 {
				if charge(storetest.Faulty{Store: store, Fail: fail}) == nil {
					break
				}
			}
			charge(store) // the next process
			if charges > 1 {
				t.Errorf("charged %d times", charges)
			}
		})
	}
}
