//go:build unix

package sim

import (
	"syscall"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// BenchmarkContentionTable makes the table of "Exponential Backoff And Jitter" (Marc Brooker, AWS Architecture Blog,
// 2015): up to 190 clients that want to change the same row, five ways to wait, a hundred simulations of each. It reports
// the time that processors spent on it, which other programs disturb less than the time that went by.
func BenchmarkContentionTable(b *testing.B) {
	backoffs := []riprap.Backoff{
		atOnce,
		{Base: 10 * ms, Max: 2 * s, Jitter: riprap.None},
		{Base: 10 * ms, Max: 2 * s, Jitter: riprap.Equal},
		{Base: 10 * ms, Max: 2 * s},
		{Base: 5 * ms, Max: 2 * s, Jitter: riprap.Decorrelated},
	}
	before, events := processorTime(b), 0
	for b.Loop() {
		for n := 10; n <= 190; n += 10 {
			sc := Scenario{
				Arrivals: Arrivals{Clients: n, Once: true},
				Network:  Spread{Kind: Normal, Mean: 10 * ms, SD: 2 * ms},
				Services: []Service{{Kind: Row}},
			}
			for _, backoff := range backoffs {
				c := Candidate{Policy: riprap.Policy{MaxAttempts: -1, Backoff: backoff}}
				for seed := range uint64(100) {
					events += Run(b.Context(), &sc, &c, seed).Events
				}
			}
		}
	}
	spent := processorTime(b) - before
	b.ReportMetric(spent.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(events), "cpu-ns/event")
}

// processorTime is what this process has used so far, in its own code and in the kernel's.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
