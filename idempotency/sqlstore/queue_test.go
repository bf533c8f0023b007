package sqlstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWritersGetTheirTurnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		leave, err := q.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 5 {
			go func() {
				leave, _ := q.enter(t.Context())
				order = append(order, i)
				leave()
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		for i, got := range order {
			if got != i {
				t.Errorf("they entered in the order %v", order)
			}
		}
		if len(order) != 5 {
			t.Errorf("%d entered, want 5", len(order))
		}
	})
}

// Who holds the turn may be waiting for who stands in the queue.
func TestAWriterDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		first, _ := q.enter(t.Context())
		began := time.Now()
		second, err := q.enter(t.Context())
		if waited := time.Since(began); err != nil || waited != patience {
			t.Errorf("enter: %v after %v, want it to go on after %v", err, waited, patience)
		}
		second()
		first()
		if leave, err := q.enter(t.Context()); err != nil || time.Since(began) != patience {
			t.Errorf("enter when all have left: %v, want no wait", err)
		} else {
			leave()
		}
	})
}

func TestAWriterLeavesWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		leave, _ := q.enter(t.Context())
		defer leave()
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		defer cancel()
		if _, err := q.enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("enter: %v, want the end of its context", err)
		}
	})
}
