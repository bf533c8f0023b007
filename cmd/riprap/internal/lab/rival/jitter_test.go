package rival

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestClippedWaitsPileUpAtTheirMaximumAndRiprapsDoNot(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	base, most := 5*ms, 2*s
	clipped := &Clipped{Base: base, Max: most}
	ours := riprap.Backoff{Base: base, Max: most, Jitter: riprap.Decorrelated}
	const clients, waits = 100, 100
	var atMax, oursAtMax int
	for range clients {
		prev, own := time.Duration(0), time.Duration(0)
		for n := range waits {
			own = ours.Delay(n+1, own, random.Float64())
			prev = clipped.Wait(own, prev, random.Float64())
			if prev < base || prev > most {
				t.Fatalf("Wait: %v, want %v to %v", prev, base, most)
			}
			if prev == most {
				atMax++
			}
			if own == most {
				oursAtMax++
			}
		}
	}
	if share := float64(atMax) / (clients * waits); share < 0.2 {
		t.Errorf("%.3f of the clipped waits are exactly %v, want a fifth or more", share, most)
	}
	if oursAtMax > 2 {
		t.Errorf("%d of riprap's %d waits are exactly %v, want hardly any", oursAtMax, clients*waits, most)
	}
}

func TestClippedDrawsBetweenBaseAndThreeTimesTheWaitBefore(t *testing.T) {
	c := &Clipped{Base: 100 * ms, Max: 2 * s}
	for _, tt := range []struct {
		prev time.Duration
		u    float64
		want time.Duration
	}{
		{0, 0, 100 * ms}, {0, 0.5, 200 * ms}, {0, 0.999999999, 299999999},
		{400 * ms, 0.5, 650 * ms}, {400 * ms, 0, 100 * ms},
		{2 * s, 0.5, 2 * s}, {2 * s, 0.2, 1280 * ms},
	} {
		if got := c.Wait(0, tt.prev, tt.u); got != tt.want {
			t.Errorf("Wait after %v with a draw of %v: %v, want %v", tt.prev, tt.u, got, tt.want)
		}
	}
}

func TestAddedJitterIsGoneAtTheLongestWait(t *testing.T) {
	a := &Added{Spread: time.Second, Max: 32 * time.Second}
	for _, c := range []struct {
		own  time.Duration
		u    float64
		want time.Duration
	}{
		{time.Second, 0, time.Second},
		{4 * time.Second, 0.5, 4500 * time.Millisecond},
		{32 * time.Second, 0, 32 * time.Second},
		{32 * time.Second, 0.9, 32 * time.Second},
		{31500 * time.Millisecond, 0.9, 32 * time.Second},
	} {
		if got := a.Wait(c.own, 0, c.u); got != c.want {
			t.Errorf("Wait(%v, 0, %v): got %v, want %v", c.own, c.u, got, c.want)
		}
	}
}
