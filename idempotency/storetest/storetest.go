// Package storetest proves that an [idempotency.Store] keeps its contract, and lets stores fail in tests of what stands on
// them.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) idempotency.Store { return open(t) })
//	}
//
// The suite looks at a store from outside only. Nothing in it depends on how fast a store is; where time has to pass,
// it waits for what should come. What it cannot see is told by whoever knows the store: that an answer is on the disk when
// Complete returns, and that leases are measured by the clock of the store and not by that of the caller.
package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// Run runs the suite, each check on a store of its own: open returns one without records, and closes it by Cleanup.
// A store that is an Operator is tried as one too.
func Run(t *testing.T, open func(testing.TB) idempotency.Store) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(&trial{TB: t, store: open(t)}) })
	}
	if _, ok := open(t).(idempotency.Operator); !ok {
		return
	}
	for _, c := range operatorChecks() {
		t.Run(c.name, func(t *testing.T) {
			store := open(t)
			c.operate(&trial{TB: t, store: store}, store.(idempotency.Operator))
		})
	}
}

// A check is a promise of the contract. It runs against any testing.TB, so that the suite can be run on stores that
// break it.
type check struct {
	name    string
	run     func(*trial)
	operate func(*trial, idempotency.Operator)
}

func checks() []check {
	return slices.Concat(claimChecks, fenceChecks, endChecks, timeChecks, answerChecks, raceChecks, cancelChecks, faultChecks)
}

func operatorChecks() []check { return slices.Concat(listChecks, resolveChecks, reapChecks) }

// A trial is one check on one store.
type trial struct {
	testing.TB
	store idempotency.Store
}

// over is a lease or retention that has ended when it begins.
const over = -time.Hour

// patience bounds the wait for what only has to come some time.
var patience = 10 * time.Second

// newClaim returns a claim of a new key, by a new owner.
func newClaim() idempotency.Claim {
	c := idempotency.Claim{
		Fingerprint: make([]byte, 33),
		Operation:   "POST /charges",
		Lease:       time.Minute,
		Retention:   time.Hour,
	}
	rand.Read(c.ID[:])
	rand.Read(c.Fingerprint)
	return again(c)
}

// reexecutable returns a new claim that may be executed again.
func reexecutable() idempotency.Claim {
	c := newClaim()
	c.Reexecute = true
	return c
}

// again returns the claim of the same request, sent once more.
func again(c idempotency.Claim) idempotency.Claim {
	rand.Read(c.Owner[:])
	return c
}

// another returns the claim of another request with the same key.
func another(c idempotency.Claim) idempotency.Claim {
	c = again(c)
	c.Fingerprint = bytes.Clone(c.Fingerprint)
	c.Fingerprint[len(c.Fingerprint)-1] ^= 1
	return c
}

func lasting(c idempotency.Claim, lease, retention time.Duration) idempotency.Claim {
	c.Lease, c.Retention = lease, retention
	return c
}

// answer returns an answer that is like no other.
func answer() idempotency.Answer {
	return idempotency.Answer{
		Status: http.StatusCreated,
		Header: http.Header{"Content-Type": {"text/plain"}},
		Body:   []byte(rand.Text()),
	}
}

// claim makes a claim that must not fail.
func (s *trial) claim(c idempotency.Claim) idempotency.Claimed {
	s.Helper()
	claimed, err := s.store.Claim(s.Context(), c)
	if err != nil {
		s.Fatalf("Claim: %v", err)
	}
	return claimed
}

// expect makes a claim that must have a verdict.
func (s *trial) expect(c idempotency.Claim, want idempotency.Verdict, situation string) idempotency.Claimed {
	s.Helper()
	claimed := s.claim(c)
	if claimed.Verdict != want {
		s.Fatalf("Claim %s = %s, want %s", situation, claimed.Verdict, want)
	}
	return claimed
}

// take makes a claim that must be won, and returns its ticket.
func (s *trial) take(c idempotency.Claim) idempotency.Ticket {
	s.Helper()
	claimed := s.claim(c)
	if v := claimed.Verdict; v != idempotency.ClaimWon && v != idempotency.ClaimStolen || claimed.Generation < 1 {
		s.Fatalf("Claim = %s with generation %d, want a key that is taken", v, claimed.Generation)
	}
	return c.Ticket(claimed.Generation)
}

// must ends the check if there is an error.
func (s *trial) must(call string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", call, err)
	}
}

func (s *trial) complete(t idempotency.Ticket, a idempotency.Answer) {
	s.Helper()
	s.must("Complete", s.store.Complete(s.Context(), t, a, time.Hour))
}

// completed takes a key, completes it and returns the answer.
func (s *trial) completed(c idempotency.Claim) idempotency.Answer {
	s.Helper()
	a := answer()
	s.complete(s.take(c), a)
	return a
}

// replays claims the key once more and must get the answer.
func (s *trial) replays(c idempotency.Claim, want idempotency.Answer, situation string) {
	s.Helper()
	if diff := differ(s.expect(again(c), idempotency.ClaimReplay, situation).Answer, want); diff != "" {
		s.Fatalf("the answer replayed %s: %s", situation, diff)
	}
}

// holds tries whether a ticket holds its key, by ending it.
func (s *trial) holds(t idempotency.Ticket, c idempotency.Claim, situation string) {
	s.Helper()
	a := answer()
	if err := s.store.Complete(s.Context(), t, a, time.Hour); err != nil {
		s.Fatalf("Complete %s: %v", situation, err)
	}
	s.replays(c, a, "after Complete "+situation)
}

// A tickets method is one of those that a ticket is for.
type ticketMethod struct {
	name string
	call func(context.Context, idempotency.Store, idempotency.Ticket) error
}

var ticketMethods = []ticketMethod{
	{"Renew", func(ctx context.Context, s idempotency.Store, t idempotency.Ticket) error {
		return s.Renew(ctx, t, time.Minute)
	}},
	{"Complete", func(ctx context.Context, s idempotency.Store, t idempotency.Ticket) error {
		return s.Complete(ctx, t, answer(), time.Hour)
	}},
	{"Release", func(ctx context.Context, s idempotency.Store, t idempotency.Ticket) error { return s.Release(ctx, t) }},
	{"Suspend", func(ctx context.Context, s idempotency.Store, t idempotency.Ticket) error { return s.Suspend(ctx, t) }},
}

// fenced calls everything with a ticket that does not hold its key, but for the methods named.
func (s *trial) fenced(t idempotency.Ticket, situation string, but ...string) {
	s.Helper()
	for _, m := range ticketMethods {
		if slices.Contains(but, m.name) {
			continue
		}
		if err := m.call(s.Context(), s.store, t); !errors.Is(err, idempotency.ErrFenced) {
			s.Errorf("%s %s = %v, want ErrFenced", m.name, situation, err)
		}
	}
}

// eventually waits until something is so.
func (s *trial) eventually(what string, is func() bool) {
	s.Helper()
	for begun := time.Now(); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > patience {
			s.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// differ says in what two answers differ. No header and an empty one are the same, as are no body and an empty one.
func differ(got, want idempotency.Answer) string {
	switch {
	case got.Status != want.Status:
		return "another status"
	case got.Tombstone != want.Tombstone:
		return "Tombstone is not as it was"
	case !maps.EqualFunc(got.Header, want.Header, slices.Equal):
		return "another header"
	case !bytes.Equal(got.Body, want.Body):
		return "another body"
	}
	return ""
}
