package riprap_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riprap-go/riprap"
)

// The service takes 20 ms; the clock is set by hand here, as a simulation does it. Do and riphttp look at the real one.
func ExampleLatency() {
	policy := &riprap.Policy{
		AttemptTimeout: 2 * time.Second, // the ceiling, and the bound until enough is known
		Latency:        &riprap.Latency{Factor: 3},
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for range 200 {
		o := riprap.Operation{Policy: policy}
		o.Begin(now)
		now = now.Add(20 * time.Millisecond)
		o.Next(now, nil)
	}
	now = now.Add(time.Second)

	o := riprap.Operation{Policy: policy}
	until := o.Begin(now)
	fmt.Println("the next attempt may take", until.Sub(now).Round(time.Millisecond))
	// Output: the next attempt may take 60ms
}

func ExampleLatency_Snapshot() {
	latency := &riprap.Latency{Start: riprap.LatencySnapshot{P50: 12 * time.Millisecond, Bound: 90 * time.Millisecond}}
	policy := &riprap.Policy{AttemptTimeout: time.Second, Latency: latency}
	for range 3 {
		riprap.Do(context.Background(), policy, func(context.Context) error { return nil })
	}

	s := latency.Snapshot(time.Now())
	fmt.Printf("%d attempts, %.0f %% timed out, bound %v\n", s.Count, 100*s.TimedOut, s.Bound)

	// The process that takes over begins with what this one knows.
	next := &riprap.Latency{Start: s}
	fmt.Println(next.Snapshot(time.Now()).Bound)
	// Output:
	// 3 attempts, 0 % timed out, bound 90ms
	// 90ms
}

// A driver that cancels an operation for a reason of its own, here because the work must not be done twice, says first how
// the attempt ended: it was a timeout, and not a caller who left.
func ExampleOperation_Observe() {
	latency := &riprap.Latency{}
	o := riprap.Operation{Policy: &riprap.Policy{AttemptTimeout: time.Second, Latency: latency}}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	until := o.Begin(now)

	o.Observe(until, context.DeadlineExceeded)
	err := o.Cancel(errors.New("it may have been done"), context.DeadlineExceeded)

	fmt.Println(err)
	fmt.Println(latency.Snapshot(until).Count, "sample")
	// Output:
	// gave up after 1 attempt: it may have been done: context deadline exceeded
	// 1 sample
}
