package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// bareMap is what one writes who needs no more than a map for many goroutines: shards, each under a mutex. It keeps what
// Memory keeps, makes the copies that a store must make, looks up whether a key is there and to whom it belongs, and forgets the
// oldest key when it is full. It knows neither leases nor retention, nor an order of anything.
type bareMap struct {
	shards [64]struct {
		mu      sync.Mutex
		records map[ID]*bareRecord
		oldest  []ID // a ring
		next    int
		_       [16]byte
	}
}

type bareRecord struct {
	claim  Claim
	begun  time.Time
	answer Answer
	done   bool
}

func newBareMap(entries int) *bareMap {
	m := &bareMap{}
	for i := range m.shards {
		m.shards[i].records = map[ID]*bareRecord{}
		m.shards[i].oldest = make([]ID, entries/len(m.shards))
	}
	return m
}

func (m *bareMap) claim(c Claim) bool {
	s := &m.shards[shardOf(c.ID)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records[c.ID] != nil {
		return false
	}
	delete(s.records, s.oldest[s.next])
	s.oldest[s.next] = c.ID
	s.next = (s.next + 1) % len(s.oldest)
	c.Fingerprint = bytes.Clone(c.Fingerprint)
	s.records[c.ID] = &bareRecord{claim: c, begun: time.Now()}
	return true
}

func (m *bareMap) complete(t Ticket, a Answer) bool {
	a.Header, a.Body = a.Header.Clone(), bytes.Clone(a.Body)
	s := &m.shards[shardOf(t.ID)]
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[t.ID]
	if r == nil || r.claim.Owner != t.Owner || r.done {
		return false
	}
	r.answer, r.done = a, true
	return true
}

// A key is claimed and its answer is kept: a new key each time, in a store that holds 100,000 keys and is full.
func BenchmarkClaimAndComplete(b *testing.B) {
	const entries = 100_000
	ctx := context.Background()
	answer := Answer{
		Status: http.StatusCreated,
		Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/charges/1234567890"}},
		Body:   bytes.Repeat([]byte("x"), 256),
	}
	var random [32]byte
	rand.Read(random[:])
	var count atomic.Uint64
	claim := func(n uint64) Claim {
		c := Claim{ID: random, Fingerprint: random[:], Operation: "POST /charges", Lease: time.Minute, Retention: 24 * time.Hour}
		n *= 0x9e3779b97f4a7c15 // spreads what is counted over all bits, and no two of them become one
		binary.BigEndian.PutUint64(c.ID[:], n)
		binary.BigEndian.PutUint64(c.Owner[:], n)
		return c
	}
	for _, load := range []string{"single", "parallel"} {
		for _, impl := range []string{"map", "memory"} {
			b.Run("impl="+impl+"/load="+load, func(b *testing.B) {
				bare, memory := newBareMap(entries), &Memory{MaxEntries: entries, MaxBytes: 1 << 30}
				one := func(n uint64) {
					c := claim(n)
					if impl == "map" {
						if !bare.claim(c) || !bare.complete(c.Ticket(1), answer) {
							b.Error("not claimed or not completed")
						}
						return
					}
					claimed, err := memory.Claim(ctx, c)
					if claimed.Verdict != ClaimWon || err != nil {
						b.Error(claimed, err)
					}
					if err := memory.Complete(ctx, c.Ticket(1), answer, 24*time.Hour); err != nil {
						b.Error(err)
					}
				}
				for range entries {
					one(count.Add(1))
				}
				b.ReportAllocs()
				b.ResetTimer()
				if load == "single" {
					for range b.N {
						one(count.Add(1))
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one(count.Add(1))
					}
				})
			})
		}
	}
}
