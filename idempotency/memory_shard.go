package idempotency

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const memoryShards = 64 // a power of two; a shard holds a range of IDs, so that records are listed in order

// A memoryShard holds the records of a part of the IDs.
type memoryShard struct {
	mu      sync.Mutex
	records map[ID]*memoryRecord
	ends    endHeap // of completed records, and of such that are gone

	first atomic.Int64 // the first of ends plus one, zero if there is none: read without the lock
	_     [8]byte      // to 64 bytes, the line of a cache
}

func shardOf(id ID) int { return int(id[0]) / (256 / memoryShards) }

func (m *Memory) shard(id ID) *memoryShard { return &m.shards[shardOf(id)] }

// A memoryRecord is what is known of a key. It changes under the lock of its shard only; the data of an answer never does.
type memoryRecord struct {
	id             ID
	state          State // zero: it is gone
	reexecute      bool
	fingerprintLen uint8
	fingerprint    [maxFingerprint]byte
	owner          Owner
	generation     int64
	operation      string
	begun          int64 // these three by clock
	lease          int64 // when it is over
	end            int64 // of the retention
	kept           keptAnswer
}

func newRecord(c *Claim, generation, now int64) *memoryRecord {
	r := &memoryRecord{
		id:         c.ID,
		state:      StateInProgress,
		reexecute:  c.Reexecute,
		owner:      c.Owner,
		generation: generation,
		operation:  c.Operation,
		begun:      now,
		lease:      later(now, c.Lease),
		end:        later(now, c.Retention),
	}
	r.fingerprintLen = uint8(copy(r.fingerprint[:], c.Fingerprint))
	return r
}

// held reports whether the record, which may be nil, is in a state and the ticket's.
func (r *memoryRecord) held(t Ticket, state State) bool {
	return r != nil && r.state == state && r.owner == t.Owner && r.generation == t.Generation
}

// over reports whether nobody needs the record any more.
func (r *memoryRecord) over(now int64) bool {
	switch r.state {
	case StateCompleted:
		return r.end <= now
	case StateInProgress:
		return r.end <= now && r.lease <= now && r.reexecute
	}
	return false
}

// resolvable reports whether an operator may resolve the record.
func (r *memoryRecord) resolvable(now int64) bool {
	return r.state == StateUnknown || r.state == StateInProgress && r.lease <= now
}

// stuck reports whether an operator has to: nothing else ends the record.
func (r *memoryRecord) stuck(now int64) bool {
	return r.state == StateUnknown || r.resolvable(now) && !r.reexecute
}

// judge decides about a claim of a key of which there is a record.
func (s *memoryShard) judge(m *Memory, r *memoryRecord, c *Claim, now int64) (Claimed, keptAnswer) {
	verdict := ClaimStolen
	switch {
	case r.over(now):
		verdict = ClaimWon
	case !bytes.Equal(r.fingerprint[:r.fingerprintLen], c.Fingerprint):
		return Claimed{Verdict: ClaimMismatch}, keptAnswer{}
	case r.state == StateCompleted:
		return Claimed{Verdict: ClaimReplay}, r.kept
	case r.state == StateUnknown:
		return Claimed{Verdict: ClaimUnknown}, keptAnswer{}
	case r.lease > now:
		return Claimed{Verdict: ClaimInFlight, Age: time.Duration(now - r.begun), Lease: time.Duration(r.lease - now)}, keptAnswer{}
	case !r.reexecute || !c.Reexecute:
		return Claimed{Verdict: ClaimUnknown}, keptAnswer{}
	}
	m.forget(r)
	s.put(newRecord(c, r.generation+1, now))
	return Claimed{Verdict: verdict, Generation: r.generation + 1}, keptAnswer{}
}

// put adds a record, or replaces that of the same key.
func (s *memoryShard) put(r *memoryRecord) {
	if s.records == nil {
		s.records = make(map[ID]*memoryRecord)
	}
	s.records[r.id] = r
}

// drop deletes a record.
func (s *memoryShard) drop(m *Memory, r *memoryRecord) {
	delete(s.records, r.id)
	m.entries.Add(-1)
	m.forget(r)
}

// forget marks a record as gone and lets go of its answer, since ends may still know it.
func (m *Memory) forget(r *memoryRecord) {
	m.answers.Add(-r.kept.size())
	r.state, r.kept = 0, keptAnswer{}
}

// settle completes a record. It also drops up to two that are over: they go as fast as they come.
func (s *memoryShard) settle(m *Memory, r *memoryRecord, kept keptAnswer, end, now int64) {
	r.state, r.kept, r.end = StateCompleted, kept, end
	s.ends.push(end, r)
	for range 2 {
		if head := s.ends[0]; head.record.state == StateCompleted && head.at > now || !s.pop(m) {
			break
		}
	}
	s.publish()
}

// pop takes the first end away, with its record unless that is gone, and reports whether there are more.
func (s *memoryShard) pop(m *Memory) (more bool) {
	if r := s.ends.pop(); r.state == StateCompleted {
		s.drop(m, r)
	}
	return len(s.ends) > 0
}

// dropFirst drops the completed record whose retention ends first, unless that is after last, and reports whether it did.
func (s *memoryShard) dropFirst(m *Memory, last int64) bool {
	defer s.publish()
	for len(s.ends) > 0 && s.ends[0].at <= last {
		dropped := s.ends[0].record.state == StateCompleted
		s.pop(m)
		if dropped {
			return true
		}
	}
	return false
}

// publish tells firstEnd what ends first. No other order than that of the lock is needed: who reads looks again under it.
func (s *memoryShard) publish() {
	first := int64(0)
	if len(s.ends) > 0 {
		first = s.ends[0].at + 1
	}
	if s.first.Load() != first {
		s.first.Store(first)
	}
}

// firstEnd returns when the first retention ends, or noEnd.
func (s *memoryShard) firstEnd() int64 {
	if first := s.first.Load(); first != 0 {
		return first - 1
	}
	return noEnd
}

// A keptAnswer is an answer in one piece, which nobody else holds: each field as the lengths of name and value and the
// two, and then the body.
type keptAnswer struct {
	status int
	header int // bytes of data before the body
	buried bool
	data   []byte
}

func keep(a Answer) keptAnswer {
	k := keptAnswer{status: a.Status, buried: a.Tombstone}
	if a.Tombstone {
		return k
	}
	for name, values := range a.Header {
		for _, value := range values {
			k.header += uvarintLen(len(name)) + uvarintLen(len(value)) + len(name) + len(value)
		}
	}
	if k.header+len(a.Body) == 0 {
		return k
	}
	k.data = make([]byte, 0, k.header+len(a.Body))
	for name, values := range a.Header {
		for _, value := range values {
			k.data = binary.AppendUvarint(k.data, uint64(len(name)))
			k.data = binary.AppendUvarint(k.data, uint64(len(value)))
			k.data = append(append(k.data, name...), value...)
		}
	}
	k.data = append(k.data, a.Body...)
	return k
}

func uvarintLen(n int) (size int) {
	for size = 1; n >= 0x80; size++ {
		n >>= 7
	}
	return size
}

func (k keptAnswer) size() int64 { return int64(len(k.data)) }

func (k keptAnswer) tombstone() keptAnswer { return keptAnswer{status: k.status, buried: true} }

// answer returns a copy of what was kept.
func (k keptAnswer) answer() Answer {
	a := Answer{Status: k.status, Tombstone: k.buried}
	if k.buried {
		return a
	}
	a.Header = http.Header{}
	for fields := k.data[:k.header]; len(fields) > 0; {
		name, n := binary.Uvarint(fields)
		value, v := binary.Uvarint(fields[n:])
		text := fields[n+v:]
		key := string(text[:name])
		a.Header[key] = append(a.Header[key], string(text[name:name+value]))
		fields = text[name+value:]
	}
	a.Body = bytes.Clone(k.data[k.header:])
	return a
}
