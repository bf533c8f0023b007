package riphttp

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func (f *firsts) share() float64 { return float64(math.Float32frombits(uint32(f.state.Load() >> 32))) }

// addAll adds n attempts that ended alike.
func (f *firsts) addAll(n int, ok bool) *firsts {
	for range n {
		f.add(ok)
	}
	return f
}

func TestShareOfFirstAttempts(t *testing.T) {
	var none firsts
	if none.rare() {
		t.Error("of no attempts too few succeed, want nothing to be said")
	}
	for _, test := range []struct {
		name  string
		after *firsts
		share float64
		rare  bool
	}{
		{"one failure", new(firsts).addAll(1, false), 0, true},
		{"one success", new(firsts).addAll(1, true), .5, false},
		{"a failure, then a success", new(firsts).addAll(1, false).addAll(1, true), .5, false},
		{"a success, then failures", new(firsts).addAll(1, true).addAll(3, false), .125, false},
		{"two more", new(firsts).addAll(1, true).addAll(5, false), .5 / 6, true},
		{"eight failures, then a success", new(firsts).addAll(8, false).addAll(1, true), 1. / 9, false},
		{"ten failures, then a success", new(firsts).addAll(10, false).addAll(1, true), 1. / 11, true},
		{"many successes count no more than half", new(firsts).addAll(1000, true), .5, false},
		{"then 51 failures", new(firsts).addAll(1000, true).addAll(51, false), .5 * math.Pow(31./32, 51), true},
		{"then 50", new(firsts).addAll(1000, true).addAll(50, false), .5 * math.Pow(31./32, 50), false},
		{"recovery", new(firsts).addAll(1000, false).addAll(4, true), 1 - math.Pow(31./32, 4), false},
		{"the beginning of one", new(firsts).addAll(1000, false).addAll(3, true), 1 - math.Pow(31./32, 3), true},
	} {
		if got := test.after.share(); math.Abs(got-test.share) > 1e-6 {
			t.Errorf("%s: share %.4f, want %.4f", test.name, got, test.share)
		}
		if got := test.after.rare(); got != test.rare {
			t.Errorf("%s: rare is %v, want %v", test.name, got, test.rare)
		}
	}
}

func TestShareOfAHealthyServiceStandsStill(t *testing.T) {
	f := new(firsts).addAll(memory, true)
	before := f.state.Load()
	if f.add(true); f.state.Load() != before {
		t.Errorf("the state moved from %#x to %#x, want it to stay while all is well", before, f.state.Load())
	}
}

func TestFirstAttemptsOfManyGoroutinesAreAllCounted(t *testing.T) {
	for range 5000 {
		var f firsts
		var running sync.WaitGroup
		var ready atomic.Int32
		for range 2 {
			running.Go(func() {
				for ready.Add(1); ready.Load() < 2; { // so that they meet
					runtime.Gosched()
				}
				f.addAll(memory/2, false).rare()
			})
		}
		running.Wait()
		if n := uint32(f.state.Load()); n != memory || !f.rare() {
			t.Fatalf("%d failures counted, rare is %v, want all %d", n, f.rare(), memory)
		}
	}
}
