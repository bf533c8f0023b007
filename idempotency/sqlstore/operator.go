package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// List implements [idempotency.Operator].
func (s *Store) List(ctx context.Context, f idempotency.Filter) ([]idempotency.Record, error) {
	query := s.list
	if f.Stuck {
		query = s.stuck
	}
	rows, err := s.db.QueryContext(ctx, query, f.After[:], cmp.Or(f.Limit, 100))
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list: %w", err)
	}
	defer rows.Close()
	var records []idempotency.Record
	for rows.Next() {
		var r row
		if err := rows.Scan(r.targets()...); err != nil {
			return nil, fmt.Errorf("sqlstore: list: %w", err)
		}
		record, err := r.record()
		if err != nil {
			return nil, err
		}
		if record.Answer != nil {
			record.Answer.Header = nil // it was not read
		}
		records = append(records, record)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: list: %w", err)
	}
	return records, nil
}

// Show implements [idempotency.Operator].
func (s *Store) Show(ctx context.Context, id idempotency.ID) (idempotency.Record, error) {
	r, err := s.find(ctx, id)
	if errors.Is(err, idempotency.ErrNotFound) {
		return idempotency.Record{}, err
	}
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("sqlstore: show: %w", err)
	}
	return r.record()
}

// Resolve implements [idempotency.Operator]. A run that holds its key by an open transaction is not over, whatever became
// of its lease: ErrSettled on PostgreSQL, while SQLite waits for the transaction.
func (s *Store) Resolve(ctx context.Context, id idempotency.ID, a *idempotency.Answer, retention time.Duration) error {
	query, args := s.free, []any{id[:]}
	if a != nil {
		var owner idempotency.Owner // nobody's, so that the run has lost the key
		query, args = s.settle, append([]any{id[:], owner[:]}, answerArgs(*a, retention)...)
	}
	var n int64
	err := retry(ctx, func() (err error) {
		n, err = s.exec(ctx, query, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlstore: resolve: %w", err)
	}
	if n == 1 {
		return nil
	}
	_, err = s.find(ctx, id)
	switch {
	case err == nil:
		return idempotency.ErrSettled
	case errors.Is(err, idempotency.ErrNotFound):
		return err
	}
	return fmt.Errorf("sqlstore: resolve: %w", err)
}

// Reap implements [idempotency.Operator].
func (s *Store) Reap(ctx context.Context, limit int) (deleted int, err error) {
	var n int64
	err = retry(ctx, func() (err error) {
		n, err = s.exec(ctx, s.reap, limit)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sqlstore: reap: %w", err)
	}
	return int(n), nil
}

// reapLimit is how many records one statement deletes: few enough that it holds no lock for long.
const reapLimit = 500

// ReapEvery deletes what nobody needs, again and again until ctx ends, with about the interval in between. Every process may do
// it: the intervals are spread, and no two wait for each other's records. While the database cannot be asked, it tries on.
// The error is the cause of ctx's end, together with that of the database if the last attempt failed; who wants to hear of each failure
// calls Reap by a timer of their own. It panics if the interval is not above zero.
func (s *Store) ReapEvery(ctx context.Context, interval time.Duration) error {
	if interval <= 0 {
		panic("sqlstore: ReapEvery needs an interval above zero")
	}
	var last error
	for {
		// Between a half and one and a half intervals, so that processes started together do not reap together.
		wait := time.NewTimer(interval/2 + time.Duration(mathrand.Float64()*float64(interval)))
		select {
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(context.Cause(ctx), last)
		case <-wait.C:
		}
		last = s.reapAll(ctx)
	}
}

func (s *Store) reapAll(ctx context.Context) error {
	for {
		n, err := s.Reap(ctx, reapLimit)
		if ctx.Err() != nil {
			return nil // the end, and no failure
		}
		if err != nil || n < reapLimit {
			return err
		}
	}
}
