package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

var resolveChecks = []check{
	{name: "a key resolved with an answer replays it", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		for _, c := range z.resolvable() {
			a := idempotency.Answer{Status: 201, Header: map[string][]string{"Etag": {latin1()}}, Body: everyByte()}
			r, err := o.Show(s.Context(), c.ID)
			s.must("Show", err)
			s.must("Resolve", o.Resolve(s.Context(), c.ID, &a, time.Hour))
			s.replays(c, a, "after Resolve")
			s.expect(another(c), idempotency.ClaimMismatch, "of another request after Resolve")
			s.fenced(c.Ticket(r.Generation), "after Resolve with an answer")
			s.replays(c, a, "after the run came late")
			if r, err := o.Show(s.Context(), c.ID); err != nil || r.State != idempotency.StateCompleted || r.Answer == nil || r.Owner != (idempotency.Owner{}) {
				s.Errorf("Show after Resolve = %+v, %v, want a completed record of no owner", r, err)
			}
		}
	}},
	{name: "a key resolved without an answer is free", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		for _, c := range z.resolvable() {
			r, err := o.Show(s.Context(), c.ID)
			s.must("Show", err)
			old := c.Ticket(r.Generation)
			s.must("Resolve", o.Resolve(s.Context(), c.ID, nil, time.Hour))
			s.fenced(old, "after Resolve")
			next := lasting(another(c), time.Minute, time.Hour)
			t := next.Ticket(s.expect(next, idempotency.ClaimWon, "after Resolve").Generation)
			s.fenced(old, "after Resolve and a new claim")
			s.holds(t, next, "after Resolve")
		}
	}},
	{name: "an answer of an operator is kept for its retention", operate: func(s *trial, o idempotency.Operator) {
		c := lasting(newClaim(), over, time.Hour)
		s.take(c)
		s.must("Resolve", o.Resolve(s.Context(), c.ID, &idempotency.Answer{Status: 200}, over))
		s.expect(another(c), idempotency.ClaimWon, "after the retention of a resolved key")
	}},
	{name: "what is live or completed is not to be resolved", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		a := answer()
		for _, resolution := range []*idempotency.Answer{nil, &a} {
			for _, c := range []idempotency.Claim{z.live, z.liveAfterRetention, z.kept} {
				if err := o.Resolve(s.Context(), c.ID, resolution, time.Hour); !errors.Is(err, idempotency.ErrSettled) {
					s.Errorf("Resolve of what is live or completed = %v, want ErrSettled", err)
				}
			}
			if err := o.Resolve(s.Context(), newClaim().ID, resolution, time.Hour); !errors.Is(err, idempotency.ErrNotFound) {
				s.Errorf("Resolve of no key = %v, want ErrNotFound", err)
			}
		}
		s.replays(z.kept, z.answer, "after Resolve was refused")
		s.expect(again(z.live), idempotency.ClaimInFlight, "after Resolve was refused")
	}},
	{name: "operators change nothing with an ended context", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		a := answer()
		_, listErr := o.List(ended, idempotency.Filter{})
		_, showErr := o.Show(ended, z.kept.ID)
		_, reapErr := o.Reap(ended, 100)
		for call, err := range map[string]error{
			"List": listErr, "Show": showErr, "Reap": reapErr,
			"Resolve with an answer":    o.Resolve(ended, z.suspended.ID, &a, time.Hour),
			"Resolve without an answer": o.Resolve(ended, z.suspended.ID, nil, time.Hour),
		} {
			if err == nil || errors.Is(err, idempotency.ErrNotFound) || errors.Is(err, idempotency.ErrSettled) {
				s.Errorf("%s with an ended context = %v, want an error of the context", call, err)
			}
		}
		s.expect(again(z.suspended), idempotency.ClaimUnknown, "after Resolve with an ended context")
	}},
	{name: "a key that is resolved and completed at once has one end", operate: func(s *trial, o idempotency.Operator) {
		for range 20 {
			c := lasting(newClaim(), over, time.Hour)
			t, ours, theirs := s.take(c), answer(), answer()
			var completed, resolved error
			var wg sync.WaitGroup
			wg.Go(func() { completed = s.store.Complete(s.Context(), t, ours, time.Hour) })
			wg.Go(func() { resolved = o.Resolve(s.Context(), c.ID, &theirs, time.Hour) })
			wg.Wait()
			switch {
			case completed == nil && errors.Is(resolved, idempotency.ErrSettled):
				s.replays(c, ours, "after Complete overtook Resolve")
			case resolved == nil && errors.Is(completed, idempotency.ErrFenced):
				s.replays(c, theirs, "after Resolve overtook Complete")
			default:
				s.Fatalf("Complete = %v and Resolve = %v at once, want one that is done and one that is refused", completed, resolved)
			}
		}
	}},
}

// reap reaps until nothing is left to reap.
func (s *trial) reap(o idempotency.Operator) {
	s.Helper()
	for range 1000 {
		n, err := o.Reap(s.Context(), 3)
		s.must("Reap", err)
		if n < 0 || n > 3 {
			s.Fatalf("Reap deleted %d records, want at most 3", n)
		}
		if n == 0 {
			return
		}
	}
	s.Fatal("Reap finds no end")
}

var reapChecks = []check{
	{name: "the reaper deletes what nobody needs, and never what is live or unknown", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		s.reap(o)
		for _, c := range []idempotency.Claim{z.dead, z.forgotten} {
			if _, err := o.Show(s.Context(), c.ID); !errors.Is(err, idempotency.ErrNotFound) {
				s.Errorf("Show of what nobody needs, after Reap = %v, want ErrNotFound", err)
			}
		}
		for _, c := range z.needed() {
			if _, err := o.Show(s.Context(), c.ID); err != nil {
				s.Errorf("Show of what is still needed, after Reap: %v", err)
			}
		}
		s.replays(z.kept, z.answer, "after Reap")
		s.expect(again(z.suspended), idempotency.ClaimUnknown, "of a suspended key after Reap")
		s.expect(again(z.unknownForEver), idempotency.ClaimUnknown, "of a key whose run may have had effects, after Reap")
		s.expect(again(z.liveAfterRetention), idempotency.ClaimInFlight, "within the lease, after Reap")
		s.expect(lasting(again(z.stalled), time.Minute, time.Hour), idempotency.ClaimStolen, "after the lease, after Reap")
	}},
	{name: "the reaper deletes no more than it is told", operate: func(s *trial, o idempotency.Operator) {
		for range 8 {
			s.take(lasting(reexecutable(), over, over))
		}
		n, err := o.Reap(s.Context(), 3)
		s.must("Reap", err)
		if left := len(s.listed(o, idempotency.Filter{})); n != 3 || left != 5 {
			s.Errorf("Reap with the limit 3 = %d, and %d of 8 records are left, want 3 and 5", n, left)
		}
	}},
	{name: "many reapers and claims at once lose nothing", operate: func(s *trial, o idempotency.Operator) {
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := o.Reap(s.Context(), 10); err != nil {
						s.Errorf("Reap: %v", err)
						return
					}
				}
			})
		}
		var all []idempotency.Claim
		func() {
			defer wg.Wait()
			defer close(stop)
			for range 20 {
				live := s.takeDead(8)
				all = append(all, live...)
				for _, c := range live {
					s.expect(again(c), idempotency.ClaimInFlight, "within the lease, under reapers")
				}
			}
		}()
		for _, c := range all {
			s.expect(again(c), idempotency.ClaimInFlight, "within the lease, after reapers")
		}
	}},
}

// takeDead makes keys of which the runs are dead, and takes each of them, which a reaper may be about to delete.
func (s *trial) takeDead(n int) (live []idempotency.Claim) {
	s.Helper()
	for range n {
		c := lasting(reexecutable(), over, over)
		s.take(c)
		live = append(live, c)
	}
	for i, c := range live {
		live[i] = lasting(again(c), time.Minute, over)
		s.expect(live[i], idempotency.ClaimWon, "of a key that is reaped")
	}
	return live
}
