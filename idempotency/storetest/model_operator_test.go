package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func (m *model) List(ctx context.Context, f idempotency.Filter) (list []idempotency.Record, err error) {
	if ctx.Err() != nil && !m.has("contexts are ignored") {
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(m.records), func(a, b idempotency.ID) int { return bytes.Compare(a[:], b[:]) })
	if m.has("List has no order") {
		slices.Reverse(ids)
	}
	limit := f.Limit
	switch {
	case limit == 0 && !m.has("List without a limit has 50"):
		limit = 100
	case limit == 0:
		limit = 50
	case m.has("List knows no limit"):
		limit = 1 << 20
	}
	skip := m.has("List skips a record between pages") && f.After != idempotency.ID{}
	for _, id := range ids {
		after := bytes.Compare(id[:], f.After[:]) > 0
		if m.has("List has the last record again") && id == f.After {
			after = true
		}
		r := m.records[id]
		if !after || f.Stuck && !m.stuck(r) || len(list) >= limit {
			continue
		}
		if skip {
			skip = false
			continue
		}
		shown := m.shown(r)
		if shown.Answer != nil && !m.has("List has whole answers") {
			shown.Answer.Header, shown.Answer.Body = nil, nil
		}
		list = append(list, shown)
	}
	return list, nil
}

// stuck reports whether a record waits for an operator.
func (m *model) stuck(r *row) bool {
	again := r.state == idempotency.StateInProgress && r.claim.Reexecute && m.past(r.lease) && !m.has("what runs again is stuck")
	return m.resolvable(r) && !again
}

// resolvable reports whether a record may be resolved.
func (m *model) resolvable(r *row) bool {
	switch {
	case m.has("everything is stuck"):
		return true
	case m.has("nothing is stuck but what is marked"):
		return r.state == idempotency.StateUnknown
	case m.has("a live key is stuck after its retention") && r.state == idempotency.StateInProgress && m.past(r.end):
		return true
	}
	return r.state == idempotency.StateUnknown || r.state == idempotency.StateInProgress && m.past(r.lease)
}

func (m *model) shown(r *row) idempotency.Record {
	shown := idempotency.Record{
		ID: r.claim.ID, State: r.state, Operation: r.claim.Operation, Owner: r.claim.Owner, Generation: r.generation, Reexecute: r.claim.Reexecute,
		Begun: r.begun, Lease: time.Until(r.lease), Retention: time.Until(r.end),
	}
	switch m.bug {
	case "records have no operation":
		shown.Operation = ""
	case "records have no beginning":
		shown.Begun = time.Time{}
	case "records have no lease":
		shown.Lease = 0
	case "records have no retention":
		shown.Retention = 0
	}
	if r.state == idempotency.StateCompleted {
		a := m.copied(r.answer, "")
		shown.Answer = &a
	}
	return shown
}

func (m *model) Show(ctx context.Context, id idempotency.ID) (idempotency.Record, error) {
	if ctx.Err() != nil && !m.has("contexts are ignored") {
		return idempotency.Record{}, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	if r == nil {
		if m.has("Show finds everything") {
			return idempotency.Record{}, nil
		}
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	shown := m.shown(r)
	if m.has("Show has no body") && shown.Answer != nil {
		shown.Answer.Body = nil
	}
	return shown, nil
}

func (m *model) Resolve(ctx context.Context, id idempotency.ID, a *idempotency.Answer, retention time.Duration) error {
	if ctx.Err() != nil && !m.has("contexts are ignored") {
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	switch {
	case r == nil && m.has("Resolve of no key is no error"):
		return nil
	case r == nil:
		return idempotency.ErrNotFound
	case !m.resolvable(r) && !m.has("Resolve ends a live run"):
		return idempotency.ErrSettled
	case m.has("Resolve does nothing"):
		return nil
	case a == nil:
		if m.has("Resolve without an answer marks the key") {
			r.state = idempotency.StateUnknown
			return nil
		}
		delete(m.records, id)
		return nil
	}
	m.yields("Resolve looks up, then changes")
	if !m.has("Resolve leaves the ticket good") {
		r.claim.Owner, r.generation = idempotency.Owner{}, r.generation+1
	}
	r.state, r.answer = idempotency.StateCompleted, m.copied(m.spoiled(*a), "")
	if r.end = m.after(retention); m.has("Resolve keeps an answer for ever") {
		r.end = m.after(1 << 62)
	}
	return nil
}

func (m *model) Reap(ctx context.Context, limit int) (deleted int, err error) {
	if ctx.Err() != nil && !m.has("contexts are ignored") {
		return 0, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Collect(maps.Keys(m.records)) {
		r := m.records[id]
		if r == nil {
			continue
		}
		over := m.over(r)
		switch m.bug {
		case "the reaper deletes what is unknown":
			over = over || m.past(r.end) && r.state == idempotency.StateUnknown
		case "the reaper deletes what may have had effects":
			over = over || m.past(r.end) && r.state == idempotency.StateInProgress && m.past(r.lease)
		case "the reaper deletes what is live":
			over = over || m.past(r.end) && r.state == idempotency.StateInProgress
		case "the reaper deletes what can be stolen":
			over = over || m.past(r.lease) && r.state == idempotency.StateInProgress && r.claim.Reexecute
		case "the reaper deletes nothing":
			over = false
		}
		if over && (deleted < limit || m.has("the reaper knows no limit")) {
			m.yields("the reaper looks up, then deletes")
			delete(m.records, id)
			deleted++
		}
	}
	return deleted, nil
}
