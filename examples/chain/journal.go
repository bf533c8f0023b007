package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// A visit is what one service saw of one request, or the database of one attempt.
type visit struct {
	hop        string
	had        time.Duration // the time there was left when it began
	began, end time.Time     // end is zero while it is at work
	cancelled  bool          // its context had ended by then
	outcome    string
}

// A journal keeps the visits of each request, by its correlation id, in the order in which they began.
type journal struct {
	mu     sync.Mutex
	visits map[string][]*visit
}

// begin notes that a hop begins to work in a context; end notes what became of it.
func (j *journal) begin(ctx context.Context, hop string) (end func(outcome string)) {
	v := &visit{hop: hop, had: deadline.Left(ctx), began: time.Now()}
	id := deadline.CorrelationID(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.visits == nil {
		j.visits = map[string][]*visit{}
	}
	j.visits[id] = append(j.visits[id], v)

	return func(outcome string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		v.end, v.cancelled, v.outcome = time.Now(), ctx.Err() != nil, outcome
	}
}

// of returns the visits of a request, and whether all of them have ended.
func (j *journal) of(id string) (visits []visit, over bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	over = true
	for _, v := range j.visits[id] {
		visits = append(visits, *v)
		over = over && !v.end.IsZero()
	}
	return visits, over
}

// table writes the visits of a request, with times in milliseconds from the moment it was sent. What was not reached is in
// it too.
func table(w io.Writer, sent time.Time, visits []visit) {
	row := func(cells ...any) { fmt.Fprintf(w, "   %-8v  %7v  %5v  %5v  %-9v  %v\n", cells...) }
	row("hop", "left ms", "from", "until", "cancelled", "what became of it")
	for _, s := range figures.Services {
		reached := false
		for _, v := range visits {
			if v.hop != s.Name {
				continue
			}
			reached = true
			cancelled := "no"
			if v.cancelled {
				cancelled = "yes"
			}
			row(v.hop, millis(v.had), millis(v.began.Sub(sent)), millis(v.end.Sub(sent)), cancelled, v.outcome)
		}
		if !reached {
			row(s.Name, "-", "-", "-", "-", "not reached")
		}
	}
}

func millis(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }
