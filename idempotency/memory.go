package idempotency

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Memory keeps records in memory: for tests, for one process whose keys may be forgotten when it ends, and nothing else. A
// second process with a Memory of its own runs each request once more. It is a Store and an Operator. The zero Memory
// is ready to use; it must not be copied. All methods may be called by many goroutines at once.
//
// It holds no more than it may, and nobody has to reap it: a completed record goes when its retention is over, or before if the room is
// needed, the one first whose retention ends first. A key that is held or unknown is never forgotten: if there are only
// such, Claim returns ErrFull. An answer for which there is no room is kept as a tombstone: that the request was run is not
// forgotten either.
//
// Its clock is the monotonic one of the process.
type Memory struct {
	// MaxEntries bounds the keys. Zero means 100,000.
	MaxEntries int

	// MaxBytes bounds what is held: 512 bytes for each key, and of each answer the body and the names and values of its
	// header. Zero means 64 MiB.
	MaxBytes int64

	entries atomic.Int64 // counted before the key is in, so that the bounds hold at every moment
	answers atomic.Int64 // bytes, counted likewise
	swept   atomic.Int64 // when dead keys were last looked for, without which Claim would do it for each key that it refuses
	shards  [memoryShards]memoryShard
}

const (
	memoryKeyBytes  = 512
	maxFingerprint  = 64
	sweepEvery      = int64(time.Second)
	noEnd           = math.MaxInt64
	defaultEntries  = 100_000
	defaultMaxBytes = 64 << 20
)

var errFingerprint = errors.New("idempotency: a fingerprint has 1 to 64 bytes")

// Claim takes a key that is free, or tells what stands in the way. It returns ErrFull if there is no room for the key.
func (m *Memory) Claim(ctx context.Context, c Claim) (Claimed, error) {
	if ctx.Err() != nil {
		return Claimed{}, context.Cause(ctx)
	}
	if len(c.Fingerprint) == 0 || len(c.Fingerprint) > maxFingerprint {
		return Claimed{}, errFingerprint
	}
	s := m.shard(c.ID)
	for counted := false; ; {
		now := clock()
		s.mu.Lock()
		if r := s.records[c.ID]; r != nil {
			claimed, kept := s.judge(m, r, &c, now)
			s.mu.Unlock()
			if counted {
				m.entries.Add(-1)
			}
			if claimed.Verdict == ClaimReplay {
				claimed.Answer = kept.answer()
			}
			return claimed, nil
		}
		if !counted {
			m.entries.Add(1)
			counted = true
		}
		if !m.over() {
			s.put(newRecord(&c, 1, now))
			s.mu.Unlock()
			return Claimed{Verdict: ClaimWon, Generation: 1}, nil
		}
		s.mu.Unlock()
		if !m.evict(now) {
			m.entries.Add(-1)
			return Claimed{}, ErrFull
		}
	}
}

// Renew lets the lease of a key end that much from now, and its retention not before that.
func (m *Memory) Renew(ctx context.Context, t Ticket, lease time.Duration) error {
	return m.withHeld(ctx, t, func(_ *memoryShard, r *memoryRecord) {
		r.lease = later(clock(), lease)
		r.end = max(r.end, r.lease)
	})
}

// Release makes the key free.
func (m *Memory) Release(ctx context.Context, t Ticket) error {
	return m.withHeld(ctx, t, func(s *memoryShard, r *memoryRecord) { s.drop(m, r) })
}

// Suspend marks the key as unknown, until it is resolved.
func (m *Memory) Suspend(ctx context.Context, t Ticket) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := m.shard(t.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[t.ID]
	if !r.held(t, StateInProgress) && !r.held(t, StateUnknown) {
		return ErrFenced
	}
	r.state = StateUnknown
	return nil
}

func (m *Memory) withHeld(ctx context.Context, t Ticket, do func(*memoryShard, *memoryRecord)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := m.shard(t.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[t.ID]
	if !r.held(t, StateInProgress) {
		return ErrFenced
	}
	do(s, r)
	return nil
}

// Complete keeps the answer for as long as retention from now, as a tombstone if there is no room for it.
func (m *Memory) Complete(ctx context.Context, t Ticket, a Answer, retention time.Duration) error {
	return m.complete(ctx, t.ID, a, retention, func(r *memoryRecord, _ int64) error {
		switch {
		case r.held(t, StateInProgress):
			return nil
		case r.held(t, StateCompleted):
			return errDone
		}
		return ErrFenced
	})
}

// errDone is what complete's may says of a record that is as it should be.
var errDone = errors.New("done already")

// complete keeps an answer if may allows it, which may change the record and is asked again after room was made.
func (m *Memory) complete(ctx context.Context, id ID, a Answer, retention time.Duration, may func(*memoryRecord, int64) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	kept := keep(a)
	if kept.size() > m.maxBytes()-memoryKeyBytes {
		kept = kept.tombstone()
	}
	s := m.shard(id)
	for counted := false; ; {
		now := clock()
		s.mu.Lock()
		r := s.records[id]
		if err := may(r, now); err != nil {
			s.mu.Unlock()
			if counted {
				m.answers.Add(-kept.size())
			}
			if err == errDone {
				return nil
			}
			return err
		}
		if !counted {
			m.answers.Add(kept.size())
			counted = true
		}
		if kept.size() == 0 || !m.over() {
			s.settle(m, r, kept, later(now, retention), now)
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		if !m.evict(now) {
			m.answers.Add(-kept.size())
			kept = kept.tombstone()
		}
	}
}

func (m *Memory) maxBytes() int64 { return cmp.Or(m.MaxBytes, defaultMaxBytes) }

// over reports whether more is counted than there may be.
func (m *Memory) over() bool {
	entries := m.entries.Load()
	return entries > int64(cmp.Or(m.MaxEntries, defaultEntries)) || entries*memoryKeyBytes+m.answers.Load() > m.maxBytes()
}

// evict drops the completed record whose retention ends first, and reports whether there was one. If there is none, it looks for keys
// whose runs are dead.
func (m *Memory) evict(now int64) bool {
	for {
		first, end := -1, int64(noEnd)
		for i := range m.shards {
			if e := m.shards[i].firstEnd(); e < end {
				first, end = i, e
			}
		}
		if first < 0 {
			return m.sweep(now)
		}
		s := &m.shards[first]
		s.mu.Lock()
		dropped := s.dropFirst(m, end)
		s.mu.Unlock()
		if dropped {
			return true
		}
	}
}

// sweep drops the keys whose runs are dead, and reports whether there were any.
func (m *Memory) sweep(now int64) bool {
	last := m.swept.Load()
	if last != 0 && now-last < sweepEvery || !m.swept.CompareAndSwap(last, now) {
		return false
	}
	return m.reap(math.MaxInt, now) > 0
}

// began is what the clock counts from.
var began = time.Now()

// clock returns the monotonic time in nanoseconds.
func clock() int64 { return int64(time.Since(began)) }

// later returns the time that is d after now. More than a century away is for ever.
func later(now int64, d time.Duration) int64 {
	const century = 100 * 365 * 24 * time.Hour
	return now + int64(min(max(d, -century), century))
}
