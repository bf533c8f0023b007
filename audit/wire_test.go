package audit

import (
	"math"
	"testing"
	"time"
)

// Headers are what a client sends, and may be anything.
func FuzzHeadersThatAreNumbers(f *testing.F) {
	for _, seed := range []string{"", "0", "250", "-1", "99999999S", "1H", "8m", "attempt=2; max=3", "9223372036854775807", "1e3", "NaN", " 7 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for name, read := range deadlineHeaders {
			left, ok := read(value)
			if left < 0 || !ok && left != 0 {
				t.Errorf("%s: %q is %v, %v, want no time before now, and none of what cannot be read", name, value, left, ok)
			}
		}
		if n, ok := attemptOf(value); !ok && n != 0 {
			t.Errorf("attemptOf(%q) = %d, false, want 0 with it", value, n)
		}
	})
}

func TestDeadlineHeadersAreReadByTheirUnits(t *testing.T) {
	tests := map[string]struct {
		read func(string) (time.Duration, bool)
		want time.Duration
		ok   bool
	}{
		"250":        {milliseconds, 250 * time.Millisecond, true},
		"0":          {milliseconds, 0, true},
		"-1":         {milliseconds, 0, false},
		"soon":       {milliseconds, 0, false},
		"100m":       {grpcTimeout, 100 * time.Millisecond, true},
		"2S":         {grpcTimeout, 2 * time.Second, true},
		"3M":         {grpcTimeout, 3 * time.Minute, true},
		"2H":         {grpcTimeout, 2 * time.Hour, true},
		"5u":         {grpcTimeout, 5 * time.Microsecond, true},
		"7":          {grpcTimeout, 0, false},
		"7x":         {grpcTimeout, 0, false},
		"99999999H":  {grpcTimeout, math.MaxInt64 / time.Hour * time.Hour, true},
		"999999999S": {grpcTimeout, 0, false}, // eight digits at most
	}
	for value, tt := range tests {
		if got, ok := tt.read(value); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q is read as %v, %v, want %v, %v", value, got, ok, tt.want, tt.ok)
		}
	}
}
