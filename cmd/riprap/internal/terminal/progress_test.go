package terminal

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// onTerminal is a usual terminal without colors.
var onTerminal = Screen{Terminal: true, Width: 80}

// A record is what has been written. It may be read while a Progress writes.
type record struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// wait lets time pass, and what it wakes run.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestShortWorkShowsNoProgress(t *testing.T) {
	for name, on := range map[string]Screen{"terminal": onTerminal, "file": {Width: 80}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out record
				p := startProgress(&out, on, "playing", 10)
				p.Done(9)
				wait(2*time.Second - 1)
				p.End()
				if out.String() != "" {
					t.Errorf("work of just under two seconds: got %q, want nothing", &out)
				}
			})
		})
	}
}

func TestProgressIsALineEveryFiveSecondsAwayFromATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := NewProgress(&out, "playing", 40)
		wait(2 * time.Second)
		p.Done(10)
		wait(5*time.Second - 1)
		if want := "playing: 0 of 40\n"; out.String() != want {
			t.Errorf("after almost seven seconds: got %q, want %q", &out, want)
		}
		wait(1)
		p.Done(100)
		wait(5 * time.Second)
		p.End()
		wait(time.Minute)
		if want := "playing: 0 of 40\nplaying: 10 of 40, about 21 s left\nplaying: 40 of 40\n"; out.String() != want {
			t.Errorf("after twelve seconds: got %q, want %q", &out, want)
		}
	})
}

func TestProgressOnATerminalIsABarThatTakesItselfAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := startProgress(&out, onTerminal, "playing", 400)
		p.Done(80)
		wait(2 * time.Second)
		want := "\r\x1b[?7lplaying  ████████" + strings.Repeat("░", 32) + "   80 of 400  about 8 s left\x1b[K\x1b[?7h"
		if out.String() != want {
			t.Errorf("80 of 400 after two seconds: got %q, want %q", &out, want)
		}
		p.End()
		if !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("at the end: got %q, want the bar gone", &out)
		}
		n := len(out.String())
		p.End()
		p.Done(1)
		wait(time.Minute)
		if len(out.String()) != n {
			t.Errorf("after the end: got %q more, want nothing", out.String()[n:])
		}
	})
}

func TestACountSaysNothingOfTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := NewCount(&out, "runs", 40, "")
		p.Done(10)
		wait(2 * time.Second)
		p.End()
		if want := "runs: 10 of 40\n"; out.String() != want {
			t.Errorf("10 of 40 after two seconds: got %q, want %q", &out, want)
		}
	})
}

func TestWhatStandsStillIsExplainedOnceAwayFromATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := NewCount(&out, "runs", 40, "waiting for rain")
		p.Done(10)
		wait(20 * time.Second)
		p.Done(1)
		wait(time.Minute)
		p.Done(29)
		wait(time.Minute)
		p.End()
		if want := "runs: 10 of 40\nruns: 10 of 40, waiting for rain\nruns: 11 of 40\nruns: 40 of 40\n"; out.String() != want {
			t.Errorf("10, 11 and 40 of 40, each for a while: got %q, want %q", &out, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := NewCount(&out, "runs", 40, "waiting for rain")
		for range 20 {
			p.Done(1)
			wait(time.Second)
		}
		p.End()
		if strings.Contains(out.String(), "rain") || strings.Count(out.String(), "\n") != 4 {
			t.Errorf("a step a second, for 20 seconds: got %q, want four lines that explain nothing", &out)
		}
	})
}

func TestWhatStandsStillIsExplainedBesideTheBar(t *testing.T) {
	for width, want := range map[int]string{
		80: "runs  █████████" + strings.Repeat("░", 30) + "  10 of 40  " + "waiting for a long rain",
		40: "runs  10 of 40  waiting for a long rain",
		30: "runs  10 of 40",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out record
			p := startCount(&out, Screen{Terminal: true, Width: width}, "runs", 40, "waiting for a long rain")
			p.Done(10)
			wait(5 * time.Second)
			if strings.Contains(out.String(), "rain") {
				t.Errorf("%d columns, after five seconds, of which less stood still: got %q", width, &out)
			}
			wait(time.Minute)
			n := strings.Count(out.String(), "\r")
			_, bar, _ := strings.Cut(out.String()[strings.LastIndex(out.String(), "\r"):], "\x1b[?7l")
			if bar, _, _ = strings.Cut(bar, "\x1b"); bar != want || n > 2 {
				t.Errorf("%d columns, after a minute: got %q, drawn %d times, want %q, drawn twice", width, bar, n, want)
			}
			p.End()
		})
	}
}

func TestABarIsDrawnAtMostTenTimesASecondAndOnlyIfItChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := startProgress(&out, onTerminal, "playing", 1_000_000)
		wait(2*time.Second - 1)
		for range 1000 { // a second
			p.Done(1)
			wait(time.Millisecond)
		}
		if n := strings.Count(out.String(), "\r"); n != 10 {
			t.Errorf("within a second of a step a millisecond: drawn %d times, want 10", n)
		}
		p.End()
	})
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := startProgress(&out, onTerminal, "playing", 10)
		wait(10 * time.Second)
		if n := strings.Count(out.String(), "\r"); n != 1 {
			t.Errorf("within ten seconds without a step: drawn %d times, want once", n)
		}
		p.End()
	})
}

func TestStepsAreCountedFromAnyGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out record
		p := startProgress(&out, onTerminal, "playing", 1000)
		var workers sync.WaitGroup
		for range 10 {
			workers.Go(func() {
				for range 30 {
					time.Sleep(100 * time.Millisecond)
					p.Done(3)
				}
			})
		}
		workers.Wait()
		wait(redrawn)
		p.End()
		if !strings.Contains(out.String(), " 900 of 1000  about ") {
			t.Errorf("ten goroutines of 90 steps: got %q, want 900 of 1000", &out)
		}
	})
}

func TestABarFitsOnItsScreen(t *testing.T) {
	for _, width := range []int{0, 60, 80, 120} {
		for _, what := range []string{"", "playing", strings.Repeat("long ", 5)} {
			for _, done := range []int{0, 1, 50, 99, 100, 1000} {
				synctest.Test(t, func(t *testing.T) {
					p := startProgress(io.Discard, Screen{Terminal: true, Width: width}, what, 100)
					defer p.End()
					p.Done(done)
					time.Sleep(time.Second)
					bar := p.bar(p.steps(), false)
					if n := Columns(bar); width > 0 && n > width {
						t.Errorf("%d columns: got a bar of %d: %q", width, n, bar)
					}
					blocks := strings.Count(bar, "█") + strings.Count(bar, "░")
					if width > 0 && len(what) < 10 && blocks < 20 || blocks > 40 {
						t.Errorf("%d columns: got %d blocks, want 20 to 40: %q", width, blocks, bar)
					}
					if full := strings.Count(bar, "█"); (full == blocks) != (done >= 100) && blocks > 0 {
						t.Errorf("%d of 100: got %d blocks of %d full", done, full, blocks)
					}
				})
			}
		}
	}
}

func TestWorkWithoutStepsHasABarToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startProgress(io.Discard, onTerminal, "playing", 0)
		defer p.End()
		if bar := p.bar(p.steps(), false); !strings.HasSuffix(bar, "░  0 of 0") {
			t.Errorf("no steps: got %q, want an empty bar", bar)
		}
	})
}

func TestTheRestIsNamedInItsUnit(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.001: "about 1 s left", 1.5: "about 2 s left", 99: "about 99 s left", 99.5: "about 2 min left",
		120: "about 2 min left", 130: "about 3 min left", 99 * 60: "about 99 min left", 100 * 60: "about 2 h left", 7300: "about 3 h left", 1e6: "about 278 h left",
	} {
		if got := remaining(seconds); got != want {
			t.Errorf("remaining(%v) = %q, want %q", seconds, got, want)
		}
	}
}
