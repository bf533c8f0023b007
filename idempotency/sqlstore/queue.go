package sqlstore

import (
	"context"
	"time"
)

// SQLite has one writer at a time, and who waits for it asks again and again with longer and longer sleeps: writers get their turn
// late and out of order. So those of one Store line up here first. That is for speed and fairness alone: the lock is SQLite's,
// other processes know nothing of the queue, and who has stood in it for longer than patience goes on to wait as they do.
type queue chan struct{}

// patience is shorter than anybody waits for one step of a store: a handler that ended its transaction by itself still has the turn.
const patience = time.Second

// enter waits for the turn and returns how to give it away. A nil queue has no waiting.
func (q queue) enter(ctx context.Context) (leave func(), err error) {
	if q == nil {
		return func() {}, nil
	}
	leave = func() { <-q }
	select {
	case q <- struct{}{}:
		return leave, nil
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case q <- struct{}{}:
		return leave, nil
	case <-late.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
