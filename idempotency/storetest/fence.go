package storetest

import (
	"errors"
	"math"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

var fenceChecks = []check{
	{name: "a run that was overtaken is fenced off", run: func(s *trial) {
		c := lasting(reexecutable(), over, time.Hour)
		old := s.take(c)
		next := lasting(again(c), time.Minute, time.Hour)
		t := next.Ticket(s.expect(next, idempotency.ClaimStolen, "after the lease").Generation)
		s.fenced(old, "with the ticket of before the theft")
		s.expect(again(c), idempotency.ClaimInFlight, "of a stolen key")
		a := answer()
		s.complete(t, a)
		s.fenced(old, "with the ticket of before the theft, the key completed")
		s.replays(c, a, "after the first run came late")
	}},
	{name: "a release does not make an old ticket good again", run: func(s *trial) {
		c := newClaim()
		old := s.take(c)
		s.must("Release", s.store.Release(s.Context(), old))
		s.fenced(old, "after a release")
		next := again(c)
		t := s.take(next) // which may have the generation of the first
		s.fenced(old, "with the ticket of before the release")
		a := answer()
		s.complete(t, a)
		s.fenced(old, "with the ticket of before the release, the key completed")
		s.replays(c, a, "after a run from before the release came late")
	}},
	{name: "owner and generation fence together", run: func(s *trial) {
		c := reexecutable()
		t := s.take(c)
		for _, wrong := range []struct {
			name   string
			ticket idempotency.Ticket
		}{
			{"a generation too high", idempotency.Ticket{ID: t.ID, Owner: t.Owner, Generation: t.Generation + 1}},
			{"a generation too low", idempotency.Ticket{ID: t.ID, Owner: t.Owner, Generation: t.Generation - 1}},
			{"another owner", again(c).Ticket(t.Generation)},
			{"no owner", idempotency.Ticket{ID: t.ID, Generation: t.Generation}},
			{"another key", idempotency.Ticket{ID: newClaim().ID, Owner: t.Owner, Generation: t.Generation}},
		} {
			s.fenced(wrong.ticket, "with "+wrong.name)
		}
		a := answer()
		s.complete(t, a)
		s.fenced(again(c).Ticket(t.Generation), "with another owner, the key completed")
		s.fenced(idempotency.Ticket{ID: t.ID, Owner: t.Owner, Generation: t.Generation + 1}, "with another generation, the key completed")
		s.replays(c, a, "after tickets that were wrong")
	}},
}

var endChecks = []check{
	{name: "a completed key replays its answer and is held by nobody", run: func(s *trial) {
		c := reexecutable()
		t, a := s.take(c), answer()
		s.complete(t, a)
		for range 3 {
			s.replays(c, a, "after Complete")
		}
		s.fenced(t, "after Complete", "Complete")
		s.replays(c, a, "after all else was tried with its ticket")
	}},
	{name: "to complete again is no error and changes nothing", run: func(s *trial) {
		c := newClaim()
		t := s.take(c)
		first := answer()
		s.complete(t, first)
		for range 2 {
			s.must("Complete again", s.store.Complete(s.Context(), t, answer(), over))
			s.replays(c, first, "after Complete was called again")
		}
	}},
	{name: "a released key is new", run: func(s *trial) {
		c := newClaim()
		t := s.take(c)
		s.must("Release", s.store.Release(s.Context(), t))
		if err := s.store.Release(s.Context(), t); !errors.Is(err, idempotency.ErrFenced) {
			s.Errorf("Release again = %v, want ErrFenced", err)
		}
		next := another(c)
		s.expect(next, idempotency.ClaimWon, "of another request after a release")
	}},
	{name: "a suspended key is unknown until it is resolved", run: func(s *trial) {
		for _, lease := range []time.Duration{time.Minute, over} {
			c := lasting(reexecutable(), lease, lease)
			t := s.take(c)
			s.must("Suspend", s.store.Suspend(s.Context(), t))
			s.must("Suspend again", s.store.Suspend(s.Context(), t))
			s.fenced(t, "after Suspend", "Suspend")
			s.expect(again(c), idempotency.ClaimUnknown, "of a suspended key")
			s.expect(another(c), idempotency.ClaimMismatch, "of another request, the key suspended")
		}
	}},
	{name: "a run whose lease is over holds the key until somebody takes it", run: func(s *trial) {
		for _, reexecute := range []bool{false, true} {
			for _, m := range ticketMethods {
				c := lasting(newClaim(), over, over)
				c.Reexecute = reexecute
				t := s.take(c)
				if err := m.call(s.Context(), s.store, t); err != nil {
					s.Errorf("%s after lease and retention, nobody took the key: %v", m.name, err)
				}
			}
		}
	}},
	{name: "a renewed lease is live again", run: func(s *trial) {
		c := lasting(reexecutable(), over, time.Hour)
		t := s.take(c)
		s.must("Renew", s.store.Renew(s.Context(), t, time.Minute))
		claimed := s.expect(again(c), idempotency.ClaimInFlight, "after Renew")
		if claimed.Lease <= 0 || claimed.Lease > time.Minute {
			s.Errorf("the lease left after Renew is %v, want some of a minute", claimed.Lease)
		}
		s.must("Renew", s.store.Renew(s.Context(), t, over))
		s.expect(again(c), idempotency.ClaimStolen, "after a renewal that is over, the retention not")
	}},
}

var timeChecks = []check{
	{name: "a lease ends by itself", run: func(s *trial) {
		c := lasting(reexecutable(), 40*time.Millisecond, time.Hour)
		s.take(c)
		next := lasting(again(c), time.Minute, time.Hour)
		s.eventually("the lease ends", func() bool {
			return s.claim(next).Verdict == idempotency.ClaimStolen
		})
		s.expect(again(next), idempotency.ClaimInFlight, "of a stolen key")
	}},
	{name: "a renewal counts from when it is made", run: func(s *trial) {
		c := lasting(reexecutable(), time.Minute, time.Hour)
		t := s.take(c)
		s.must("Renew", s.store.Renew(s.Context(), t, 40*time.Millisecond))
		next := again(c)
		s.eventually("the renewed lease ends", func() bool { return s.claim(next).Verdict == idempotency.ClaimStolen })
	}},
	{name: "a retention ends by itself", run: func(s *trial) {
		c := newClaim()
		s.must("Complete", s.store.Complete(s.Context(), s.take(c), answer(), 40*time.Millisecond))
		next := another(c)
		s.eventually("the retention ends", func() bool { return s.claim(next).Verdict == idempotency.ClaimWon })
	}},
	{name: "the retention of an answer counts from Complete", run: func(s *trial) {
		c := lasting(newClaim(), time.Minute, over)
		a := s.completed(c)
		s.replays(c, a, "within the retention that Complete was given")
	}},
	{name: "a lease or retention of zero is over", run: func(s *trial) {
		c := lasting(reexecutable(), 0, time.Hour)
		s.take(c)
		s.expect(again(c), idempotency.ClaimStolen, "after a lease of zero")
		c = lasting(reexecutable(), 0, 0)
		s.take(c)
		s.expect(again(c), idempotency.ClaimWon, "after lease and retention of zero")
		c = newClaim()
		s.must("Complete", s.store.Complete(s.Context(), s.take(c), answer(), 0))
		s.expect(again(c), idempotency.ClaimWon, "after a retention of zero")
	}},
	{name: "the longest lease and retention are never over", run: func(s *trial) {
		c := lasting(reexecutable(), math.MaxInt64, math.MaxInt64)
		t := s.take(c)
		s.expect(again(c), idempotency.ClaimInFlight, "within the longest lease")
		s.must("Renew", s.store.Renew(s.Context(), t, math.MaxInt64))
		s.expect(again(c), idempotency.ClaimInFlight, "within the longest renewal")
		a := answer()
		s.must("Complete", s.store.Complete(s.Context(), t, a, math.MaxInt64))
		s.replays(c, a, "within the longest retention")
	}},
	{name: "the shortest lease and retention are over", run: func(s *trial) {
		c := lasting(reexecutable(), math.MinInt64, math.MinInt64)
		s.take(c)
		s.expect(again(c), idempotency.ClaimWon, "after the shortest lease and retention")
	}},
}
