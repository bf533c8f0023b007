package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/riprap-go/riprap/idempotency"
)

// Claim implements [idempotency.Store]. A duplicate takes no lock and waits for none. A run that lets its lease run out while
// its transaction is open holds the key by that: PostgreSQL says ClaimInFlight, SQLite lets the claim wait for
// the transaction's end, as every writer.
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Claimed, error) {
	var last *row
	for n := range attempts {
		r, err := s.see(ctx, c)
		if conflict(err) {
			pause(ctx, n)
			continue
		}
		if err != nil {
			return idempotency.Claimed{}, fmt.Errorf("sqlstore: claim: %w", err)
		}
		if r.won {
			return idempotency.Claimed{Verdict: idempotency.ClaimWon, Generation: 1}, nil
		}
		if !r.exists() {
			continue // it was taken or released while we looked
		}
		if bytes.Equal(r.owner, c.Owner[:]) && r.is(idempotency.StateInProgress) {
			// We took it, and a connection was lost with the news.
			return idempotency.Claimed{Verdict: idempotency.ClaimWon, Generation: r.generation.V}, nil
		}
		verdict := r.judge(c)
		if verdict != idempotency.ClaimWon && verdict != idempotency.ClaimStolen {
			return claimed(verdict, r)
		}
		if last != nil && last.unchanged(r) {
			// It was ours to take, nobody else did, and yet we could not: its row is locked by the run that holds it.
			return claimed(idempotency.ClaimInFlight, r)
		}
		last = r
		taken, err := s.exec(ctx, s.take, c.ID[:], c.Fingerprint, text(c.Operation), c.Owner[:], c.Reexecute, micros(c.Lease),
			micros(c.Retention), r.state.V, r.owner, r.generation.V, r.lease.V, r.expires.V)
		if err != nil && !conflict(err) {
			return idempotency.Claimed{}, fmt.Errorf("sqlstore: claim: %w", err)
		}
		if taken == 1 {
			return idempotency.Claimed{Verdict: verdict, Generation: r.generation.V + 1}, nil
		}
		if s.dialect == postgresql {
			// Somebody changed the record, or has it locked. A reaper is waited for: with it the record goes.
			if _, err := s.exec(ctx, s.linger, c.ID[:]); err != nil && !conflict(err) {
				return idempotency.Claimed{}, fmt.Errorf("sqlstore: claim: %w", err)
			}
		}
	}
	return idempotency.Claimed{}, fmt.Errorf("sqlstore: claim: the key changed hands %d times while it was claimed", attempts)
}

// see takes a key that has no record, or reads it.
func (s *Store) see(ctx context.Context, c idempotency.Claim) (*row, error) {
	r := new(row)
	claim := []any{c.ID[:], c.Fingerprint, text(c.Operation), c.Owner[:], c.Reexecute, micros(c.Lease), micros(c.Retention)}
	if s.dialect == postgresql {
		return r, s.row(ctx, r, s.claim, claim...)
	}
	// Reading takes no lock that a writer holds, and inserting would wait for a handler's transaction.
	err := s.row(ctx, r, s.read, c.ID[:])
	if !errors.Is(err, sql.ErrNoRows) {
		return r, err
	}
	n, err := s.exec(ctx, s.insert, claim...)
	r.won = n == 1
	return r, err
}

func claimed(v idempotency.Verdict, r *row) (c idempotency.Claimed, err error) {
	c.Verdict = v
	switch v {
	case idempotency.ClaimInFlight:
		c.Age = max(0, duration(r.now-r.begun.V))
		c.Lease = max(0, r.leaseLeft())
	case idempotency.ClaimReplay:
		c.Answer, err = r.answer()
	}
	return c, err
}

// text makes a string that PostgreSQL takes as text.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
