package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A progress says on stderr how far the demo is. A terminal gets a table that is drawn anew in place and goes away at
// the end; anything else gets a line each second.
type progress struct {
	w        io.Writer
	live     bool
	paint    palette
	scenario scenario
	lines    []string // the table's rows, one for each side
	names    []string
	drawn    bool
}

func newProgress(w io.Writer) *progress {
	on := look(w)
	return &progress{w: w, live: on.terminal && on.width >= usual, paint: on.palette}
}

// begin is called once, before the first side runs.
func (p *progress) begin(s scenario, sides []side) {
	p.scenario = s
	for _, d := range sides {
		p.names = append(p.names, d.name)
		p.lines = append(p.lines, pad(d.name, 8)+"to come")
	}
	fmt.Fprintf(p.w, "A service that can answer %.0f requests a second, %d callers who make %.0f calls a second. About %.0f s.\n",
		s.capacity(), s.Callers, s.rate(), (time.Duration(len(sides)) * s.Length).Seconds())
	if !p.live {
		fmt.Fprintln(p.w, head)
	}
}

// show follows the tally of a side until the function that it returns is called.
func (p *progress) show(name string, t *tally) (done func()) {
	every := time.Second
	if p.live {
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
	line := status(p.scenario, name, b, p.paint)
	if !p.live {
		fmt.Fprintln(p.w, line)
		return
	}
	for i := range p.names {
		if p.names[i] == name {
			p.lines[i] = line
		}
	}
	p.erase()
	fmt.Fprintln(p.w, p.paint.quiet(head))
	for _, line := range p.lines {
		fmt.Fprintln(p.w, line)
	}
	p.drawn = true
}

// erase takes the table away; the cursor is then where its first line was.
func (p *progress) erase() {
	if p.drawn {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", 1+len(p.lines))
	}
	p.drawn = false
}

// end is called once, after the last side.
func (p *progress) end() { p.erase() }

const head = "            time    sent/s  retries/s  answers/s  waiting   service"

// status is the row of a side: its last second in figures.
func status(s scenario, name string, b series, p palette) string {
	n := len(b)
	last := func(e event) int { return b.sum(e, n-index(time.Second), n) }
	sent := fmt.Sprintf("%8d", last(arrived)+last(refused))
	retries := p.retries(fmt.Sprintf("%9d", last(retried)))
	answers := p.good(fmt.Sprintf("%9d", last(answered)))
	return strings.Join([]string{
		pad(name, 8) + left(seconds(time.Duration(n)*step), 8), sent, retries, answers, fmt.Sprintf("%7d", b.highest(longest, n-index(time.Second), n)), " " + s.state(time.Duration(n)*step),
	}, "  ")
}

// state is what the service is doing at a time.
func (s scenario) state(at time.Duration) string {
	for _, f := range s.Faults {
		switch {
		case at < f.From || at >= f.until():
		case f.Kind == throttle:
			return "answers 429"
		case at < f.From+f.Hangs:
			return "hangs"
		default:
			return "is down"
		}
	}
	return "is up"
}
