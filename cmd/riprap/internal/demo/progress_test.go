package demo

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

func TestProgressIsALineASecondAwayFromATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := standard(300)
		p := newProgress(&out)
		p.begin(s, sides)
		tally := newTally(s.Length)
		done := p.show("naive", tally)
		for range 3 {
			tally.count(arrived)
			tally.count(retried)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		done()
		p.end()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 6 || strings.Contains(out.String(), "\x1b") {
			t.Fatalf("after three seconds: got %d lines, want two of what it is, a head and three without control codes:\n%s", len(lines), &out)
		}
		if want := "naive      3.0 s         1          1          0          0   is down"; lines[5] != want {
			t.Errorf("after three seconds: got %q, want %q", lines[5], want)
		}
	})
}

func TestProgressStandsStillWhenTheTimeOfASideIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out)
		done := p.show("naive", newTally(2*time.Second))
		time.Sleep(5 * time.Second) // a busy machine needs longer to end the side
		synctest.Wait()
		done()
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("five seconds after the start of a side of two: got %d lines, want 2:\n%s", n, &out)
		}
	})
}

func TestProgressOnATerminalTakesItselfAway(t *testing.T) {
	var out bytes.Buffer
	s := standard(300)
	p := newProgress(&out)
	p.on.Terminal = true
	p.begin(s, sides)
	b := steady(s)
	p.update("naive", b[:10])
	first := out.String()
	if !strings.Contains(first, "naive      1.0 s") || !strings.Contains(first, "riprap  to come") {
		t.Errorf("during the first side: got\n%s", first)
	}
	p.update("naive", b[:20])
	if !strings.HasPrefix(out.String()[len(first):], "\r\x1b[3A\x1b[J") {
		t.Errorf("the second table: got %q, want it over the first", out.String()[len(first):])
	}
	p.end()
	if !strings.HasSuffix(out.String(), "\r\x1b[3A\x1b[J") {
		t.Errorf("at the end: got %q, want the table gone", out.String())
	}
}

func TestProgressFitsIntoANarrowTerminal(t *testing.T) {
	for _, live := range []bool{true, false} {
		var out bytes.Buffer
		s := standard(300)
		p := newProgress(&out)
		p.on.Terminal, p.on.Width = live, terminal.Narrowest
		p.begin(s, sides)
		p.update("naive", steady(s)[:85]) // in the fault with the longest name
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > terminal.Narrowest {
				t.Errorf("live %v, %d columns: got a line of %d: %q", live, terminal.Narrowest, n, line)
			}
		}
	}
}

func TestTheStateOfTheServiceIsNamed(t *testing.T) {
	s := standard(300)
	for at, want := range map[time.Duration]string{
		0: "is up", 2 * time.Second: "hangs", 2600 * time.Millisecond: "is down", 3800 * time.Millisecond: "is up",
		6500 * time.Millisecond: "answers late", 7 * time.Second: "is up", 8500 * time.Millisecond: "loses answers",
		10 * time.Second: "answers 429", 10500 * time.Millisecond: "is up",
	} {
		if got := s.state(at); got != want {
			t.Errorf("state(%v) = %q, want %q", at, got, want)
		}
	}
}
