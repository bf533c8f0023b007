package terminal

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	silence  = 2 * time.Second        // work that is done by then needs no progress
	redrawn  = 100 * time.Millisecond // at most so often
	reported = 5 * time.Second        // where nothing can be drawn anew; and what stands still so long is explained
)

// A Progress says how far work is that takes long and has a known number of steps. For two seconds it says nothing. Then a
// terminal gets a bar that is drawn anew in place and goes away at the end; anything else gets a line every five seconds, if
// there is something new to say.
//
// Until End nothing else may write where it writes.
type Progress struct {
	w     io.Writer
	on    Screen
	what  string
	total int
	quiet bool   // about the time that is left
	waits string // what for, where no step is done for five seconds
	start time.Time
	done  atomic.Int64 // read alone, so that its order with anything else does not matter
	end   func()
}

// NewProgress begins to follow work on w, which is stderr as a rule. What is a word or two for the work, total the number
// of its steps. End must be called.
func NewProgress(w io.Writer, what string, total int) *Progress {
	return startProgress(w, Look(w), what, total)
}

// NewCount is NewProgress for steps that are taken side by side, the long ones as well as the short: it says how many are
// done, and nothing of the time that is left, which those that are done do not tell. Waits says what for, once no step was
// done for five seconds.
func NewCount(w io.Writer, what string, total int, waits string) *Progress {
	return startCount(w, Look(w), what, total, waits)
}

func startCount(w io.Writer, on Screen, what string, total int, waits string) *Progress {
	return follow(&Progress{w: w, on: on, what: what, total: total, quiet: true, waits: waits, start: time.Now()})
}

func startProgress(w io.Writer, on Screen, what string, total int) *Progress {
	return follow(&Progress{w: w, on: on, what: what, total: total, start: time.Now()})
}

func follow(p *Progress) *Progress {
	stop := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { p.show(stop) })
	p.end = sync.OnceFunc(func() {
		close(stop)
		shown.Wait()
	})
	return p
}

// Done says that n more steps are done. It never waits for the screen and may be called from any goroutine.
func (p *Progress) Done(n int) { p.done.Add(int64(n)) }

// End takes the bar away; nothing is written once it has returned. It may be called from any goroutine, and more than once.
func (p *Progress) End() { p.end() }

func (p *Progress) show(stop <-chan struct{}) {
	drawn, said := "", ""
	stands, moved := false, p.start
	for wait, done := silence, 0; ; {
		select {
		case <-time.After(wait):
		case <-stop:
			if drawn != "" {
				io.WriteString(p.w, "\r\x1b[K")
			}
			return
		}
		if now := p.steps(); now != done {
			done, moved = now, time.Now()
		}
		if !stands && p.waits != "" && done < p.total && time.Since(moved) >= reported {
			stands = true // and is said from now on, for it would flicker
		}
		if !p.on.Terminal {
			wait = reported
			if line := p.line(done); line != said {
				fmt.Fprintln(p.w, line)
				said = line
			} else if stands {
				fmt.Fprintf(p.w, "%s, %s\n", line, p.waits)
				p.waits, stands = "", false // once is enough
			}
			continue
		}
		wait = redrawn
		if bar := p.bar(done, stands); bar != drawn {
			// A terminal narrower than the bar must cut it off: a line that it broke in two could not be drawn over. All in
			// one write, so that it never stays that way.
			io.WriteString(p.w, "\r\x1b[?7l"+bar+"\x1b[K\x1b[?7h")
			drawn = bar
		}
	}
}

// line is for where nothing can be drawn anew.
func (p *Progress) line(done int) string {
	line := fmt.Sprintf("%s: %d of %d", p.what, done, p.total)
	if left := p.left(done); left != "" {
		line += ", " + left
	}
	return line
}

// bar is for a terminal. Where nothing moves it says what that waits for, if there is room.
func (p *Progress) bar(done int, stands bool) string {
	const widest, least = 40, 5 // columns of the blocks; with fewer they say nothing
	total := strconv.Itoa(p.total)
	count := Left(strconv.Itoa(done), len(total)) + " of " + total
	tail, reserved := p.left(done), "about 99 min left"
	if stands && Columns(p.what+between+count+between+p.waits) <= p.on.Width {
		tail, reserved = p.waits, p.waits
	}
	parts := []string{p.what}
	room := p.on.Width - Columns(p.what+between+between+count+between+reserved)
	if room = min(room, widest); room >= least {
		full := int(float64(room) * float64(done) / float64(max(1, p.total)))
		parts = append(parts, strings.Repeat("█", full)+p.on.Palette.Quiet(strings.Repeat("░", room-full)))
	}
	parts = append(parts, count)
	if tail != "" {
		parts = append(parts, tail)
	}
	return strings.Join(parts, between)
}

// steps is how many are done, and never more than there are.
func (p *Progress) steps() int { return int(min(p.done.Load(), int64(p.total))) }

// left says how long the rest takes if its steps take as long as those that are done. It is empty if nobody knows.
func (p *Progress) left(done int) string {
	if p.quiet || done <= 0 || done >= p.total {
		return ""
	}
	return remaining(time.Since(p.start).Seconds() * float64(p.total-done) / float64(done))
}

// remaining names a time, rounded up: in seconds as long as they are at most 99, then in minutes, then in hours.
func remaining(seconds float64) string {
	switch {
	case seconds <= 99:
		return fmt.Sprintf("about %.0f s left", math.Ceil(seconds))
	case seconds <= 99*60:
		return fmt.Sprintf("about %.0f min left", math.Ceil(seconds/60))
	default:
		return fmt.Sprintf("about %.0f h left", math.Ceil(seconds/3600))
	}
}
