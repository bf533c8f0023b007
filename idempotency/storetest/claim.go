package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

var claimChecks = []check{
	{name: "a new key is won", run: func(s *trial) {
		if claimed := s.expect(newClaim(), idempotency.ClaimWon, "of a new key"); claimed.Generation < 1 {
			s.Errorf("Generation = %d, want above zero", claimed.Generation)
		}
	}},
	{name: "a key that is held is in flight", run: func(s *trial) {
		c := newClaim()
		s.take(c)
		claimed := s.expect(again(c), idempotency.ClaimInFlight, "of a key that is held")
		if claimed.Lease <= 0 || claimed.Lease > c.Lease {
			s.Errorf("the lease left is %v, want some of %v", claimed.Lease, c.Lease)
		}
		if claimed.Age < 0 || claimed.Age > c.Lease {
			s.Errorf("Age = %v, want less than a lease", claimed.Age)
		}
	}},
	{name: "the age of a run counts from its claim and not from its renewal", run: func(s *trial) {
		c := newClaim()
		t := s.take(c)
		s.eventually("a run gets old", func() bool {
			s.must("Renew", s.store.Renew(s.Context(), t, time.Minute))
			return s.expect(again(c), idempotency.ClaimInFlight, "of a key that is held").Age >= 30*time.Millisecond
		})
	}},
	{name: "keys know nothing of each other", run: func(s *trial) {
		c := newClaim()
		t := s.take(c)
		for _, i := range []int{0, 7, 8, 128, 255} {
			near := again(c)
			near.ID[i/8] ^= 1 << (i % 8)
			s.expect(near, idempotency.ClaimWon, "of an ID that differs in a bit")
		}
		s.holds(t, c, "after claims of other keys")
	}},
	{name: "fingerprints of 1 to 64 bytes are compared to the last bit", run: func(s *trial) {
		for _, size := range []int{1, 32, 33, 64} {
			c := newClaim()
			c.Fingerprint = bytes.Repeat([]byte{0}, size)
			s.take(c)
			s.expect(again(c), idempotency.ClaimInFlight, "with the same fingerprint")
			s.expect(another(c), idempotency.ClaimMismatch, "with another fingerprint")
			if size > 1 {
				shorter := again(c)
				shorter.Fingerprint = c.Fingerprint[:size-1]
				s.expect(shorter, idempotency.ClaimMismatch, "with a fingerprint shorter by a byte")
			}
		}
	}},
	{name: "an operation may have 255 bytes", run: func(s *trial) {
		c := newClaim()
		c.Operation = strings.Repeat("ü", 127) + "x"
		s.holds(s.take(c), c, "of a long operation")
		c = newClaim()
		c.Operation = ""
		s.holds(s.take(c), c, "of no operation")
	}},
	{name: "another request is a mismatch, whatever the state", run: func(s *trial) {
		c := newClaim()
		t := s.take(c)
		s.expect(another(c), idempotency.ClaimMismatch, "of another request, the key held")
		a := answer()
		s.complete(t, a)
		s.expect(another(c), idempotency.ClaimMismatch, "of another request, the key completed")
		s.replays(c, a, "after a mismatch")

		c = reexecutable()
		s.must("Suspend", s.store.Suspend(s.Context(), s.take(c)))
		s.expect(another(c), idempotency.ClaimMismatch, "of another request, the key unknown")

		c = lasting(newClaim(), over, time.Hour)
		s.take(c)
		s.expect(another(c), idempotency.ClaimMismatch, "of another request, the lease over")
	}},
	{name: "a mismatch never steals", run: func(s *trial) {
		c := lasting(reexecutable(), over, time.Hour)
		t := s.take(c)
		s.expect(another(c), idempotency.ClaimMismatch, "of another request, the lease over")
		s.holds(t, c, "after another request came")
	}},
	{name: "a key whose retention is over is new, for another request too", run: func(s *trial) {
		for _, claim := range []func(idempotency.Claim) idempotency.Claim{again, another} {
			c := newClaim()
			old := s.take(c)
			s.must("Complete", s.store.Complete(s.Context(), old, answer(), over))
			next := claim(c)
			t := next.Ticket(s.expect(next, idempotency.ClaimWon, "after the retention").Generation)
			s.fenced(old, "with the ticket of before the retention was over")
			s.holds(t, next, "after the retention of an earlier answer")
		}
	}},
	{name: "a run that is dead and may run again leaves a new key after its retention", run: func(s *trial) {
		for _, claim := range []func(idempotency.Claim) idempotency.Claim{again, another} {
			c := lasting(reexecutable(), over, over)
			old := s.take(c)
			next := lasting(claim(c), time.Minute, time.Hour)
			next.Reexecute = false
			t := next.Ticket(s.expect(next, idempotency.ClaimWon, "after lease and retention").Generation)
			s.fenced(old, "with the ticket of the dead run")
			s.holds(t, next, "after a dead run")
		}
	}},
	{name: "a run that must not run again is unknown for ever", run: func(s *trial) {
		c := lasting(newClaim(), over, over)
		t := s.take(c)
		for _, reexecute := range []bool{false, true} {
			next := again(c)
			next.Reexecute = reexecute
			s.expect(next, idempotency.ClaimUnknown, "after lease and retention")
			s.expect(another(next), idempotency.ClaimMismatch, "of another request after lease and retention")
		}
		s.holds(t, c, "after lease and retention")
	}},
	{name: "a live lease holds the key after the retention", run: func(s *trial) {
		c := lasting(reexecutable(), time.Minute, over)
		t := s.take(c)
		s.expect(again(c), idempotency.ClaimInFlight, "within the lease, the retention over")
		s.expect(another(c), idempotency.ClaimMismatch, "of another request within the lease, the retention over")
		s.holds(t, c, "within the lease, the retention over")
	}},
	{name: "a lease that is over is stolen only if both claims say so", run: func(s *trial) {
		for _, first := range []bool{false, true} {
			for _, second := range []bool{false, true} {
				c := lasting(newClaim(), over, time.Hour)
				c.Reexecute = first
				t := s.take(c)
				next := lasting(again(c), time.Minute, time.Hour)
				next.Reexecute = second
				if !first || !second {
					s.expect(next, idempotency.ClaimUnknown, "after the lease, not both to be executed again")
					s.holds(t, c, "after a claim that could not steal")
					continue
				}
				claimed := s.expect(next, idempotency.ClaimStolen, "after the lease, both to be executed again")
				if claimed.Generation <= t.Generation {
					s.Errorf("Generation %d after %d, want a higher one", claimed.Generation, t.Generation)
				}
				s.expect(again(next), idempotency.ClaimInFlight, "of a stolen key")
				s.holds(next.Ticket(claimed.Generation), next, "with a stolen key")
			}
		}
	}},
	{name: "a claim that is not won changes nothing", run: func(s *trial) {
		c := lasting(newClaim(), over, over)
		t := s.take(c)
		for range 3 { // a longer lease than the key has, and it may run again
			next := lasting(again(c), time.Hour, time.Hour)
			next.Reexecute = true
			s.expect(next, idempotency.ClaimUnknown, "after the lease")
			s.expect(another(next), idempotency.ClaimMismatch, "of another request")
		}
		s.holds(t, c, "after claims that were not won")
	}},
}
