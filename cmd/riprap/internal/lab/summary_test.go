package lab

import (
	"math"
	"testing"
)

func TestWilsonInterval(t *testing.T) {
	// The figures of the formula, by hand.
	for _, c := range []struct {
		yes, n    int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {28, 100, 0.2014, 0.3749}} {
		low, high := wilson(c.yes, c.n)
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("wilson(%d, %d) = %.4f, %.4f, want %.4f, %.4f", c.yes, c.n, low, high, c.low, c.high)
		}
	}
}
