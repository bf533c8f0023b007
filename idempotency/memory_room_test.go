package idempotency

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryEvictsWhatEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 200
		m := &Memory{MaxEntries: keys}
		// The order of the retentions is neither that of the claims nor that of the IDs.
		ends := rand.New(rand.NewPCG(1, 2)).Perm(keys)
		for n, end := range ends {
			finish(t, m, claimOf(n), 0, time.Hour+time.Duration(end)*time.Second)
		}
		for more := range keys {
			take(t, m, claimOf(keys+more))
			for n, end := range ends {
				if got, want := has(t, m, claimOf(n)), end > more; got != want {
					t.Fatalf("after %d more keys the one that ends as number %d is there: %t, want %t", more+1, end, got, want)
				}
			}
		}
		if _, err := m.Claim(t.Context(), claimOf(2*keys)); !errors.Is(err, ErrFull) {
			t.Errorf("Claim with all keys held = %v, want ErrFull", err)
		}
		account(t, m)
	})
}

func TestMemoryNeverEvictsWhatIsLiveOrUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{MaxEntries: 4}
		held, suspended, mustNotRunAgain, canBeStolen := claimOf(0), claimOf(1), claimOf(2), claimOf(3)
		suspended.Reexecute = true
		if err := m.Suspend(t.Context(), take(t, m, suspended)); err != nil {
			t.Fatal(err)
		}
		mustNotRunAgain.Lease, mustNotRunAgain.Retention = 0, 0
		take(t, m, mustNotRunAgain)
		canBeStolen.Lease, canBeStolen.Reexecute = 0, true
		take(t, m, canBeStolen)
		take(t, m, held)
		time.Sleep(30 * time.Second)
		for range 3 {
			if _, err := m.Claim(t.Context(), claimOf(9)); !errors.Is(err, ErrFull) {
				t.Errorf("Claim with nothing to evict = %v, want ErrFull", err)
			}
		}
		for _, c := range []Claim{held, suspended, mustNotRunAgain, canBeStolen} {
			if !has(t, m, c) {
				t.Errorf("a key that is still needed was forgotten")
			}
		}
		// A claim of a key that is there needs no room.
		if claimed, err := m.Claim(t.Context(), held); claimed.Verdict != ClaimInFlight || err != nil {
			t.Errorf("Claim of a key that is held, in a full store = %+v, %v, want ClaimInFlight", claimed, err)
		}
		account(t, m)
	})
}

func TestAFullMemoryForgetsDeadRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{MaxEntries: 3}
		for n := range 3 {
			c := claimOf(n)
			c.Reexecute, c.Retention = true, time.Minute
			take(t, m, c)
		}
		if _, err := m.Claim(t.Context(), claimOf(3)); !errors.Is(err, ErrFull) {
			t.Fatalf("Claim within the leases = %v, want ErrFull", err)
		}
		time.Sleep(time.Minute)
		take(t, m, claimOf(3))
		account(t, m)
	})
}

// To look for them is to look at every key, and somebody may send a million new keys.
func TestAFullMemoryLooksForDeadRunsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{MaxEntries: 1}
		c := claimOf(0)
		c.Reexecute, c.Retention, c.Lease = true, 0, time.Second/2
		take(t, m, c)
		for _, want := range []error{ErrFull, ErrFull, nil} { // live, dead, a second later
			if _, err := m.Claim(t.Context(), claimOf(1)); !errors.Is(err, want) {
				t.Errorf("Claim = %v, want %v", err, want)
			}
			time.Sleep(time.Second / 2)
		}
	})
}

func TestMemoryForgetsAnswersByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{}
		for n := range 10_000 {
			finish(t, m, claimOf(n), 100, time.Second)
			time.Sleep(time.Millisecond)
		}
		// Those of a second are needed. A shard that nobody writes to keeps its own for longer.
		if entries := m.entries.Load(); entries < 1000 || entries > 1000+10*memoryShards {
			t.Errorf("%d keys are held at 1000 a second with a retention of a second", entries)
		}
		account(t, m)
		for i := range m.shards {
			s := &m.shards[i]
			if len(s.ends) != len(s.records) {
				t.Errorf("a shard knows the ends of %d records and holds %d", len(s.ends), len(s.records))
			}
		}
	})
}

func TestForgottenAnswersGoFasterThanNewOnesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{}
		neighbour := func(n int) Claim { // in one shard
			c := claimOf(n)
			c.ID[0] = 7
			return c
		}
		for n := range 100 {
			finish(t, m, neighbour(n), 100, time.Second)
		}
		time.Sleep(time.Second)
		for n := range 50 {
			finish(t, m, neighbour(100+n), 100, time.Hour)
		}
		if entries := m.entries.Load(); entries != 50 {
			t.Errorf("%d keys are held after 50 new ones, want those alone", entries)
		}
		account(t, m)
	})
}

func TestAKeyThatComesAgainAndAgainLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{}
		c := claimOf(0)
		for range 1000 {
			finish(t, m, c, 100, time.Second)
			time.Sleep(time.Second)
		}
		if s := m.shard(c.ID); len(s.ends) > 2 || len(s.records) != 1 {
			t.Errorf("a key that was completed 1000 times left %d ends and %d records", len(s.ends), len(s.records))
		}
		account(t, m)
	})
}

func TestMemoryMakesRoomForBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{MaxBytes: 10 * (512 + 1000)}
		for n := range 10 {
			finish(t, m, claimOf(n), 1000, time.Hour+time.Duration(n)*time.Minute)
		}
		for n := range 10 {
			if !has(t, m, claimOf(n)) {
				t.Errorf("key %d is gone, with room for all", n)
			}
		}
		// One more takes 512 bytes when it is claimed, and 3000 when it is completed: three are to go.
		finish(t, m, claimOf(10), 3000, time.Hour)
		for n := range 11 {
			if got, want := has(t, m, claimOf(n)), n >= 3; got != want {
				t.Errorf("key %d is there: %t, want %t", n, got, want)
			}
		}
		account(t, m)
	})
}

func TestAnAnswerWithoutRoomIsKeptAsATombstone(t *testing.T) {
	replay := func(t *testing.T, m *Memory, c Claim) Answer {
		t.Helper()
		claimed, err := m.Claim(t.Context(), c)
		if claimed.Verdict != ClaimReplay || err != nil {
			t.Fatalf("Claim of a completed key = %+v, %v, want ClaimReplay", claimed, err)
		}
		return claimed.Answer
	}
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{MaxBytes: 10_000}
		finish(t, m, claimOf(0), 100, time.Hour)
		finish(t, m, claimOf(1), 10_000, time.Hour)
		if a := replay(t, m, claimOf(1)); !a.Tombstone || a.Status != 200 || a.Body != nil {
			t.Errorf("an answer as large as the store is kept as %d, %t with %d bytes, want a tombstone of 200", a.Status, a.Tombstone, len(a.Body))
		}
		if !has(t, m, claimOf(0)) {
			t.Error("for an answer that cannot be kept another one was forgotten")
		}
		for n := range 10 { // hold half of it
			take(t, m, claimOf(100+n))
		}
		finish(t, m, claimOf(2), 6_000, time.Hour)
		if a := replay(t, m, claimOf(2)); !a.Tombstone || a.Status != 200 {
			t.Errorf("an answer for which the keys that are held leave no room is kept as %d, %t, want a tombstone of 200", a.Status, a.Tombstone)
		}
		account(t, m)
	})
}

func TestMemoryHoldsNoMoreThanItMay(t *testing.T) {
	m := &Memory{MaxEntries: 100, MaxBytes: 100 * 1024}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range 2000 {
				c := claimOf(random.IntN(200))
				if c.Reexecute = c.ID[7]%2 == 0; c.Reexecute {
					c.Lease = 0 // so that it may be stolen on the way
				}
				claimed, err := m.Claim(t.Context(), c)
				if err != nil && !errors.Is(err, ErrFull) {
					t.Errorf("Claim: %v", err)
				}
				if claimed.Verdict != ClaimWon && claimed.Verdict != ClaimStolen {
					continue
				}
				ticket, ended := c.Ticket(claimed.Generation), error(nil)
				switch random.IntN(4) {
				case 0:
					ended = m.Release(t.Context(), ticket)
				default:
					ended = m.Complete(t.Context(), ticket, Answer{Status: 200, Body: make([]byte, random.IntN(5000))}, time.Hour)
				}
				if ended != nil && !(c.Reexecute && errors.Is(ended, ErrFenced)) {
					t.Errorf("the end of a run: %v", ended)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for looking := true; looking; {
		select {
		case <-done:
			looking = false
		default:
		}
		if keys, size := held(m); keys > 100 || size > 100*1024 {
			t.Errorf("Memory holds %d keys and %d bytes, more than it may", keys, size)
		}
	}
	account(t, m)
}

// held stops all shards and counts what is there.
func held(m *Memory) (keys, size int64) {
	for i := range m.shards {
		m.shards[i].mu.Lock()
		defer m.shards[i].mu.Unlock()
	}
	for i := range m.shards {
		for _, r := range m.shards[i].records {
			keys++
			size += memoryKeyBytes + r.kept.size()
		}
	}
	return keys, size
}

func TestMemoryIsReadyAtItsZeroValueAndHolds100000Keys(t *testing.T) {
	m := &Memory{}
	for n := range 100_001 {
		finish(t, m, claimOf(n), 0, time.Hour)
	}
	if entries := m.entries.Load(); entries != 100_000 {
		t.Errorf("Memory holds %d keys, want 100,000", entries)
	}
}
