package demo

import (
	"context"
	"sync"
	"time"
)

// step is the width of one bin of the time series.
const step = 100 * time.Millisecond

// An event is one thing that is counted.
type event int

const (
	made       event = iota // calls, each with all its sends
	retried                 // sends of a call after its first
	arrived                 // requests that reached the service
	refused                 // sends that reached no service, because nothing listened
	throttled               // requests that the service answered 429
	overflowed              // requests that the service turned away because its queue was full
	worked                  // requests that the service worked on to the end
	wasted                  // of those, the ones whose caller had gone
	answered                // calls that got their answer, counted when they got it
	failed                  // calls that ended without one, counted when they ended
	kept                    // calls that got their answer, counted when they were made
	lost                    // calls that ended without one, counted when they were made
	longest                 // most requests seen waiting in the service; this and the next are no counts but the highest seen
	behind                  // milliseconds by which a call was made or worked on too late, because this machine had no time
	events
)

// A bin is what happened in one step of time.
type bin [events]int

// A series is a side's run in bins, from its start.
type series []bin

// A tally counts while a side runs. It may be used from any goroutine.
type tally struct {
	start time.Time

	mu   sync.Mutex
	bins series
}

func newTally(length time.Duration) *tally {
	return &tally{start: time.Now(), bins: make(series, length/step)}
}

// now is the time since the side began.
func (t *tally) now() time.Duration { return time.Since(t.start) }

// wait returns at the time given, or early with the reason why ctx is done.
func (t *tally) wait(ctx context.Context, at time.Duration) error {
	return sleep(ctx, at-t.now())
}

// count counts e now. What happens after the end of the run is not counted.
func (t *tally) count(e event) { t.countAt(e, t.now()) }

func (t *tally) countAt(e event, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := int(at / step); i < len(t.bins) {
		t.bins[i][e]++
	}
}

// ended counts the end of the call that was made at the time given.
func (t *tally) ended(at time.Duration, err error) {
	if err != nil {
		t.count(failed)
		t.countAt(lost, at)
		return
	}
	t.count(answered)
	t.countAt(kept, at)
}

// highest notes a value of which each bin keeps the highest.
func (t *tally) highest(e event, n int) {
	at := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := int(at / step); i < len(t.bins) {
		t.bins[i][e] = max(t.bins[i][e], n)
	}
}

// read is what has been counted so far, up to the bin that is still being filled.
func (t *tally) read() series {
	full := int(t.now() / step)
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(series(nil), t.bins[:min(full, len(t.bins))]...)
}
