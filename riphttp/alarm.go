package riphttp

import (
	"context"
	"sync"
	"time"
)

// An alarm rings once, at a time that may be moved and called off as often as one likes. To do that with a time.Timer alone costs more
// than the rest of a fast exchange: a timer that is stopped stays among those of its processor until these are looked through,
// and one that is set again wakes another processor to do so. Here the timer stays as it is where that does no harm, and looks
// when it fires whether its time has come. The zero alarm is off.
type alarm struct {
	cancel context.CancelCauseFunc // is what it does, with errStruck

	mu    sync.Mutex
	due   time.Time   // zero means off
	fires time.Time   // when the timer does; zero means that it does not
	timer *time.Timer // nil until there is a time
	rung  bool
}

// set lets the alarm ring after d from now.
func (a *alarm) set(now time.Time, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = now.Add(d)
	switch {
	case a.timer == nil:
		a.fires = a.due
		a.timer = time.AfterFunc(d, a.fired)
	case a.fires.IsZero() || a.due.Before(a.fires):
		a.fires = a.due
		a.timer.Reset(d)
	}
}

// off calls the alarm off and reports whether it has rung.
func (a *alarm) off() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = time.Time{}
	return a.rung
}

// end calls the alarm off for good and frees what it holds.
func (a *alarm) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due, a.fires = time.Time{}, time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *alarm) fired() {
	if a.comes() {
		a.cancel(errStruck)
	}
}

// comes reports whether the time has come. If it has not, the timer goes on, or stays still until it is needed.
func (a *alarm) comes() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fires = time.Time{}
	if a.due.IsZero() {
		return false
	}
	if left := time.Until(a.due); left > 0 {
		a.fires = a.due
		a.timer.Reset(left)
		return false
	}
	a.due = time.Time{}
	a.rung = true
	return true
}
