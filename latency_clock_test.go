package riprap_test

import (
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// Times without a monotonic clock, of a simulation or a stored message, may be set back.
func TestALatencyLearnsOnAfterItsClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{90 * time.Second, time.Hour, 24 * time.Hour, 30 * 365 * 24 * time.Hour} {
		for _, start := range []time.Duration{0, time.Second} {
			l, now := armed(&riprap.Latency{Start: riprap.LatencySnapshot{Bound: start}}, 20*time.Millisecond)
			p := &riprap.Policy{Latency: l}
			if got := bound(p, now); !about(got, 60*time.Millisecond) {
				t.Fatalf("before, the bound is %v, want 60ms", got)
			}
			now = now.Add(-back)
			observe(l, now, 1000, 200*time.Millisecond)
			now = now.Add(2 * time.Second)
			if got := bound(p, now); !about(got, 600*time.Millisecond) {
				t.Errorf("set back by %v, the bound is %v after a thousand answers in 200ms, want 600ms", back, got)
			}
			if got := l.Snapshot(now); got.Count != 1000 {
				t.Errorf("set back by %v, Count is %d, want the 1000 attempts since", back, got.Count)
			}
			if got := bound(p, now.Add(2*time.Minute)); got != 0 {
				t.Errorf("set back by %v and idle for two minutes, the bound is %v, want none", back, got)
			}
		}
	}
}

func TestATimeThatComesLateIsNoClockSetBack(t *testing.T) {
	l, now := armed(&riprap.Latency{}, 20*time.Millisecond)
	p := &riprap.Policy{Latency: l}
	for _, late := range []time.Duration{0, time.Second, 10 * time.Second, 50 * time.Second} {
		if got := bound(p, now.Add(30*time.Second-late)); !about(got, 60*time.Millisecond) {
			t.Errorf("an attempt that begins %v late has the bound %v, want 60ms", late, got)
		}
	}
}
