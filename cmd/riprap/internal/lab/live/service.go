package live

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// A service answers requests from a queue. It works for callers that have left, unless its Admission says otherwise.
type service struct {
	sim.Service
	cut   sim.Trigger
	tally *tally

	mu       sync.Mutex // guards what follows
	work     *rand.Rand
	waiting  []*visit // the oldest first
	idle     int      // workers that wait for one
	over     bool
	more     sync.Cond // that waiting or over have changed
	handlers sync.WaitGroup
}

// A visit is a request that waits for its turn or for its work to be done.
type visit struct {
	came, until time.Duration   // until is when its caller leaves
	left        <-chan struct{} // closed when the caller has left
	done        chan struct{}   // closed by the worker
}

func newService(s *sim.Scenario, c *sim.Candidate, t *tally, work *rand.Rand) *service {
	v := &service{Service: s.Services[0], tally: t, work: work}
	if c.Admission != nil {
		v.Admission = *c.Admission
	}
	if len(s.Triggers) > 0 {
		v.cut = s.Triggers[0]
	}
	v.more.L = &v.mu
	return v
}

// ServeHTTP puts a request into the queue and waits for it. It returns earlier if the caller leaves, so that connections
// do not pile up; the queue does not hear of that.
func (v *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := v.tally.now()
	sent, until := stampOf(r.Header)
	if now < v.cut.From || sent >= v.cut.From+v.cut.For {
		v.tally.late(sent) // of those that the network held, it is the network that is late
	}
	a := &visit{came: now, until: until, left: r.Context().Done(), done: make(chan struct{})}
	if !v.enter(a) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer v.handlers.Done()
	select {
	case <-a.done:
		stamp(w.Header(), v.tally.now(), 0)
		io.WriteString(w, "done\n")
	case <-a.left:
		panic(http.ErrAbortHandler) // no answer, instead of an empty one
	}
}

// enter reports whether there is room for a visit.
func (v *service) enter(a *visit) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	full := v.Room != 0 && len(v.waiting) >= v.idle+max(v.Room, 0)
	v.tally.count(func(b *sim.Bin) {
		b.Reached++
		if full {
			b.Refused++
		}
	})
	if full || v.over {
		return false
	}
	v.handlers.Add(1)
	v.waiting = append(v.waiting, a)
	n := len(v.waiting)
	v.tally.count(func(b *sim.Bin) { b.Waiting = max(b.Waiting, n) })
	v.more.Signal()
	return true
}

// next takes out whose turn it is and says how long the work takes. It returns nil once the service is over.
func (v *service) next() (*visit, time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		v.idle++
		for len(v.waiting) == 0 && !v.over {
			v.more.Wait()
		}
		v.idle--
		if v.over {
			return nil, 0
		}
		i := 0
		if v.LIFO {
			i = len(v.waiting) - 1
		}
		a := v.waiting[i]
		v.waiting = slices.Delete(v.waiting, i, i+1)
		if !v.useless(a) {
			return a, v.Work.Draw(v.work)
		}
		v.tally.count(func(b *sim.Bin) { b.Dropped++ })
	}
}

// useless reports whether the service may see that nobody would wait for the work.
func (v *service) useless(a *visit) bool {
	if a.gone() {
		return v.Cancels || v.Drop
	}
	return v.Drop && a.until > 0 && a.until-v.tally.now() <= v.Margin
}

func (a *visit) gone() bool {
	select {
	case <-a.left:
		return true
	default:
		return false
	}
}

// run is a worker. Its work ends by the clock: where the machine wakes it late it catches up, so that the capacity is
// the scenario's.
func (v *service) run(ctx context.Context) {
	for due := time.Duration(0); ; {
		a, work := v.next()
		if a == nil {
			return
		}
		due = max(due, a.came) + work
		if !v.tally.wait(ctx, due) {
			return
		}
		v.tally.late(due)
		wasted := a.gone()
		v.tally.count(func(b *sim.Bin) {
			b.Served++
			if wasted {
				b.Wasted++
			}
		})
		close(a.done)
	}
}
