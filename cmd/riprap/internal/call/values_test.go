package call

import (
	"math"
	"testing"
	"time"
)

func TestDurationsHaveThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 999: "999ns", 1500: "1.5µs", 12345: "12.3µs", 999_499: "999µs", 999_999: "1ms",
		1234567: "1.23ms", 12345678: "12.3ms", 337_500_000: "338ms", 2134 * time.Millisecond: "2.13s", 12345 * time.Millisecond: "12.3s",
		75600 * time.Millisecond: "1m16s", time.Hour: "1h", 90 * time.Minute: "1h30m", 1e4 * time.Hour: "10000h",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%d) = %q, want %q", d, got, want)
		}
	}
	const year = 365 * 24 * time.Hour
	for d, want := range map[time.Duration]string{
		1: "0s", 1500: "2µs", time.Second: "1s", year: "8760h", year + 1: "more than a year", math.MaxInt64: "more than a year",
	} {
		if got := told(d); got != want {
			t.Errorf("told(%d) = %q, want %q", d, got, want)
		}
	}
}
