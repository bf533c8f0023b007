package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"
)

// List returns records in the order of their IDs.
func (m *Memory) List(ctx context.Context, f Filter) (list []Record, err error) {
	limit := cmp.Or(f.Limit, 100)
	for i := shardOf(f.After); i < memoryShards && len(list) < limit; i++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		list = append(list, m.shards[i].list(f, limit-len(list))...)
	}
	return list, nil
}

func (s *memoryShard) list(f Filter, limit int) []Record {
	now, wall := clock(), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*memoryRecord
	for _, r := range s.records {
		if bytes.Compare(r.id[:], f.After[:]) > 0 && (!f.Stuck || r.stuck(now)) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *memoryRecord) int { return bytes.Compare(a.id[:], b.id[:]) })
	var list []Record
	for _, r := range found[:min(limit, len(found))] {
		list = append(list, r.show(now, wall))
	}
	return list
}

// Show returns a record with its answer, or ErrNotFound.
func (m *Memory) Show(ctx context.Context, id ID) (Record, error) {
	if ctx.Err() != nil {
		return Record{}, context.Cause(ctx)
	}
	s := m.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if r == nil {
		return Record{}, ErrNotFound
	}
	shown := r.show(clock(), time.Now())
	if r.state == StateCompleted {
		answer := r.kept.answer()
		shown.Answer = &answer
	}
	return shown, nil
}

// show returns the record without header and body of its answer.
func (r *memoryRecord) show(now int64, wall time.Time) Record {
	shown := Record{
		ID:         r.id,
		State:      r.state,
		Operation:  r.operation,
		Owner:      r.owner,
		Generation: r.generation,
		Reexecute:  r.reexecute,
		Begun:      wall.Add(time.Duration(r.begun - now)),
		Lease:      time.Duration(r.lease - now),
		Retention:  time.Duration(r.end - now),
	}
	if r.state == StateCompleted {
		shown.Answer = &Answer{Status: r.kept.status, Tombstone: r.kept.buried}
	}
	return shown
}

// Resolve ends a record that is unknown, or in progress with its lease over.
func (m *Memory) Resolve(ctx context.Context, id ID, a *Answer, retention time.Duration) error {
	may := func(r *memoryRecord, now int64) error {
		switch {
		case r == nil:
			return ErrNotFound
		case !r.resolvable(now):
			return ErrSettled
		}
		r.owner, r.generation = Owner{}, r.generation+1 // whoever held it comes too late from now on
		return nil
	}
	if a != nil {
		return m.complete(ctx, id, *a, retention, may)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := m.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	if err := may(r, clock()); err != nil {
		return err
	}
	s.drop(m, r)
	return nil
}

// Reap deletes at most limit records that nobody needs. It need not be called: Memory does as much by itself when it needs the room.
func (m *Memory) Reap(ctx context.Context, limit int) (deleted int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return m.reap(limit, clock()), nil
}

func (m *Memory) reap(limit int, now int64) (deleted int) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for deleted < limit && s.dropFirst(m, now) {
			deleted++
		}
		for _, r := range s.records {
			if deleted >= limit {
				break
			}
			if r.over(now) { // its run is dead
				s.drop(m, r)
				deleted++
			}
		}
		s.mu.Unlock()
	}
	return deleted
}
