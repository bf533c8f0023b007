package riprap_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestDelayGrowsUpToItsLimitAndStaysThere(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		backoff riprap.Backoff
		want    []time.Duration // after the failures 1, 2, 3, …
	}{
		{"the zero Backoff doubles a half second up to ten", riprap.Backoff{},
			[]time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 10_000 * ms, 10_000 * ms}},
		{"negative means the default", riprap.Backoff{Base: -1, Max: -1},
			[]time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 10_000 * ms}},
		{"a factor of three", riprap.Backoff{Base: ms, Max: 20 * ms, Factor: 3}, []time.Duration{ms, 3 * ms, 9 * ms, 20 * ms}},
		{"a factor of one stays", riprap.Backoff{Base: ms, Factor: 1}, []time.Duration{ms, ms, ms}},
		{"a factor below one never shrinks", riprap.Backoff{Base: ms, Factor: 0.1}, []time.Duration{ms, ms, ms}},
		{"nor does a negative one", riprap.Backoff{Base: ms, Factor: -2}, []time.Duration{ms, ms, ms}},
		{"nor NaN", riprap.Backoff{Base: ms, Factor: math.NaN()}, []time.Duration{ms, ms, ms}},
		{"an infinite factor", riprap.Backoff{Base: ms, Max: time.Second, Factor: math.Inf(1)}, []time.Duration{ms, time.Second, time.Second}},
		{"a base above the limit", riprap.Backoff{Base: time.Hour, Max: time.Second}, []time.Duration{time.Second, time.Second}},
		{"a default base above the limit", riprap.Backoff{Max: ms}, []time.Duration{ms, ms}},
		{"a limit of a nanosecond", riprap.Backoff{Base: 1, Max: 1}, []time.Duration{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.backoff.Jitter = riprap.None
			for i, want := range tt.want {
				if got := tt.backoff.Delay(i+1, 0, 0.5); got != want {
					t.Errorf("Delay(%d) = %v, want %v", i+1, got, want)
				}
			}
			for _, n := range []int{0, -1, math.MinInt} {
				if got := tt.backoff.Delay(n, 0, 0.5); got != tt.want[0] {
					t.Errorf("Delay(%d) = %v, want that of the first failure, %v", n, got, tt.want[0])
				}
			}
			last := tt.want[len(tt.want)-1]
			for _, n := range []int{62, 63, 64, 65, 200, 1100, math.MaxInt32, math.MaxInt} {
				if got := tt.backoff.Delay(n, 0, 0.5); got < last {
					t.Errorf("Delay(%d) = %v, want no less than %v", n, got, last)
				}
			}
		})
	}
}

func TestDelayDrawsAsItsJitterSays(t *testing.T) {
	const s = time.Second
	least, most := math.Nextafter(1, 0), 0.0 // of u: the draw falls as u grows
	for _, tt := range []struct {
		backoff   riprap.Backoff
		n         int
		prev      time.Duration
		low, high time.Duration // the draw is above low and at most high
	}{
		{riprap.Backoff{Base: s}, 1, 0, 0, s},
		{riprap.Backoff{Base: s}, 3, s, 0, 4 * s},
		{riprap.Backoff{Base: s}, 30, s, 0, 10 * s},
		{riprap.Backoff{Base: s, Jitter: 99}, 1, 0, 0, s}, // unknown: Full
		{riprap.Backoff{Base: s, Jitter: -1}, 1, 0, 0, s},
		{riprap.Backoff{Base: s, Jitter: riprap.Equal}, 1, 0, s / 2, s},
		{riprap.Backoff{Base: s, Jitter: riprap.Equal}, 30, 0, 5 * s, 10 * s},
		{riprap.Backoff{Base: s, Jitter: riprap.Decorrelated}, 1, 0, s, 3 * s},
		{riprap.Backoff{Base: s, Jitter: riprap.Decorrelated}, 1, -s, s, 3 * s},
		{riprap.Backoff{Base: s, Jitter: riprap.Decorrelated}, 2, 2 * s, s, 6 * s},
		{riprap.Backoff{Base: s, Jitter: riprap.Decorrelated}, 9, 4 * s, s, 10 * s},
		{riprap.Backoff{Base: s, Jitter: riprap.Decorrelated}, 9, math.MaxInt64, s, 10 * s},
		{riprap.Backoff{Base: s, Max: s, Jitter: riprap.Decorrelated}, 1, 0, s / 3, s}, // no room above Base
	} {
		t.Run(fmt.Sprintf("%v after failure %d and a wait of %v", tt.backoff.Jitter, tt.n, tt.prev), func(t *testing.T) {
			if got := tt.backoff.Delay(tt.n, tt.prev, most); got != tt.high {
				t.Errorf("the longest draw is %v, want %v", got, tt.high)
			}
			if got := tt.backoff.Delay(tt.n, tt.prev, least); got <= tt.low || got > tt.low+10 {
				t.Errorf("the shortest draw is %v, want just above %v", got, tt.low)
			}
			middle := tt.low + (tt.high-tt.low)/2
			for _, u := range []float64{0.5, math.NaN(), -1, 2, math.Inf(1), math.Inf(-1)} {
				if got := tt.backoff.Delay(tt.n, tt.prev, u); (got - middle).Abs() > 10 {
					t.Errorf("the draw for u = %v is %v, want about %v", u, got, middle)
				}
			}
		})
	}
}

func TestTheLongestDrawIsTheLimitAlsoWhereAFloatCannotHoldIt(t *testing.T) {
	for _, longest := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 1<<54 + 3, 1<<54 + 1, 1<<53 + 1} {
		for _, jitter := range []riprap.Jitter{riprap.Full, riprap.Equal, riprap.Decorrelated, riprap.None} {
			b := riprap.Backoff{Base: longest, Max: longest, Jitter: jitter}
			if got := b.Delay(1, longest, 0); got != longest {
				t.Errorf("with jitter %v the longest draw up to %d is %d", jitter, longest, got)
			}
		}
	}
}

// Clients that failed together so long ago that all have reached the cap.
func TestJitterKeepsItsSpreadAtTheCap(t *testing.T) {
	const clients, longest = 10_000, 10 * time.Second
	for _, tt := range []struct {
		jitter riprap.Jitter
		base   time.Duration
		rounds int // after the cap was reached
	}{
		{riprap.Full, 1, 1},
		{riprap.Full, 100 * time.Millisecond, 1},
		{riprap.Full, time.Hour, 1},
		{riprap.Equal, 1, 1},
		{riprap.Equal, 100 * time.Millisecond, 1},
		{riprap.Equal, time.Hour, 1},
		{riprap.Decorrelated, 1, 1},
		{riprap.Decorrelated, 100 * time.Millisecond, 1},
		{riprap.Decorrelated, 100 * time.Millisecond, 20},
		{riprap.Decorrelated, 5 * time.Second, 20},
		{riprap.Decorrelated, longest, 20},
		{riprap.Decorrelated, time.Hour, 20},
	} {
		t.Run(fmt.Sprintf("%v from %v, %d rounds", tt.jitter, tt.base, tt.rounds), func(t *testing.T) {
			b := riprap.Backoff{Base: tt.base, Max: longest, Jitter: tt.jitter}
			r := rand.New(rand.NewPCG(1, 2))
			var windows [100]int
			for range clients {
				wait := longest
				for n := range tt.rounds {
					wait = b.Delay(100+n, wait, r.Float64())
				}
				windows[min(int(wait*100/longest), 99)]++
			}
			for i, n := range windows {
				if n >= clients*5/100 {
					t.Errorf("%d of %d clients wait between %d%% and %d%% of the cap, want less than 5%% of them", n, clients, i, i+1)
				}
			}
		})
	}
}

func waits(n int) (all []time.Duration) {
	o := riprap.Operation{Policy: &riprap.Policy{MaxAttempts: -1}}
	for range n {
		o.Begin(noon)
		wait, _ := o.Next(noon, errFlaky)
		all = append(all, wait)
	}
	return all
}

func TestEveryOperationAndEveryProcessDrawsItsOwnWaits(t *testing.T) {
	if os.Getenv("RIPRAP_TEST_PRINT_WAITS") != "" {
		fmt.Println("waits:", waits(5))
		return
	}
	seen := make(map[string]bool)
	add := func(who, line string) {
		if seen[line] {
			t.Errorf("%s draws the same waits as another: %s", who, line)
		}
		seen[line] = true
	}
	add("an operation", fmt.Sprint("waits: ", waits(5)))
	add("another operation", fmt.Sprint("waits: ", waits(5)))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		child := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), "RIPRAP_TEST_PRINT_WAITS=1")
		output, err := child.Output()
		if err != nil {
			t.Fatalf("the test started again: %v", err)
		}
		line, _, _ := strings.Cut(string(output), "\n")
		if !strings.HasPrefix(line, "waits: [") {
			t.Fatalf("the test started again prints %q, want its waits", line)
		}
		add("a process", line)
	}
}

func TestJitterNamesReadBackAsTheyWereWritten(t *testing.T) {
	for jitter, name := range map[riprap.Jitter]string{
		riprap.Full: "full", riprap.Equal: "equal", riprap.Decorrelated: "decorrelated", riprap.None: "none",
	} {
		text, err := jitter.MarshalText()
		if string(text) != name || jitter.String() != name || err != nil {
			t.Errorf("jitter %d is %q and %q, %v, want %q", int(jitter), text, jitter, err, name)
		}
		var back riprap.Jitter
		if err := back.UnmarshalText(text); back != jitter || err != nil {
			t.Errorf("UnmarshalText(%q) = %v, %v, want %v", text, back, err, jitter)
		}
	}
	for _, unknown := range []riprap.Jitter{-1, 4} {
		if text, err := unknown.MarshalText(); err == nil {
			t.Errorf("MarshalText of jitter %d = %q, want an error", int(unknown), text)
		}
		if got, want := unknown.String(), fmt.Sprintf("Jitter(%d)", int(unknown)); got != want {
			t.Errorf("String of an unknown jitter = %q, want %q", got, want)
		}
	}
	kept := riprap.Equal
	for _, text := range []string{"", "Full", "half", "full "} {
		if err := kept.UnmarshalText([]byte(text)); err == nil || kept != riprap.Equal {
			t.Errorf("UnmarshalText(%q) = %v and leaves %v, want an error and no change", text, err, kept)
		}
	}
}

func FuzzDelay(f *testing.F) {
	f.Add(int64(0), int64(0), 0.0, 1, int64(0), 0.5, 0)
	f.Add(int64(1), int64(math.MaxInt64), math.Inf(1), math.MaxInt, int64(math.MaxInt64), 0.0, 2)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 2.0, 64, int64(math.MinInt64), math.NaN(), 1)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64-1), 1e300, 2, int64(1), math.Nextafter(1, 0), 0)
	f.Add(int64(100*time.Millisecond), int64(20*time.Second), 1.5, 30, int64(time.Hour), 0.999, 3)
	f.Add(int64(1), int64(2), math.Nextafter(1, 2), -5, int64(-1), -0.1, 1)
	f.Add(int64(1)<<62, int64(math.MaxInt64), math.Nextafter(1, 2), 1000, int64(-1), 1.0, 3)
	f.Fuzz(func(t *testing.T, base, longest int64, factor float64, n int, prev int64, u float64, jitter int) {
		b := riprap.Backoff{Base: time.Duration(base), Max: time.Duration(longest), Factor: factor, Jitter: riprap.Jitter(jitter)}
		limit := b.Max
		if limit <= 0 {
			limit = 10 * time.Second
		}
		got := b.Delay(n, time.Duration(prev), u)
		if got <= 0 || got > limit {
			t.Errorf("%#v.Delay(%d, %d, %v) = %d, want more than 0 and at most %d", b, n, prev, u, got, limit)
		}
		if again := b.Delay(n, time.Duration(prev), u); again != got {
			t.Errorf("%#v.Delay(%d, %d, %v) = %d and then %d, want the same", b, n, prev, u, got, again)
		}
		if b.Jitter = riprap.None; n < math.MaxInt {
			before, after := b.Delay(n, time.Duration(prev), u), b.Delay(n+1, time.Duration(prev), u)
			if after < before {
				t.Errorf("%#v.Delay falls from %d to %d after failure %d, want no fall", b, before, after, n+1)
			}
		}
	})
}
