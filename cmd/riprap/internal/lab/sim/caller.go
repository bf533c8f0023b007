package sim

import (
	"time"

	"github.com/riprap-go/riprap"
)

// newCall begins a call of a hop. It is made for a client, if that is not negative, or to serve a visit of the hop before.
func (w *world) newCall(h uint8, client int32, isRetry bool, serves visit) {
	if len(w.free) == 0 {
		w.calls = append(w.calls, new([chunk]call))
		for i := range int32(chunk) {
			w.free = append(w.free, int32(len(w.calls))*chunk-1-i)
		}
	}
	i := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]

	processes := w.hops[h].processes
	p := processes[0]
	switch {
	case len(processes) == 1:
	case client >= 0:
		p = processes[int(client)%len(processes)]
	default:
		p = processes[w.random.IntN(len(processes))]
	}
	c := w.call(i)
	*c = call{process: p, turn: c.turn, hop: h, client: client, isRetry: isRetry, serves: serves}
	c.Policy = &p.policy
	if p.policy.Timeout > 0 {
		c.Deadline = w.time().Add(p.policy.Timeout)
	}
	w.attempt(i)
}

// attempt begins the next attempt of a call.
func (w *world) attempt(i int32) {
	c := w.call(i)
	until := c.Begin(w.time())
	if r := c.process.rival; r != nil && !r.Admit(w.now, c.Attempts, w.random.Float64()) {
		w.result.Withheld++
		w.over(i, c, riprap.ErrBudget)
		return
	}
	v := visit{call: i, turn: c.turn}
	c.until = 0
	if !until.IsZero() {
		c.until = until.Sub(epoch)
		w.after(c.until-w.now, late, v, c.hop)
	}
	if c.Attempts > 1 {
		c.isRetry = true
	}
	if c.hop == w.onward {
		if c.isRetry {
			w.bin.Retries++
		} else {
			w.bin.Tries++
		}
	}
	w.send(v, c.hop)
}

// ended ends an attempt, unless it has ended before.
func (w *world) ended(v visit, err error) {
	c := w.call(v.call)
	if c.turn != v.turn {
		return
	}
	c.turn++
	if c.process.rival != nil {
		c.process.rival.Ended(w.now, c.Attempts, c.failed, err)
		c.failed = err
	}
	w.judge(v.call, c, err)
}

// judge decides what comes after an attempt.
func (w *world) judge(i int32, c *call, err error) {
	prev := c.Wait
	wait, stop := c.Next(w.time(), err)
	if r := c.process.rival; r != nil && wait > 0 {
		wait, stop = w.contest(r, c, wait, prev, err)
	}
	if wait > 0 {
		w.result.waited(c.Attempts, wait)
		w.after(wait, again, visit{call: i}, 0)
		return
	}
	w.over(i, c, stop)
}

// contest asks a rival about a retry that riprap has granted.
func (w *world) contest(r Rival, c *call, own, prev time.Duration, err error) (wait time.Duration, stop error) {
	if !r.Retry(w.now, err) {
		return 0, c.Cancel(riprap.ErrBudget, err)
	}
	wait = max(r.Wait(own, prev, w.random.Float64()), 1)
	if !c.Deadline.IsZero() && c.Deadline.Sub(w.time())-wait < max(c.Policy.MinAttempt, 1) {
		return 0, c.Cancel(riprap.ErrDeadline, err) // riprap has looked only at its own wait
	}
	c.Wait = wait
	return wait, nil
}

// over ends a call: stop is nil if it was answered.
func (w *world) over(i int32, c *call, stop error) {
	client, serves, hop := c.client, c.serves, c.hop
	w.free = append(w.free, i)
	if hop > 0 {
		w.answer(serves, hop-1, stop == nil)
		return
	}
	if stop == nil {
		w.bin.Good++
	} else {
		w.bin.GaveUp++
	}
	if a := &w.scenario.Arrivals; client >= 0 && !a.Once {
		w.after(max(a.Pause.Draw(w.random), shortest), arrive, visit{call: client}, 0)
	}
}
