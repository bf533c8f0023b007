package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// race claims with n callers at once, and returns what they were told.
func (s *trial) race(n int, claim func(i int) idempotency.Claim) []idempotency.Claimed {
	s.Helper()
	all, errs := make([]idempotency.Claimed, n), make([]error, n)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			c := claim(i)
			start.Wait()
			all[i], errs[i] = s.store.Claim(s.Context(), c)
		})
	}
	start.Done()
	done.Wait()
	for _, err := range errs {
		if err != nil {
			s.Fatalf("Claim, one of %d at once: %v", n, err)
		}
	}
	return all
}

// count counts the verdicts.
func count(all []idempotency.Claimed, of ...idempotency.Verdict) (n int) {
	for _, claimed := range all {
		if slices.Contains(of, claimed.Verdict) {
			n++
		}
	}
	return n
}

// oneWins expects that one of many claims had a verdict and that for all others the key was in flight.
func (s *trial) oneWins(all []idempotency.Claimed, verdicts ...idempotency.Verdict) {
	s.Helper()
	won, inFlight := count(all, verdicts...), count(all, idempotency.ClaimInFlight)
	if won != 1 || won+inFlight != len(all) {
		s.Fatalf("of %d claims at once %d took the key and for %d it was in flight, want 1 and %d", len(all), won, inFlight, len(all)-1)
	}
}

var raceChecks = []check{
	{name: "one of many claims at once wins a new key", run: func(s *trial) {
		for range 20 {
			c := newClaim()
			s.oneWins(s.race(16, func(int) idempotency.Claim { return again(c) }), idempotency.ClaimWon)
		}
	}},
	{name: "one of a thousand claims at once wins a new key", run: func(s *trial) {
		c := newClaim()
		s.oneWins(s.race(1000, func(int) idempotency.Claim { return again(c) }), idempotency.ClaimWon)
	}},
	{name: "one of many claims at once steals a key", run: func(s *trial) {
		for range 20 {
			c := lasting(reexecutable(), over, time.Hour)
			s.take(c)
			s.oneWins(s.race(16, func(int) idempotency.Claim { return lasting(again(c), time.Minute, time.Hour) }), idempotency.ClaimStolen)
		}
	}},
	{name: "one of many claims at once wins a key whose retention is over", run: func(s *trial) {
		for range 20 {
			c := newClaim()
			s.must("Complete", s.store.Complete(s.Context(), s.take(c), answer(), over))
			s.oneWins(s.race(16, func(int) idempotency.Claim { return again(c) }), idempotency.ClaimWon)
		}
	}},
	{name: "one of many requests at once wins a key, and the others are mismatches", run: func(s *trial) {
		for range 20 {
			c := newClaim()
			all := s.race(16, func(i int) idempotency.Claim {
				next := again(c)
				next.Fingerprint = []byte{byte(i)}
				return next
			})
			if won, others := count(all, idempotency.ClaimWon), count(all, idempotency.ClaimMismatch); won != 1 || others != 15 {
				s.Fatalf("of 16 requests at once %d took the key and %d were mismatches, want 1 and 15", won, others)
			}
		}
	}},
	{name: "a run that ends and a claim that steals do not both succeed", run: func(s *trial) {
		for _, m := range ticketMethods {
			for range 20 {
				c := lasting(reexecutable(), over, time.Hour)
				t := s.take(c)
				var err error
				var held sync.WaitGroup
				held.Go(func() { err = m.call(s.Context(), s.store, t) })
				next := lasting(again(c), time.Minute, time.Hour)
				v := s.claim(next).Verdict
				held.Wait()
				if err != nil && !errors.Is(err, idempotency.ErrFenced) {
					s.Fatalf("%s against a claim: %v", m.name, err)
				}
				if stolen := v == idempotency.ClaimStolen; stolen != (err != nil) {
					s.Fatalf("%s = %v while a claim of the key = %s, want ErrFenced if and only if it was stolen", m.name, err, v)
				}
			}
		}
	}},
	{name: "one of many operations holds its key, others come and go", run: func(s *trial) {
		const workers, rounds = 8, 25
		c := newClaim()
		var holders, runs int // under mu
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range rounds {
					next := again(c)
					claimed, err := s.store.Claim(s.Context(), next)
					if err != nil {
						s.Errorf("Claim: %v", err)
						return
					}
					if claimed.Verdict != idempotency.ClaimWon {
						continue
					}
					mu.Lock()
					holders++
					runs++
					if holders > 1 {
						s.Errorf("%d runs hold the key", holders)
					}
					mu.Unlock()
					if other, err := s.store.Claim(s.Context(), again(c)); other.Verdict != idempotency.ClaimInFlight || err != nil {
						s.Errorf("Claim of a key that is held = %s, %v, want ClaimInFlight", other.Verdict, err)
					}
					mu.Lock()
					holders--
					mu.Unlock()
					if err := s.store.Release(s.Context(), next.Ticket(claimed.Generation)); err != nil {
						s.Errorf("Release by the holder: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if runs == 0 {
			s.Error("no claim was won")
		}
	}},
}

var cancelChecks = []check{
	{name: "a context that ended before gives an error and changes nothing", run: func(s *trial) {
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		c := newClaim()
		if claimed, err := s.store.Claim(ended, c); err == nil {
			s.Errorf("Claim with an ended context = %s, want an error", claimed.Verdict)
		}
		s.expect(again(c), idempotency.ClaimWon, "after one whose context had ended")
		for _, m := range ticketMethods {
			c := lasting(newClaim(), time.Minute, time.Hour)
			t := s.take(c)
			if err := m.call(ended, s.store, t); err == nil || errors.Is(err, idempotency.ErrFenced) {
				s.Errorf("%s with an ended context = %v, want an error of the context", m.name, err)
			}
			s.expect(again(c), idempotency.ClaimInFlight, "after "+m.name+" with an ended context")
			s.holds(t, c, "after "+m.name+" with an ended context")
		}
	}},
	{name: "a claim that is cancelled midway is made or not made", run: func(s *trial) {
		for range 30 {
			c := newClaim()
			claimed, err := idempotency.Claimed{}, error(nil)
			s.cancelled(func(ctx context.Context) { claimed, err = s.store.Claim(ctx, c) })
			switch v := s.claim(again(c)).Verdict; {
			case v == idempotency.ClaimInFlight && err == nil:
				s.holds(c.Ticket(claimed.Generation), c, "after a claim that was cancelled too late")
			case v == idempotency.ClaimInFlight: // taken, and the generation did not arrive: a new key has the first
				s.holds(c.Ticket(1), c, "after a claim that was cancelled too late to see its end")
			case v != idempotency.ClaimWon || err == nil:
				s.Fatalf("Claim = %s, %v, and the next one %s", claimed.Verdict, err, v)
			}
		}
	}},
	{name: "a completion that is cancelled midway is done or not done", run: func(s *trial) {
		for range 30 {
			c := newClaim()
			t, a := s.take(c), answer()
			a.Body = make([]byte, 64<<10)
			var err error
			s.cancelled(func(ctx context.Context) { err = s.store.Complete(ctx, t, a, time.Hour) })
			switch claimed := s.claim(again(c)); {
			case claimed.Verdict == idempotency.ClaimReplay:
				s.replays(c, a, "after a cancelled Complete")
			case claimed.Verdict != idempotency.ClaimInFlight || err == nil:
				s.Fatalf("Complete = %v, and the next claim %s", err, claimed.Verdict)
			}
			s.complete(t, a)
			s.replays(c, a, "after Complete was called again")
		}
	}},
}

// cancelled calls something with a context that is cancelled while it runs, more or less.
func (s *trial) cancelled(call func(context.Context)) {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	timer := time.AfterFunc(rand.N(2*time.Millisecond), cancel)
	defer timer.Stop()
	call(ctx)
}
