package sim

import "time"

// A kind is what an event is about.
type kind uint8

const (
	arrive kind = iota // a new call is made
	reach              // an attempt reaches the service
	worked             // the service has done an attempt's work
	good               // an answer reaches the caller
	bad                // a failure reaches the caller
	late               // the attempt's time is over
	again              // the wait before a retry is over
)

// A visit is an attempt as a service knows it. The caller may have left meanwhile: then the call has another turn.
type visit struct {
	call int32
	turn uint32
}

// An event is something that happens at an instant. It holds no pointer, so that the garbage collector has nothing to
// look at in a heap of a hundred thousand of them.
type event struct {
	at time.Duration // since the beginning
	visit
	order uint32 // events of the same instant happen in the order in which they were made
	kind  kind
	hop   uint8 // of the service, for what happens there
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && int32(e.order-f.order) < 0 // right also when the order has wrapped around
}

// An agenda is what is to happen.
type agenda struct {
	heap heap
	// The ends of attempts come in order, since all callers wait equally long: they need no sorting.
	ends ring[event]
}

func (a *agenda) len() int { return len(a.heap) + a.ends.n }

func (a *agenda) push(e event) {
	if e.kind == late && (a.ends.n == 0 || a.ends.last().at <= e.at) {
		a.ends.push(e)
		return
	}
	a.heap.push(e)
}

// next returns the next event of an agenda that is not empty, without taking it out.
func (a *agenda) next() *event {
	if a.ends.n == 0 || len(a.heap) > 0 && a.heap[0].before(a.ends.first()) {
		return &a.heap[0]
	}
	return a.ends.first()
}

// pop takes the next event out.
func (a *agenda) pop() event {
	if a.ends.n == 0 || len(a.heap) > 0 && a.heap[0].before(a.ends.first()) {
		return a.heap.pop()
	}
	return a.ends.shift()
}

// A heap has the next event first. It has four children to a node: half as deep as one with two, and the children of a
// node lie side by side in memory.
type heap []event

func (a *heap) push(e event) {
	*a = append(*a, e)
	h := *a
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// pop takes the next event out of a heap that is not empty.
func (a *heap) pop() event {
	h := *a
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*a = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if last.before(&h[least]) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first
}
