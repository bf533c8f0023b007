package chain_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap/chain"
)

func mustDraw(t *testing.T, c *chain.Chain, want ...chain.Hop) {
	t.Helper()
	got := c.Hops()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("hop %d is missing, want %+v", i, want[i])
		case i >= len(want):
			t.Errorf("hop %d = %+v, want none", i, got[i])
		case got[i] != want[i]:
			t.Errorf("hop %d =\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

func TestTheTimeLeftShrinksFromHopToHop(t *testing.T) {
	mustDraw(t, inOrder(),
		chain.Hop{Depth: 0, Call: -1, Service: "gateway", Left: 10 * time.Second, Calls: 1},
		chain.Hop{Depth: 1, From: "gateway", Service: "orders", Left: 7 * time.Second, Calls: 1},
		chain.Hop{Depth: 2, From: "orders", Service: "payments", Left: 4 * time.Second, Calls: 1},
		chain.Hop{Depth: 3, From: "payments", Service: "database", Left: 900 * ms, Calls: 2},
	)
}

func TestTheLastAttemptHasWhatIsLeft(t *testing.T) {
	c := inOrder()
	call(c, 0).Policy.Timeout = 3 * time.Second // so payments has no more either
	call(c, 2).Policy.AttemptTimeout = 1200 * ms
	c.Services[3].Limit = time.Minute // longer than anybody waits
	hops := c.Hops()
	if got, want := hops[2].Left, 3*time.Second; got != want {
		t.Errorf("left at payments: %s, want %s, as orders has no more", got, want)
	}
	if got, want := hops[3].Left, 700*ms; got != want { // 2s less one attempt of 1.2s and a wait of 100ms
		t.Errorf("left at the database: %s, want %s", got, want)
	}
}

func TestWithoutBoundsThereIsNoEndToTheTime(t *testing.T) {
	mustDraw(t, &chain.Chain{Services: []chain.Service{
		{Name: "a", Calls: []chain.Call{{To: "b"}}}, {Name: "b"},
	}},
		chain.Hop{Call: -1, Service: "a", Left: math.MaxInt64, Calls: 1},
		chain.Hop{Depth: 1, From: "a", Service: "b", Left: math.MaxInt64, Calls: 4},
	)
}

func TestWhatStandsAboveIsNotDrawnAgain(t *testing.T) {
	second := time.Second
	mustDraw(t, &chain.Chain{Services: []chain.Service{
		{Name: "web", Calls: []chain.Call{{To: "users", Policy: once(9 * second)}, {To: "orders", Policy: once(8 * second)}}},
		{Name: "users", Calls: []chain.Call{{To: "disk", Policy: once(second)}, {To: "mail", Policy: once(second)}}},
		{Name: "orders", Calls: []chain.Call{{To: "users", Policy: once(3 * second)}, {To: "disk", Policy: once(2 * second)}}},
		{Name: "disk", Calls: []chain.Call{{To: "orders", Policy: once(second / 2)}}},
		{Name: "cron", Limit: second, Calls: []chain.Call{{To: "cron", Policy: once(second / 2)}}},
	}},
		chain.Hop{Call: -1, Service: "web", Left: math.MaxInt64, Calls: 1},
		chain.Hop{Depth: 1, From: "web", Service: "users", Left: 9 * second, Calls: 1},
		chain.Hop{Depth: 2, From: "users", Service: "disk", Left: second, Calls: 1},
		chain.Hop{Depth: 3, From: "disk", Service: "orders", Left: second / 2, Calls: 1},
		chain.Hop{Depth: 4, From: "orders", Service: "users", Left: second / 2, Calls: 1, Again: true},
		chain.Hop{Depth: 4, From: "orders", Call: 1, Service: "disk", Left: second / 2, Calls: 1, Again: true},
		chain.Hop{Depth: 2, From: "users", Call: 1, Service: "mail", Left: second, Calls: 1},
		chain.Hop{Depth: 1, From: "web", Call: 1, Service: "orders", Left: 8 * second, Calls: 1, Again: true},
		chain.Hop{Call: -1, Service: "cron", Left: second, Calls: 1},
		chain.Hop{Depth: 1, From: "cron", Service: "cron", Left: second / 2, Calls: 1, Again: true},
	)
}

func TestServicesThatOnlyCallEachOtherAreDrawn(t *testing.T) {
	c := &chain.Chain{Services: []chain.Service{
		{Name: "a", Calls: []chain.Call{{To: "b"}}}, {Name: "b", Calls: []chain.Call{{To: "a"}}},
	}}
	var names []string
	for _, h := range c.Hops() {
		names = append(names, h.Service)
	}
	if want := []string{"a", "b", "a"}; !slices.Equal(names, want) {
		t.Errorf("Hops = %v, want %v", names, want)
	}
}

func TestAServiceThatCallsNobodyIsDrawnAsOftenAsItIsCalled(t *testing.T) {
	c := inOrder()
	c.Services[0].Calls = append(c.Services[0].Calls, chain.Call{To: "database", Policy: once(time.Second)})
	hops := c.Hops()
	if got, want := hops[len(hops)-1], (chain.Hop{Depth: 1, From: "gateway", Call: 1, Service: "database", Left: time.Second, Calls: 1}); got != want {
		t.Errorf("the last hop = %+v, want %+v", got, want)
	}
}
