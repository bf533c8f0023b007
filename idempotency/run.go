package idempotency

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	stepTime   = 5 * time.Second  // for one step of the store after the run
	settleTime = 2 * time.Second  // how long a client waits for the record of its answer
	commitTime = 10 * time.Second // and for a commit, without which there is no answer
	firstPause = 50 * time.Millisecond
)

// A run is a request that holds its key.
type run struct {
	*request
	ticket Ticket
	tx     Transaction // nil unless Transactional
	rec    *recorder

	declared atomic.Int64 // an Outcome, zero for none
	unkept   error        // why only that there was an answer could be kept
	returned atomic.Bool  // the handler did
	lost     atomic.Bool  // another run has the key
}

// run lets the handler serve the request, and ends the claim in the way that fits.
func (q *request) run(ticket Ticket, body []byte) {
	r := &run{request: q, ticket: ticket}
	ctx := r.detached
	if q.Attached {
		ctx = q.r.Context()
	}
	if q.MaxRun > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, q.MaxRun)
		defer stop()
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, runKey{}, r))
	defer cancel(context.Canceled)
	if q.transactor != nil {
		ctx, r.tx = q.transactor.Transact(ctx, ticket)
		defer r.tx.Rollback() // does nothing after a commit
	}
	r.rec = &recorder{
		w: q.w, published: q.published, limit: q.MaxAnswer, whole: r.tx != nil, head: q.r.Method == http.MethodHead,
		lost: &r.lost, outer: q.w.Header().Clone(), header: q.w.Header().Clone(),
	}
	defer r.keepAlive(cancel)()

	// Not a recover: the panic goes on with its value and its stack, and runtime.Goexit comes this way too.
	defer func() {
		if !r.returned.Load() {
			r.abandon()
		}
	}()
	q.next.ServeHTTP(r.rec.writer(), withBody(q.r.WithContext(ctx), body))
	r.returned.Store(true)
	r.end()
}

// keepAlive renews the lease until the function that it returns is called. If the key is lost, it cancels the run. A run that
// is over within a third of its lease costs no goroutine.
func (r *run) keepAlive(cancel context.CancelCauseFunc) (stop func()) {
	ctx, done := context.WithCancel(r.detached)
	var beating sync.WaitGroup
	beating.Add(1)
	first := time.AfterFunc(r.Lease/3, func() {
		defer beating.Done()
		r.beat(ctx, cancel)
	})
	return func() {
		done()
		if first.Stop() {
			beating.Done()
		}
		beating.Wait()
	}
}

// beat renews the lease now and whenever a third of it is over.
func (r *run) beat(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(r.Lease / 3)
	defer tick.Stop()
	for begun := time.Now(); ; {
		// A handler that does not end when it is told to holds the key no longer than anything else that hangs.
		overdue := r.MaxRun > 0 && time.Since(begun)+r.Lease/3 > r.MaxRun && !r.returned.Load()
		if !overdue && errors.Is(r.renew(ctx), ErrFenced) {
			r.lost.Store(true)
			cancel(ErrFenced)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// renew gives up in time for another try.
func (r *run) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(r.Lease/3, stepTime))
	defer cancel()
	if r.tx != nil {
		return r.tx.Renew(ctx, r.Lease)
	}
	return r.Store.Renew(ctx, r.ticket, r.Lease)
}

// outcome is what the handler declared, or what its status says.
func (r *run) outcome() Outcome {
	switch declared := Outcome(r.declared.Load()); declared {
	case Final, NoEffect, Unknown, NoStore:
		return declared
	}
	switch status := r.rec.status; status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return NoEffect
	default:
		if status >= 500 && (r.Transactional || r.ReleaseErrors) {
			return NoEffect
		}
		return Final
	}
}

// end is called after the handler returned.
func (r *run) end() {
	if r.lost.Load() {
		r.discard(ErrFenced)
		return
	}
	r.rec.begin(http.StatusOK)
	outcome := r.outcome()
	if outcome == NoEffect || outcome == Unknown {
		if err := r.rollback(); err != nil {
			outcome = Unknown
		}
	}
	switch outcome {
	case NoEffect:
		r.settle(Released, r.release())
		return
	case Unknown:
		r.settle(Suspended, r.suspend)
		return
	}
	a := r.rec.answer(r.kept)
	if outcome == NoStore {
		a = Answer{Status: a.Status, Tombstone: true}
	}
	if r.tx != nil {
		r.commit(a)
		return
	}
	r.settle(Ran, r.complete(a))
}

// rollback undoes what the handler wrote. An error means that it may be durable all the same.
func (r *run) rollback() error {
	if r.tx == nil {
		return nil
	}
	return r.tx.Rollback()
}

// settle takes a step of the store that ends the claim, and lets the client have its answer.
func (r *run) settle(kind Kind, step func(context.Context) error) {
	err := r.insist(settleTime, step)
	switch {
	case err == nil:
		r.settled(kind)
		r.rec.send()
		return
	case errors.Is(err, ErrFenced):
		r.discard(err)
		return
	}
	// The handler did its work, so the client gets its answer. The claim is never released: whoever comes with the key finds the answer,
	// if the record gets through yet, or a run of which nobody knows how it ended.
	if r.rec.sendWhole(r.r.ProtoMajor) {
		err = r.insist(r.Lease, step)
	} else {
		r.rec.send()
	}
	switch {
	case err == nil:
		r.settled(kind)
	case errors.Is(err, ErrFenced):
		r.observe(Fenced, r.rec.status, err)
	default:
		r.observe(Unrecorded, r.rec.status, err)
	}
}

func (r *run) settled(kind Kind) {
	if r.unkept != nil {
		kind = Unrecorded
	}
	r.observe(kind, r.rec.status, r.unkept)
}

// complete returns the step that keeps an answer. If there is no room for it, that there was one is kept.
func (r *run) complete(a Answer) func(context.Context) error {
	return func(ctx context.Context) error {
		err := r.Store.Complete(ctx, r.ticket, a, r.Retention)
		if errors.Is(err, ErrFull) && !a.Tombstone {
			r.unkept = err
			a = Answer{Status: a.Status, Tombstone: true}
			err = r.Store.Complete(ctx, r.ticket, a, r.Retention)
		}
		return err
	}
}

// release returns the step that makes the key free. After a first try that failed, a key that is not held is one that was
// released.
func (r *run) release() func(context.Context) error {
	tried := false
	return func(ctx context.Context) error {
		err := r.Store.Release(ctx, r.ticket)
		if tried && errors.Is(err, ErrFenced) {
			return nil
		}
		tried = true
		return err
	}
}

func (r *run) suspend(ctx context.Context) error { return r.Store.Suspend(ctx, r.ticket) }

// commit ends a transactional run.
func (r *run) commit(a Answer) {
	err := r.insist(commitTime, func(ctx context.Context) error { return r.tx.Commit(ctx, a, r.Retention) })
	switch {
	case err == nil:
		r.observe(Ran, r.rec.status, nil)
		r.rec.send()
	case errors.Is(err, ErrFenced):
		r.discard(err)
	case errors.Is(err, ErrSuspended):
		p := outcomeUnknown
		p.kind = Suspended
		r.refuse(p, "The request was run, and what it wrote was not committed together with its answer. Somebody has to find out.", err)
	case errors.Is(err, ErrNotCommitted):
		r.insist(settleTime, r.release())
		r.refuse(notCommitted, "The request was run, and what it wrote was not committed. It had no effect.", err)
	default:
		r.refuse(commitUnknown, "The request was run, and it is not known whether what it wrote was committed. The same request finds out.", err)
	}
}

// insist takes a step until it works, the store says no, or patience is over.
func (r *run) insist(patience time.Duration, step func(context.Context) error) error {
	until := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, patience/8, time.Second) {
		left := time.Until(until)
		err := r.take(step, min(left, stepTime))
		if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrNotCommitted) || errors.Is(err, ErrSuspended) {
			return err
		}
		wait := jittered(pause)
		if time.Until(until) <= wait {
			return err
		}
		time.Sleep(wait)
	}
}

func (r *run) take(step func(context.Context) error, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(r.detached, limit)
	defer cancel()
	return step(ctx)
}

// jittered returns between half and all of a pause.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2) }

// discard ends a run whose key belongs to another one by now: its answer is not the answer.
func (r *run) discard(err error) {
	switch {
	case r.rec.hijacked:
		r.observe(Fenced, r.rec.status, err)
	case r.rec.streaming:
		r.observe(Fenced, r.rec.status, err)
		panic(http.ErrAbortHandler) // a part of it is out, and must not look like the whole
	default:
		r.refuse(takenOver, "Another run of this request has taken over its key. Its answer is the one that counts.", err)
	}
}

// abandon ends a run whose handler panicked or ended its goroutine.
func (r *run) abandon() {
	switch {
	case r.lost.Load():
		r.observe(Fenced, 0, ErrFenced)
	case r.tx != nil && r.rollback() == nil:
		r.leave(Released, r.insist(settleTime, r.release()))
	case r.tx == nil && r.Reexecute:
		r.observe(Unrecorded, 0, nil) // and run again after its lease
	default:
		r.leave(Suspended, r.insist(settleTime, r.suspend))
	}
}

// leave tells of a run that has no answer.
func (r *run) leave(kind Kind, err error) {
	if errors.Is(err, ErrFenced) {
		kind = Fenced
	}
	r.observe(kind, 0, err)
}
