package riprap

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// One observation. The yardstick is one atomic add; with two goroutines, to a shared word, as a slot's buckets are shared.
func BenchmarkLatencyRecord(b *testing.B) {
	b.Run("impl=atomic-add", func(b *testing.B) {
		b.ReportAllocs()
		var n atomic.Uint64
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("impl=record", func(b *testing.B) {
		b.ReportAllocs()
		l := filled()
		for b.Loop() {
			l.record(20 * time.Millisecond)
		}
	})
}

func BenchmarkLatencyRecordContended(b *testing.B) {
	b.Run("impl=atomic-add", func(b *testing.B) {
		b.ReportAllocs()
		var n atomic.Uint64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	b.Run("impl=record", func(b *testing.B) {
		b.ReportAllocs()
		l := filled()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.record(20 * time.Millisecond)
			}
		})
	})
	b.Run("impl=record-spread", func(b *testing.B) { // what really happens: no two attempts take equally long
		b.ReportAllocs()
		l := filled()
		b.RunParallel(func(pb *testing.PB) {
			for took := 20 * time.Millisecond; pb.Next(); took += 100 * time.Microsecond {
				l.record(took % (64 * time.Millisecond))
			}
		})
	})
}

// The budget and a Latency that only observes. The yardstick is what they cannot do without: when it began and when it ended.
func BenchmarkLatencyDo(b *testing.B) {
	ctx := context.Background()
	op := func(context.Context) error { return nil }
	b.Run("impl=loop+two-clocks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			begun := time.Now()
			if ctx.Err() == nil && op(ctx) == nil {
				took = time.Since(begun)
			}
		}
	})
	b.Run("impl=riprap", func(b *testing.B) {
		b.ReportAllocs()
		p := &Policy{Budget: &Budget{}, Latency: &Latency{Factor: -1}}
		for b.Loop() {
			Do(ctx, p, op)
		}
	})
}

var took time.Duration // so that the yardstick is not optimized away

func BenchmarkLatencyDoBound(b *testing.B) {
	ctx := context.Background()
	op := func(context.Context) error { return nil }
	b.Run("impl=loop+WithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if ctx.Err() != nil {
				continue
			}
			begun := time.Now()
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			if op(ctx) == nil {
				took = time.Since(begun)
			}
			cancel()
		}
	})
	b.Run("impl=riprap", func(b *testing.B) {
		b.ReportAllocs()
		p := &Policy{Budget: &Budget{}, Latency: &Latency{Min: time.Second}}
		for range 2 * armed {
			p.Latency.bound(time.Now(), 0)
			p.Latency.record(time.Millisecond)
		}
		p.Latency.refresh(instantNow())
		for b.Loop() {
			Do(ctx, p, op)
		}
	})
}

// Once a second, and whenever somebody looks.
func BenchmarkLatencyRead(b *testing.B) {
	b.Run("impl=two-clocks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			took = time.Since(time.Now())
		}
	})
	b.Run("impl=refresh", func(b *testing.B) {
		b.ReportAllocs()
		l := filled()
		t := instantNow()
		for b.Loop() {
			l.refresh(t)
		}
	})
	b.Run("impl=snapshot", func(b *testing.B) {
		b.ReportAllocs()
		l := filled()
		now := time.Now()
		for b.Loop() {
			l.Snapshot(now)
		}
	})
	b.Run("impl=timeout", func(b *testing.B) {
		b.ReportAllocs()
		l := filled()
		l.bound(time.Now(), 0)
		for b.Loop() {
			l.recordTimeout(time.Minute)
			l.learned.Store(1)
			l.inRow.Store(0)
		}
	})
}

// filled returns a Latency with a minute of samples of every size.
func filled() *Latency {
	l := &Latency{}
	end := instant(time.Now())
	for age := range int64(latencySlots) {
		l.refresh(end - (latencySlots-1-age)*int64(slotTime))
		for d := time.Microsecond; d < time.Minute; d += d/50 + 1 {
			l.record(d)
		}
	}
	return l
}
