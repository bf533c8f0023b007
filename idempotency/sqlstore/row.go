package sqlstore

import (
	"bytes"
	"database/sql"
	"math"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A row is a record as the database has it, or none.
type row struct {
	now int64
	won bool // the statement has inserted it

	id          []byte
	state       sql.Null[int64]
	fingerprint []byte
	operation   sql.Null[string]
	owner       []byte
	generation  sql.Null[int64]
	reexecute   sql.Null[bool]
	begun       sql.Null[int64]
	lease       sql.Null[int64]
	expires     sql.Null[int64]
	status      sql.Null[int64]
	tombstone   sql.Null[bool]
	header      []byte
	body        []byte
}

func (r *row) targets() []any {
	return []any{&r.now, &r.won, &r.id, &r.state, &r.fingerprint, &r.operation, &r.owner, &r.generation, &r.reexecute,
		&r.begun, &r.lease, &r.expires, &r.status, &r.tombstone, &r.header, &r.body}
}

func (r *row) exists() bool { return r.state.Valid }

func (r *row) is(s idempotency.State) bool { return r.state.V == int64(s) }

func (r *row) heldBy(t idempotency.Ticket) bool {
	return bytes.Equal(r.owner, t.Owner[:]) && r.generation.V == t.Generation
}

// leaseLeft is what is left of the lease, by the clock of the database.
func (r *row) leaseLeft() time.Duration { return duration(r.lease.V - r.now) }

func (r *row) retentionLeft() time.Duration { return duration(r.expires.V - r.now) }

// unchanged reports whether two rows are the same version of a record.
func (r *row) unchanged(other *row) bool {
	return r.state == other.state && bytes.Equal(r.owner, other.owner) && r.generation == other.generation &&
		r.lease == other.lease && r.expires == other.expires
}

// judge says what becomes of a claim that finds the row. ClaimWon and ClaimStolen are for the caller to take.
func (r *row) judge(c idempotency.Claim) idempotency.Verdict {
	leased, retained := r.leaseLeft() > 0, r.retentionLeft() > 0
	switch {
	case r.is(idempotency.StateCompleted) && !retained,
		r.is(idempotency.StateInProgress) && !leased && !retained && r.reexecute.V:
		return idempotency.ClaimWon
	case !bytes.Equal(r.fingerprint, c.Fingerprint):
		return idempotency.ClaimMismatch
	case r.is(idempotency.StateCompleted):
		return idempotency.ClaimReplay
	case r.is(idempotency.StateUnknown):
		return idempotency.ClaimUnknown
	case leased:
		return idempotency.ClaimInFlight
	case r.reexecute.V && c.Reexecute:
		return idempotency.ClaimStolen
	}
	return idempotency.ClaimUnknown
}

func (r *row) answer() (idempotency.Answer, error) {
	header, err := decodeHeader(r.header)
	if err != nil {
		return idempotency.Answer{}, err
	}
	return idempotency.Answer{Status: int(r.status.V), Header: header, Body: r.body, Tombstone: r.tombstone.V}, nil
}

func (r *row) record() (idempotency.Record, error) {
	rec := idempotency.Record{
		State:      idempotency.State(r.state.V),
		Operation:  r.operation.V,
		Generation: r.generation.V,
		Reexecute:  r.reexecute.V,
		Begun:      time.UnixMicro(r.begun.V).UTC(),
		Lease:      r.leaseLeft(),
		Retention:  r.retentionLeft(),
	}
	copy(rec.ID[:], r.id)
	copy(rec.Owner[:], r.owner)
	if !r.is(idempotency.StateCompleted) {
		return rec, nil
	}
	a, err := r.answer()
	rec.Answer = &a
	return rec, err
}

// The databases count microseconds. No sum of the clock and a duration overflows.

func micros(d time.Duration) int64 { return d.Microseconds() }

func duration(micros int64) time.Duration {
	const limit = int64(math.MaxInt64 / time.Microsecond)
	return time.Duration(min(max(micros, -limit), limit)) * time.Microsecond
}
