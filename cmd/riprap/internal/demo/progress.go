package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// A progress says on stderr how far the demo is. A terminal gets a table that is drawn anew in place and goes away at
// the end; anything else gets a line each second.
type progress struct {
	w        io.Writer
	on       terminal.Screen
	scenario scenario
	lines    []string // the table's rows, one for each side
	names    []string
	drawn    bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, on: terminal.Look(w)}
}

// begin is called once, before the first side runs.
func (p *progress) begin(s scenario, sides []side) {
	p.scenario = s
	for _, d := range sides {
		p.names = append(p.names, d.name)
		p.lines = append(p.lines, terminal.Pad(d.name, 8)+"to come")
	}
	text := fmt.Sprintf("%d shoppers who make %.0f clicks a second, a gateway, orders, and payments, which can charge %.0f a second. About %.0f s.",
		s.Callers, s.rate(), s.capacity(), (time.Duration(len(sides)) * s.Length).Seconds())
	for _, line := range terminal.Wrap(text, p.on.Width) {
		fmt.Fprintln(p.w, line)
	}
	if !p.on.Terminal {
		fmt.Fprintln(p.w, p.head())
	}
}

// show follows the tally of a side until the function that it returns is called.
func (p *progress) show(name string, t *tally) (done func()) {
	every := time.Second
	if p.on.Terminal {
		every = 2 * step
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for shown := 0; ; {
			select {
			case <-ticker.C:
				if b := t.read(); len(b) > shown { // else the side's time is over and only its end takes longer
					shown = len(b)
					p.update(name, b)
				}
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func (p *progress) update(name string, b series) {
	line := p.status(name, b)
	if !p.on.Terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	for i := range p.names {
		if p.names[i] == name {
			p.lines[i] = line
		}
	}
	p.erase()
	fmt.Fprintln(p.w, p.on.Palette.Quiet(p.head()))
	for _, line := range p.lines {
		fmt.Fprintln(p.w, line)
	}
	p.drawn = true
}

// erase takes the table away; the cursor is then where its first line was. A ^C that the terminal shows has moved it
// from the left edge.
func (p *progress) erase() {
	if p.drawn {
		fmt.Fprintf(p.w, "\r\x1b[%dA\x1b[J", 1+len(p.lines))
	}
	p.drawn = false
}

// end is called once, after the last side.
func (p *progress) end() { p.erase() }

// short reports whether there is no room for the state of payments beside the figures.
func (p *progress) short() bool { return p.on.Width < terminal.Usual }

func (p *progress) head() string {
	const figures = "            time    sent/s  retries/s     paid/s  in flight"
	if p.short() {
		return figures
	}
	return figures + "   payments"
}

// status is the row of a side: its last second in figures.
func (p *progress) status(name string, b series) string {
	n := len(b)
	last := func(e event) int { return b.sum(e, n-index(time.Second), n) }
	sent := fmt.Sprintf("%8d", last(arrived)+last(refused))
	retries := p.on.Palette.Retries(fmt.Sprintf("%9d", last(retried)))
	answers := p.on.Palette.Good(fmt.Sprintf("%9d", last(answered)))
	inFlight := fmt.Sprintf("%9d", slices.Max(append(b.inFlight()[max(0, n-index(time.Second)):], 0)))
	at := time.Duration(n) * step
	row := strings.Join([]string{terminal.Pad(name, 8) + terminal.Left(seconds(at), 8), sent, retries, answers, inFlight}, "  ")
	if p.short() {
		return row
	}
	return row + "   " + p.scenario.state(at)
}

// state is what the payments service is doing at a time.
func (s scenario) state(at time.Duration) string {
	for _, f := range s.Faults {
		switch {
		case at < f.From || at >= f.until():
		case f.Kind == throttle:
			return "answers 429"
		case f.Kind == slow:
			return "answers late"
		case f.Kind == loss:
			return "loses answers"
		case at < f.From+f.Hangs:
			return "hangs"
		default:
			return "is down"
		}
	}
	return "is up"
}
