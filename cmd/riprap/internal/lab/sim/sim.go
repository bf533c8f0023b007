// Package sim simulates services and those who call them: events in virtual time, one seed, one result. Whether, when
// and how often a call is tried again is decided by riprap.Operation, with its Backoff and its Budget: nothing of that
// is written a second time here. What other libraries decide by comes in as a Rival.
package sim

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/riprap-go/riprap"
)

// The simulated time begins far from today. A Budget counts time from the start of the process then no more but
// absolutely, so that a simulation with the same seed meets the same slots of its window in every run.
var epoch = time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	errFailed = errors.New("the service failed")
	errLate   = context.DeadlineExceeded
)

// Run simulates a scenario, which must pass Check, with everybody calling as the candidate does. The same seed gives
// the same Result. It is nil if ctx ended it early: a policy that never gives up may take for ever. Any number of
// simulations may run at once, also of the same scenario and candidate.
func Run(ctx context.Context, s *Scenario, c *Candidate, seed uint64) *Result {
	return newWorld(s, c, seed).run(ctx)
}

func (w *world) run(ctx context.Context) *Result {
	end := cmp.Or(w.scenario.Length, farthest)
	for w.begin(); w.agenda.len() > 0; {
		e := w.agenda.pop()
		if e.at >= end {
			break
		}
		if w.result.Events++; w.result.Events%(1<<14) == 0 && ctx.Err() != nil {
			return nil
		}
		w.happen(&e)
	}
	w.result.Last = w.now
	for w.binEnds < w.scenario.Length {
		w.nextBin()
	}
	w.result.Total()
	w.result.measure(w.scenario)
	return w.result
}

// A world is the state of a simulation. All randomness comes from one source.
type world struct {
	scenario *Scenario
	now      time.Duration // since the beginning
	random   *rand.Rand
	agenda   agenda
	made     uint64 // events
	calls    []*[chunk]call
	free     []int32 // calls that are over
	hops     []hop
	cut      during // of the last service; each is empty if there is none
	down     during
	slow     during
	slowness float64
	lost     during
	losses   float64 // share of the answers
	result   *Result
	bin      *Bin
	binEnds  time.Duration
	onward   uint8 // the last hop
}

// A during is a span of time.
type during struct{ from, until time.Duration }

func (d *during) has(now time.Duration) bool { return now < d.until && now >= d.from }

// A hop is a service and the processes that call it.
type hop struct {
	service   service
	processes []*process
}

// Calls are kept in chunks, so that they stay where they are when there are more of them.
const chunk = 256

// A call is an operation on its way through its attempts.
type call struct {
	riprap.Operation
	process *process
	until   time.Duration // when the caller leaves the present attempt; zero means never
	turn    uint32        // changes when an attempt is over; what comes for an older one comes too late
	hop     uint8
	isRetry bool   // or serves one
	inside  bool   // of a crowd
	seen    uint32 // version of the row
	failed  error  // how the last attempt ended, for a rival
	client  int32  // who makes the next call after this one; -1 for nobody
	serves  visit  // of the hop before
}

func (w *world) call(i int32) *call { return &w.calls[i/chunk][i%chunk] }

// current reports whether the caller still waits for an attempt.
func (w *world) current(v visit) bool { return w.call(v.call).turn == v.turn }

func newWorld(s *Scenario, c *Candidate, seed uint64) *world {
	w := &world{scenario: s, random: rand.New(rand.NewPCG(seed, 0)), onward: uint8(len(s.Services) - 1)}
	w.result = newResult(s)
	for _, t := range s.Triggers {
		switch on := (during{t.From, t.until()}); t.Kind {
		case Down:
			w.down = on
		case Cut:
			w.cut = on
		case Slow:
			w.slow, w.slowness = on, t.Factor
		case Lost:
			w.lost, w.losses = on, t.Factor
		}
	}
	for i, v := range s.Services {
		if c.Admission != nil && v.Kind != Relay {
			v.Admission = *c.Admission
		}
		h := hop{service: w.newService(v, uint8(i))}
		for range s.processes() {
			h.processes = append(h.processes, w.newProcess(c, s.Timeout))
		}
		w.hops = append(w.hops, h)
	}
	return w
}

// begin makes the first events.
func (w *world) begin() {
	w.nextBin()
	a := &w.scenario.Arrivals
	if a.Rate > 0 {
		w.nextArrival()
		return
	}
	for i := range a.Clients {
		wait := time.Duration(0)
		if !a.Once {
			wait = a.Pause.Draw(w.random)
		}
		w.after(wait, arrive, visit{call: int32(i)}, 0)
	}
}

// after makes an event. What is so far away that nobody will see it may as well be a little nearer.
func (w *world) after(wait time.Duration, k kind, v visit, hop uint8) {
	w.made++
	w.agenda.push(newEvent(w.now+min(wait, farthest), w.made, k, v, hop))
}

func (w *world) happen(e *event) {
	w.now = e.at
	for w.now >= w.binEnds {
		w.nextBin()
	}
	switch e.kind() {
	case arrive:
		if e.call < 0 {
			w.nextArrival()
		}
		w.bin.Calls++
		w.newCall(0, e.call, false, visit{})
	case reach:
		w.reached(e.visit, e.hop())
	case worked:
		w.hops[e.hop()].service.worked(e.visit)
	case good:
		w.ended(e.visit, nil)
	case bad:
		w.ended(e.visit, errFailed)
	case late:
		if w.current(e.visit) {
			w.hops[e.hop()].service.left(e.visit)
			w.ended(e.visit, errLate)
		}
	case again:
		w.attempt(e.call)
	}
}

func (w *world) time() time.Time { return epoch.Add(w.now) }
