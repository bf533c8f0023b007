package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A model is a store as plain as can be, which keeps the contract unless it has a bug.
type model struct {
	bug string

	mu      sync.Mutex
	records map[idempotency.ID]*row
}

type row struct {
	claim             idempotency.Claim
	state             idempotency.State
	generation        int64
	begun, lease, end time.Time
	answer            idempotency.Answer
	locked            bool // by a transaction
}

func (m *model) has(bug string) bool { return m.bug == bug }

// yields lets others in between where a store that is not atomic would, and leaves them the time to come.
func (m *model) yields(bug string) {
	if m.has(bug) {
		m.mu.Unlock()
		<-time.After(time.Millisecond)
		m.mu.Lock()
	}
}

func (m *model) after(d time.Duration) time.Time {
	switch {
	case m.has("the longest duration overflows") && d > 1<<62:
		d = -1
	case m.has("the shortest duration overflows") && d < -1<<62:
		d = 1 << 62
	case m.has("no duration is for ever") && d == 0:
		d = time.Hour
	}
	return time.Now().Add(d)
}

func (m *model) past(t time.Time) bool { return !t.After(time.Now()) }

func (m *model) over(r *row) bool {
	switch r.state {
	case idempotency.StateCompleted:
		return m.past(r.end) && !m.has("answers are kept for ever")
	case idempotency.StateInProgress:
		if m.has("a dead run is never over") {
			return false
		}
		return m.past(r.end) &&
			(m.past(r.lease) || m.has("a retention ends a live lease")) &&
			(r.claim.Reexecute || m.has("a run that must not run again is over"))
	}
	return false
}

func (m *model) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Claimed, error) {
	if ctx.Err() != nil && !m.has("contexts are ignored") && !m.has("Claim looks at the context too late") {
		return idempotency.Claimed{}, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.bug {
	case "IDs are cut":
		c.ID[len(c.ID)-1] = 0
	case "fingerprints are cut":
		c.Fingerprint = c.Fingerprint[:min(len(c.Fingerprint), 32)]
	case "an operation has 100 bytes":
		if len(c.Operation) > 100 {
			return idempotency.Claimed{}, context.DeadlineExceeded
		}
	}
	if !m.has("a fingerprint is shared") {
		c.Fingerprint = bytes.Clone(c.Fingerprint)
	}
	r := m.records[c.ID]
	m.yields("looks up, then creates")
	generation, verdict := int64(1), idempotency.ClaimWon
	if r != nil {
		verdict = m.judge(r, c)
		if r.locked && verdict <= idempotency.ClaimStolen && !m.has("an open transaction is overtaken") {
			verdict = idempotency.ClaimInFlight
		}
		switch verdict {
		case idempotency.ClaimWon, idempotency.ClaimStolen:
			m.yields("looks up, then steals")
			if generation = r.generation + 1; m.has("a theft keeps the generation") {
				generation--
			}
		case idempotency.ClaimReplay:
			a := m.copied(r.answer, "an answer is shared on its way out")
			return idempotency.Claimed{Verdict: verdict, Answer: a}, nil
		case idempotency.ClaimInFlight:
			return idempotency.Claimed{Verdict: verdict, Age: time.Since(r.begun), Lease: time.Until(r.lease)}, nil
		default:
			if m.has("whoever asks holds the key") {
				r.claim.Owner = c.Owner
			}
			return idempotency.Claimed{Verdict: verdict}, nil
		}
	}
	if m.has("nothing is won") {
		return idempotency.Claimed{Verdict: idempotency.ClaimInFlight, Lease: time.Second}, nil
	}
	if m.has("a generation is zero") {
		generation = 0
	}
	taken := &row{claim: c, state: idempotency.StateInProgress, generation: generation, begun: time.Now(), lease: m.after(c.Lease), end: m.after(c.Retention)}
	if m.has("an old answer shines through") && r != nil {
		taken.answer = r.answer
	}
	m.records[c.ID] = taken
	if m.has("Claim looks at the context too late") && ctx.Err() != nil {
		return idempotency.Claimed{}, ctx.Err()
	}
	if m.has("a cancelled claim has no owner") && m.interrupted(ctx) {
		taken.claim.Owner = idempotency.Owner{}
		return idempotency.Claimed{}, ctx.Err()
	}
	return idempotency.Claimed{Verdict: verdict, Generation: generation}, nil
}

// interrupted gives a context a millisecond to end.
func (m *model) interrupted(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(time.Millisecond):
		return false
	}
}

func (m *model) judge(r *row, c idempotency.Claim) idempotency.Verdict {
	mismatch := !bytes.Equal(r.claim.Fingerprint, c.Fingerprint)
	live := !m.past(r.lease)
	steals := r.claim.Reexecute && c.Reexecute
	switch m.bug {
	case "a key has no fingerprint":
		mismatch = false
	case "held keys are won":
		if r.state == idempotency.StateInProgress && live {
			return idempotency.ClaimWon
		}
	case "a mismatch is looked for too late":
		mismatch = mismatch && r.state == idempotency.StateCompleted
	case "a mismatch is looked for before the retention":
		if mismatch {
			return idempotency.ClaimMismatch
		}
	case "a mismatch steals":
		mismatch = mismatch && (live || !steals)
	case "a lease is for ever":
		live = true
	case "nothing is stolen":
		steals = false
	case "everything is stolen":
		steals = true
	case "the thief decides":
		steals = c.Reexecute
	case "the robbed one decides":
		steals = r.claim.Reexecute
	}
	switch {
	case m.over(r):
		return idempotency.ClaimWon
	case mismatch:
		return idempotency.ClaimMismatch
	case r.state == idempotency.StateCompleted:
		return idempotency.ClaimReplay
	case r.state == idempotency.StateUnknown:
		return idempotency.ClaimUnknown
	case live:
		return idempotency.ClaimInFlight
	case !steals:
		return idempotency.ClaimUnknown
	}
	return idempotency.ClaimStolen
}

// held returns the record that a ticket is for, if it is in a state.
func (m *model) held(t idempotency.Ticket, states ...idempotency.State) *row {
	if m.has("IDs are cut") {
		t.ID[len(t.ID)-1] = 0
	}
	r := m.records[t.ID]
	if r == nil {
		return nil
	}
	owner, generation := r.claim.Owner == t.Owner, r.generation == t.Generation
	switch m.bug {
	case "there is no fence":
		owner, generation = true, true
	case "the generation fences alone":
		owner = true
	case "the owner fences alone":
		generation = true
	case "a lease that is over is not held":
		if r.state == idempotency.StateInProgress && m.past(r.lease) {
			return nil
		}
	}
	for _, state := range states {
		if owner && generation && r.state == state {
			return r
		}
	}
	return nil
}

// do lets a ticket's method change the record that it holds.
func (m *model) do(ctx context.Context, t idempotency.Ticket, call string, change func(*row), states ...idempotency.State) error {
	late := m.has(call + " looks at the context too late")
	if ctx.Err() != nil && !m.has("contexts are ignored") && !late {
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	states = append(states, idempotency.StateInProgress)
	switch m.bug {
	case call + " after Complete":
		states = append(states, idempotency.StateCompleted)
	case call + " after Suspend":
		states = append(states, idempotency.StateUnknown)
	case call + " again is fenced":
		states = states[len(states)-1:]
	case call + " again is no error":
		if m.records[t.ID] == nil {
			return nil
		}
	case call + " does nothing":
		return nil
	}
	r := m.held(t, states...)
	if r == nil {
		return idempotency.ErrFenced
	}
	m.yields(call + " looks up, then changes")
	change(r)
	if late {
		return ctx.Err()
	}
	return nil
}

func (m *model) Renew(ctx context.Context, t idempotency.Ticket, lease time.Duration) error {
	return m.do(ctx, t, "Renew", func(r *row) {
		switch m.bug {
		case "Renew adds to the lease":
			r.lease = r.lease.Add(lease)
			return
		case "Renew keeps the longer lease":
			if r.lease.After(m.after(lease)) {
				return
			}
		case "Renew begins the run anew":
			r.begun = time.Now()
		}
		r.lease = m.after(lease)
		if r.end.Before(r.lease) && !m.has("Renew leaves the retention") || m.has("Renew cuts the retention") {
			r.end = r.lease
		}
	})
}

func (m *model) Complete(ctx context.Context, t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	var half bool
	err := m.do(ctx, t, "Complete", func(r *row) {
		if r.state == idempotency.StateCompleted && !m.has("Complete again overwrites") && !m.has("there is no fence") {
			return
		}
		r.state = idempotency.StateCompleted
		if m.has("a cancelled completion has no answer") && m.interrupted(ctx) {
			half = true
			return
		}
		if !(m.has("an old answer shines through") && len(a.Body) == 0) {
			r.answer = m.copied(m.spoiled(a), "an answer is shared on its way in")
		}
		if !m.has("an answer has the retention of its claim") {
			r.end = m.after(retention)
		}
	}, idempotency.StateCompleted)
	if half {
		return ctx.Err()
	}
	return err
}

func (m *model) Release(ctx context.Context, t idempotency.Ticket) error {
	return m.do(ctx, t, "Release", func(*row) { delete(m.records, t.ID) })
}

func (m *model) Suspend(ctx context.Context, t idempotency.Ticket) error {
	return m.do(ctx, t, "Suspend", func(r *row) {
		if r.state = idempotency.StateUnknown; m.has("a suspended key is free after its retention") {
			r.state = idempotency.StateInProgress
		}
	}, idempotency.StateUnknown)
}

func (m *model) copied(a idempotency.Answer, shared string) idempotency.Answer {
	if !m.has(shared) {
		a.Header, a.Body = a.Header.Clone(), bytes.Clone(a.Body)
	}
	return a
}

// spoiled returns an answer as a store keeps it that is not exact.
func (m *model) spoiled(a idempotency.Answer) idempotency.Answer {
	header := http.Header{}
	for name, values := range a.Header {
		for i, value := range values {
			switch {
			case m.has("header values are UTF-8"):
				value = strings.ToValidUTF8(value, "?")
			case m.has("a field has one value") && i > 0, m.has("empty fields are left out") && value == "":
				continue
			case m.has("header values are cut"):
				value = value[:min(len(value), 1<<10)]
			}
			if m.has("names are made canonical") {
				name = http.CanonicalHeaderKey(name)
			}
			header[name] = append(header[name], value)
		}
	}
	a.Header = header
	var compact bytes.Buffer
	switch {
	case m.has("bodies are UTF-8"):
		a.Body = bytes.ToValidUTF8(a.Body, []byte("?"))
	case m.has("bodies end with the last byte that is not zero"):
		a.Body = bytes.TrimRight(a.Body, "\x00")
	case m.has("bodies are JSON") && json.Compact(&compact, a.Body) == nil:
		a.Body = compact.Bytes()
	case m.has("bodies are cut"):
		a.Body = a.Body[:min(len(a.Body), 1<<20)]
	case m.has("a status is one of HTTP's") && http.StatusText(a.Status) == "":
		a.Status = http.StatusInternalServerError
	case m.has("tombstones are answers"):
		a.Tombstone = false
	case m.has("tombstones have no status") && a.Tombstone:
		a.Status = 0
	}
	return a
}
