package demo

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"
)

// step is the width of one bin of the time series.
const step = 100 * time.Millisecond

// An event is one thing that is counted.
type event int

const (
	made       event = iota // clicks, each with all that is sent for it
	retried                 // sends of a layer's call after its first, in all layers
	arrived                 // requests that reached the payments service
	refused                 // sends that reached no payments service, because nothing listened
	throttled               // requests that the payments service answered 429
	overflowed              // requests that it turned away because its queue was full
	worked                  // requests that it worked on to the end, and charged
	wasted                  // of those, the ones whose caller had gone
	unheard                 // of those, the ones whose answer was lost on purpose
	answered                // clicks whose shopper was told that they are paid, counted when told
	failed                  // clicks whose shopper was told that they failed, counted when told
	doubted                 // clicks whose shopper was told that it is not known, counted when told
	kept                    // the same as answered, counted when the click was made
	lost                    // the same as failed, counted when the click was made
	unclear                 // the same as doubted, counted when the click was made
	longest                 // most requests seen waiting in the service; this and the next are no counts but the highest seen
	behind                  // milliseconds by which a click was made, passed on or worked on too late, because this machine had no time
	events
)

// A bin is what happened in one step of time.
type bin [events]int

// A series is a side's run in bins, from its start.
type series []bin

// A tally counts while a side runs. It may be used from any goroutine.
type tally struct {
	mu    sync.Mutex
	start time.Time
	bins  series
	told  map[int]told // what the shopper of each click was told
	err   error        // the first thing that went wrong with the demo itself
}

func newTally(length time.Duration) *tally {
	return &tally{start: time.Now(), bins: make(series, length/step), told: make(map[int]told)}
}

// begin lets the side's time start now.
func (t *tally) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = time.Now()
}

// at is a time in the side's time.
func (t *tally) at(when time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return when.Sub(t.start)
}

// now is the time since the side began.
func (t *tally) now() time.Duration { return t.at(time.Now()) }

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

// ended counts the end of a click that was made at the time given.
func (t *tally) ended(click int, at time.Duration, outcome told) {
	t.mu.Lock()
	t.told[click] = outcome
	t.mu.Unlock()
	switch outcome {
	case paid:
		t.count(answered)
		t.countAt(kept, at)
	case unsure:
		t.count(doubted)
		t.countAt(unclear, at)
	default:
		t.count(failed)
		t.countAt(lost, at)
	}
}

// outcomes is what was told of each click that has ended.
func (t *tally) outcomes() map[int]told {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.told)
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

// fail notes that the demo itself cannot do what it should.
func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = cmp.Or(t.err, err)
}

// broken returns the first such error.
func (t *tally) broken() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// read is what has been counted so far, up to the bin that is still being filled.
func (t *tally) read() series {
	full := int(t.now() / step)
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(series(nil), t.bins[:min(full, len(t.bins))]...)
}
