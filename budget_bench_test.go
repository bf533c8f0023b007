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
	for _, left := range []string{"all slots", "the last slot"} {
		b.Run("impl=withdraw from "+left, func(b *testing.B) {
			budget := &Budget{Parent: &Budget{}}
			now := time.Now()
			for level := budget; level != nil; level = level.Parent {
				for age := range int64(slots) {
					if age == 0 || left == "all slots" {
						level.put(level.slot(instant(now))-age, slotMask)
					}
				}
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					var h hold
					budget.withdraw(now, &h)
				}
			})
		})
	}
}
