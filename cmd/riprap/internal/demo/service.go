package demo

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A service is the payments service. It charges one request after another from a queue, as fast as its capacity allows. It is
// what many services are: it knows nothing of keys and charges whatever arrives, it accepts more than it can do in time,
// and it goes on working for callers that have long given up, because nothing in it asks whether they are still there. A
// service is one run of a process: once stopped, a new one takes its place.
type service struct {
	work   time.Duration         // that one request takes
	charge func(click int) error // writes it into the ledger
	tally  *tally
	queue  chan *job
	hung   chan struct{} // closed once the process hangs
	over   chan struct{} // closed once the process is gone
	asking atomic.Int64  // the Retry-After of the 429 that every request gets, in nanoseconds; zero: none
	later  atomic.Int64  // by how much an answer comes later than its charge, in nanoseconds
	losing atomic.Bool   // answers do not arrive
	worker sync.WaitGroup
}

// A job is a request in the queue.
type job struct {
	click   int
	gone    <-chan struct{} // closed when the caller has gone; looked at to count wasted work, never to save it
	done    chan struct{}   // closed by the worker
	charged bool            // set before that
}

// startService starts the worker, which ends with stop.
func startService(s scenario, charge func(click int) error, t *tally) *service {
	v := &service{
		work:   s.work(),
		charge: charge,
		tally:  t,
		queue:  make(chan *job, s.waiting()),
		hung:   make(chan struct{}),
		over:   make(chan struct{}),
	}
	v.worker.Go(v.run)
	return v
}

// hang makes the process stop working while it still accepts requests. Nothing but stop ends that.
func (v *service) hang() { close(v.hung) }

// throttle answers every new request with a 429 that asks for the wait given; zero ends that.
func (v *service) throttle(wait time.Duration) { v.asking.Store(int64(wait)) }

// delay lets answers come so much later than their charges; zero ends that.
func (v *service) delay(by time.Duration) { v.later.Store(int64(by)) }

// lose breaks the connections of those who have been charged, instead of answering them.
func (v *service) lose(answers bool) { v.losing.Store(answers) }

// stop ends the process with all that is in its queue.
func (v *service) stop() {
	close(v.over)
	v.worker.Wait()
}

func (v *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.tally.count(arrived)
	var order order
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, "want an order", http.StatusBadRequest)
		return
	}
	if wait := time.Duration(v.asking.Load()); wait > 0 {
		v.tally.count(throttled)
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	j := &job{click: order.Click, gone: r.Context().Done(), done: make(chan struct{})}
	select {
	case v.queue <- j:
	default:
		v.tally.count(overflowed)
		http.Error(w, "queue full", http.StatusServiceUnavailable)
		return
	}
	v.tally.highest(longest, len(v.queue))
	select {
	case <-j.done:
		v.answer(w, j)
	case <-v.over:
	}
}

// answer answers who has been charged.
func (v *service) answer(w http.ResponseWriter, j *job) {
	if later := time.Duration(v.later.Load()); later > 0 {
		timer := time.NewTimer(later)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-v.over:
			return
		}
	}
	switch {
	case !j.charged:
		http.Error(w, "the ledger cannot be written", http.StatusInternalServerError)
	case v.losing.Load():
		v.tally.count(unheard)
		panic(http.ErrAbortHandler)
	default:
		io.WriteString(w, "charged\n")
	}
}

// run is the worker. A request is done a fixed time after the one before it, by the clock: on a machine that wakes it
// late it catches up, so that the capacity is the scenario's and not the machine's.
func (v *service) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Now()
	for {
		var j *job
		select {
		case j = <-v.queue:
		default: // idle: nothing to catch up with
			select {
			case j = <-v.queue:
			case <-v.over:
				return
			}
			due = time.Now()
		}
		due = due.Add(v.work)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-v.over:
			return
		}
		select {
		case <-v.hung: // the request in hand stays there too
			<-v.over
			return
		default:
		}
		v.tally.highest(behind, int(time.Since(due).Milliseconds()))
		v.tally.count(worked)
		select {
		case <-j.gone:
			v.tally.count(wasted)
		default:
		}
		if err := v.charge(j.click); err != nil {
			v.tally.fail(err)
		} else {
			j.charged = true
		}
		close(j.done)
	}
}
