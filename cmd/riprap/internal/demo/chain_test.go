package demo

import (
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// quick is the standard scenario with retries that do not take long.
func quick() scenario {
	s := standard(300)
	s.Backoff, s.Attempts, s.Patience, s.AttemptTimeout = time.Millisecond, 2, time.Minute, 20*time.Second
	return s
}

// newTestChain is a side's chain that is up for a test.
func newTestChain(t *testing.T, s scenario, d side) *chain {
	t.Helper()
	c, err := newChain(t.Context(), s, d, t.TempDir(), newTally(s.Length))
	if err != nil {
		t.Fatalf("%s: newChain: %v", d.name, err)
	}
	t.Cleanup(c.close)
	return c
}

// Two attempts in each of three layers are eight.
func TestALostAnswerIsChargedOnceWithRiprapAndByEachAttemptWithout(t *testing.T) {
	want := map[string]struct {
		told    told
		charges int
	}{"naive": {failure, 8}, "riprap": {unsure, 1}}
	for _, d := range sides {
		c := newTestChain(t, quick(), d)
		if got := c.click(t.Context(), click{Shopper: 1}, 1); got != paid {
			t.Errorf("%s: a click: told %q, want paid", d.name, words[got])
		}
		c.payments.service.lose(true)
		got := c.click(t.Context(), click{Shopper: 1}, 2)
		charges, err := c.ledger.charges()
		if want := want[d.name]; err != nil || got != want.told || charges[2] != want.charges || charges[1] != 1 {
			t.Errorf("%s: a click whose answers are lost: told %q, charges %v, error %v, want %q and %d", d.name, words[got], charges, err, words[want.told], want.charges)
		}
	}
}

// Two attempts of three layers are eight; with the proxy they would be sixteen.
func TestAServiceThatIsDownChargesNobody(t *testing.T) {
	for _, d := range sides {
		c := newTestChain(t, quick(), d)
		c.payments.down()
		if got := c.click(t.Context(), click{Shopper: 1}, 1); got != failure {
			t.Errorf("%s: a click while payments is down: told %q, want failed", d.name, words[got])
		}
		c.tally.mu.Lock()
		sent, again := c.tally.bins.sum(refused, 0, len(c.tally.bins)), c.tally.bins.sum(retried, 0, len(c.tally.bins))
		c.tally.mu.Unlock()
		switch {
		case !d.proxied && (sent != 8 || again != 7):
			t.Errorf("%s: a click while payments is down: got %d sends, %d retries, want 8 and 7", d.name, sent, again)
		case d.proxied && (sent < 2 || sent > 5 || again > 4 || again < sent-1):
			t.Errorf("%s: a click while payments is down: got %d sends, %d retries, want 2 to 5 and at most 4: layers must not multiply", d.name, sent, again)
		}
		if err := c.payments.up(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.click(t.Context(), click{Shopper: 1}, 2); got != paid {
			t.Errorf("%s: a click when payments is up again: told %q, want paid", d.name, words[got])
		}
		if charges, err := c.ledger.charges(); err != nil || len(charges) != 1 || charges[2] != 1 {
			t.Errorf("%s: got charges %v, error %v, want one for the second click", d.name, charges, err)
		}
	}
}

// A key is whose it is: the same shopper's, and nobody else's.
func TestAShopperWhoSendsTheSameAgainIsChargedOnce(t *testing.T) {
	s := quick()
	c := newTestChain(t, s, sides[1])
	send := withRiprap(s, c.base(), c.tally) // makes no key of its own
	for _, shopper := range []string{"shopper 1", "shopper 1", "shopper 2"} {
		p := newPurchase(shopper, 1)
		p.header.Set("Idempotency-Key", "0123456789")
		if got := send(t.Context(), c.front, p).told; got != paid {
			t.Errorf("%s: told %q, want paid", shopper, words[got])
		}
	}
	if charges, err := c.ledger.charges(); err != nil || charges[1] != 2 {
		t.Errorf("one key twice from one shopper, once from another: got charges %v, error %v, want 2", charges, err)
	}
}

func TestAChainLeavesNothingBehind(t *testing.T) {
	for _, d := range sides {
		c, err := newChain(t.Context(), quick(), d, t.TempDir(), newTally(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		c.close()
		c.close() // does nothing more
		var running strings.Builder
		pprof.Lookup("goroutine").WriteTo(&running, 1)
		for _, name := range []string{"demo.serve", "demo.startService"} {
			if strings.Contains(running.String(), name) {
				t.Errorf("%s: after close something of %s is still running:\n%s", d.name, name, &running)
			}
		}
	}
}
