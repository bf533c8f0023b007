package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// Renew implements [idempotency.Store].
func (s *Store) Renew(ctx context.Context, t idempotency.Ticket, lease time.Duration) error {
	return s.end(ctx, "renew", s.renew, t, micros(lease))
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	err := s.end(ctx, "complete", s.complete, t, answerArgs(a, retention)...)
	if !errors.Is(err, idempotency.ErrFenced) {
		return err
	}
	// It may be fenced because it was done before, and the news was lost.
	r, readErr := s.find(ctx, t.ID)
	if errors.Is(readErr, idempotency.ErrNotFound) {
		return err
	}
	if readErr != nil {
		return fmt.Errorf("sqlstore: complete: %w", readErr)
	}
	if r.is(idempotency.StateCompleted) && r.heldBy(t) {
		return nil
	}
	return err
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, t idempotency.Ticket) error {
	return s.end(ctx, "release", s.release, t)
}

// Suspend implements [idempotency.Store].
func (s *Store) Suspend(ctx context.Context, t idempotency.Ticket) error {
	return s.end(ctx, "suspend", s.suspend, t)
}

// end runs a query that is for who holds the ticket only.
func (s *Store) end(ctx context.Context, what, query string, t idempotency.Ticket, args ...any) error {
	args = append([]any{t.ID[:], t.Owner[:], t.Generation}, args...)
	var n int64
	err := retry(ctx, func() (err error) {
		n, err = s.exec(ctx, query, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlstore: %s: %w", what, err)
	}
	if n == 0 {
		return idempotency.ErrFenced
	}
	return nil
}

// find reads a record. The error is as the database gave it, or ErrNotFound.
func (s *Store) find(ctx context.Context, id idempotency.ID) (r *row, err error) {
	err = retry(ctx, func() error {
		r = new(row)
		return s.row(ctx, r, s.read, id[:])
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, idempotency.ErrNotFound
	}
	return r, err
}

func answerArgs(a idempotency.Answer, retention time.Duration) []any {
	body := a.Body
	if body == nil {
		body = []byte{}
	}
	return []any{a.Status, a.Tombstone, encodeHeader(a.Header), body, micros(retention)}
}
