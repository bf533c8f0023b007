package riprap

import (
	"sync/atomic"
	"testing"
	"time"
)

// Contended: as many goroutines as processors share a budget and the one above it. The yardstick is one atomic add to a
// shared word.
func BenchmarkBudget(b *testing.B) {
	b.Run("impl=atomic-add", func(b *testing.B) {
		var n atomic.Uint64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	b.Run("impl=deposit", func(b *testing.B) {
		budget := &Budget{Parent: &Budget{Reserve: 100}}
		t := instant(time.Now())
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				budget.deposit(t)
			}
		})
	})
	b.Run("impl=withdraw", func(b *testing.B) {
		budget := &Budget{Ratio: 1, Parent: &Budget{Ratio: 1, Reserve: 100}}
		now := time.Now()
		for range 1 << 23 { // enough for both levels in all slots
			budget.deposit(instant(now))
		}
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			var h hold
			for pb.Next() {
				if !budget.withdraw(now, &h) {
					b.Fatal("the budget is spent")
				}
				budget.giveBack(&h)
			}
		})
	})
}
