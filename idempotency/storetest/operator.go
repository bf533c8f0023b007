package storetest

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A zoo has a record of each sort.
type zoo struct {
	live, liveAfterRetention, stalled, unknownForEver, dead, kept, forgotten, suspended idempotency.Claim
	answer                                                                              idempotency.Answer
}

func (s *trial) zoo() (z zoo) {
	s.Helper()
	take := func(lease, retention time.Duration, reexecute bool) idempotency.Claim {
		c := lasting(newClaim(), lease, retention)
		c.Reexecute = reexecute
		s.take(c)
		return c
	}
	z.live = take(time.Minute, time.Hour, true)
	z.liveAfterRetention = take(time.Minute, over, true)
	z.stalled = take(over, time.Hour, true)
	z.unknownForEver = take(over, over, false)
	z.dead = take(over, over, true)
	z.kept = newClaim()
	z.answer = s.completed(z.kept)
	z.forgotten = newClaim()
	s.must("Complete", s.store.Complete(s.Context(), s.take(z.forgotten), answer(), over))
	z.suspended = lasting(reexecutable(), over, over)
	s.must("Suspend", s.store.Suspend(s.Context(), s.take(z.suspended)))
	return z
}

// stuck are those that nobody but an operator ends.
func (z zoo) stuck() []idempotency.Claim { return []idempotency.Claim{z.unknownForEver, z.suspended} }

// resolvable are those that an operator may end.
func (z zoo) resolvable() []idempotency.Claim { return append(z.stuck(), z.stalled) }

func (z zoo) needed() []idempotency.Claim {
	return append(z.resolvable(), z.live, z.liveAfterRetention, z.kept)
}

// listed returns all records of a filter, page by page.
func (s *trial) listed(o idempotency.Operator, f idempotency.Filter) (all []idempotency.Record) {
	s.Helper()
	for {
		page, err := o.List(s.Context(), f)
		s.must("List", err)
		limit := f.Limit
		if limit == 0 {
			limit = 100
		}
		if len(page) > limit {
			s.Fatalf("List with the limit %d has %d records", f.Limit, len(page))
		}
		for _, r := range page {
			if bytes.Compare(r.ID[:], f.After[:]) <= 0 {
				s.Fatalf("List has %v after %v, want the order of the IDs", r.ID, f.After)
			}
			f.After = r.ID
		}
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
	}
}

var listChecks = []check{
	{name: "List has each record once, page by page", operate: func(s *trial, o idempotency.Operator) {
		want := map[idempotency.ID]bool{}
		for range 105 {
			c := newClaim()
			s.take(c)
			want[c.ID] = true
		}
		for _, limit := range []int{0, 1, 10, 104, 105, 200} {
			all := s.listed(o, idempotency.Filter{Limit: limit})
			if len(all) != len(want) {
				s.Fatalf("pages of %d have %d records, want %d", limit, len(all), len(want))
			}
			for _, r := range all {
				if !want[r.ID] {
					s.Fatalf("List has %v, which is none of them or there twice", r.ID)
				}
			}
		}
		if page, err := o.List(s.Context(), idempotency.Filter{}); len(page) != 100 || err != nil {
			s.Errorf("List without a limit = %d records, %v, want 100", len(page), err)
		}
	}},
	{name: "List finds what is stuck", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		for _, limit := range []int{1, 0} {
			var ids []idempotency.ID
			for _, r := range s.listed(o, idempotency.Filter{Stuck: true, Limit: limit}) {
				ids = append(ids, r.ID)
			}
			for _, c := range z.stuck() {
				if !slices.Contains(ids, c.ID) {
					s.Errorf("List of what is stuck has %d records and lacks one", len(ids))
				}
			}
			for _, c := range []idempotency.Claim{z.live, z.liveAfterRetention, z.kept, z.forgotten, z.stalled, z.dead} {
				if slices.Contains(ids, c.ID) {
					s.Errorf("List of what is stuck has one that is live, completed or going to run again")
				}
			}
		}
	}},
	{name: "records say what is known", operate: func(s *trial, o idempotency.Operator) {
		z := s.zoo()
		list := s.listed(o, idempotency.Filter{})
		for _, c := range []struct {
			idempotency.Claim
			state idempotency.State
		}{
			{z.live, idempotency.StateInProgress}, {z.liveAfterRetention, idempotency.StateInProgress}, {z.stalled, idempotency.StateInProgress},
			{z.unknownForEver, idempotency.StateInProgress}, {z.kept, idempotency.StateCompleted}, {z.suspended, idempotency.StateUnknown},
		} {
			shown, err := o.Show(s.Context(), c.ID)
			s.must("Show", err)
			i := slices.IndexFunc(list, func(r idempotency.Record) bool { return r.ID == c.ID })
			if i < 0 {
				s.Fatalf("List lacks a record that Show has")
			}
			for _, r := range []idempotency.Record{shown, list[i]} {
				if r.ID != c.ID || r.State != c.state || r.Operation != c.Operation || r.Owner != c.Owner || r.Generation < 1 || r.Reexecute != c.Reexecute {
					s.Errorf("record = %+v, want state %d of %+v", r, c.state, c.Claim)
				}
				if away := time.Since(r.Begun).Abs(); away > 15*time.Minute { // the clocks of two machines
					s.Errorf("Begun is %v away from now", away)
				}
				if c.state == idempotency.StateInProgress && ((r.Lease > 0) != (c.Lease > 0) || r.Lease > c.Lease) {
					s.Errorf("the lease left of %v is %v", c.Lease, r.Lease)
				}
				if (r.Retention > 0) != (c.Retention > 0) || r.Retention > c.Retention {
					s.Errorf("the retention left of %v is %v", c.Retention, r.Retention)
				}
				if (r.Answer != nil) != (c.state == idempotency.StateCompleted) {
					s.Errorf("record of state %d with an answer: %t", c.state, r.Answer != nil)
				}
			}
		}
	}},
	{name: "Show has the answer, and List its status alone", operate: func(s *trial, o idempotency.Operator) {
		for _, want := range []idempotency.Answer{
			{Status: http.StatusCreated, Header: http.Header{"Etag": {latin1(), "b"}}, Body: everyByte()},
			{Status: http.StatusAccepted, Tombstone: true},
		} {
			c := newClaim()
			s.complete(s.take(c), want)
			shown, err := o.Show(s.Context(), c.ID)
			s.must("Show", err)
			if shown.Answer == nil || differ(*shown.Answer, want) != "" {
				s.Errorf("Show has another answer than that of Complete")
			}
			for _, r := range s.listed(o, idempotency.Filter{}) {
				if r.ID != c.ID {
					continue
				}
				if a := r.Answer; a == nil || a.Status != want.Status || a.Tombstone != want.Tombstone || len(a.Header)+len(a.Body) != 0 {
					s.Errorf("List has %+v, want status and tombstone alone", a)
				}
			}
		}
	}},
	{name: "Show knows no key that is not there", operate: func(s *trial, o idempotency.Operator) {
		s.take(newClaim())
		if _, err := o.Show(s.Context(), newClaim().ID); !errors.Is(err, idempotency.ErrNotFound) {
			s.Errorf("Show of no key = %v, want ErrNotFound", err)
		}
		c := newClaim()
		s.must("Release", s.store.Release(s.Context(), s.take(c)))
		if _, err := o.Show(s.Context(), c.ID); !errors.Is(err, idempotency.ErrNotFound) {
			s.Errorf("Show of a released key = %v, want ErrNotFound", err)
		}
	}},
	{name: "a renewal keeps the record for as long as the lease", operate: func(s *trial, o idempotency.Operator) {
		c := lasting(reexecutable(), over, over)
		t := s.take(c)
		s.must("Renew", s.store.Renew(s.Context(), t, time.Hour))
		r, err := o.Show(s.Context(), c.ID)
		s.must("Show", err)
		if r.Lease <= 0 || r.Retention < r.Lease-time.Minute { // the two are read one after another
			s.Errorf("after Renew the lease left is %v and the retention %v, want as much", r.Lease, r.Retention)
		}
		s.must("Renew", s.store.Renew(s.Context(), t, time.Minute))
		if r, err = o.Show(s.Context(), c.ID); err != nil || r.Retention < 30*time.Minute {
			s.Errorf("after a shorter renewal the retention left is %v, %v, want what it was", r.Retention, err)
		}
	}},
}
