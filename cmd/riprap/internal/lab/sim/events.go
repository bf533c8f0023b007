package sim

import (
	"math/bits"
	"time"
)

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
	what uint64 // from above: the order in which events were made, 48 bits; the kind; the hop of the service
}

func newEvent(at time.Duration, order uint64, k kind, v visit, hop uint8) event {
	return event{at: at, visit: v, what: order<<16 | uint64(k)<<8 | uint64(hop)}
}

func (e *event) kind() kind { return kind(e.what >> 8) }
func (e *event) hop() uint8 { return uint8(e.what) }

// before is 1 if e comes before f, which at the same instant was made later, and else 0. It is a number because no
// processor can guess it: what a heap does with it takes half as long without a branch.
func (e *event) before(f *event) int {
	_, less := bits.Sub64(e.what, f.what, 0)
	_, less = bits.Sub64(uint64(e.at), uint64(f.at), less)
	return int(less)
}

// An agenda is what is to happen.
type agenda struct {
	heap heap
	// The first of the heap has happened already. What comes of it is mostly one other event, which then takes its place:
	// that costs less than to take one out and put one in.
	happened bool
	// The ends of attempts come in order, since all callers wait equally long: they need no sorting.
	ends ring[event]
}

func (a *agenda) len() int {
	n := len(a.heap) + a.ends.n
	if a.happened {
		n--
	}
	return n
}

func (a *agenda) push(e event) {
	switch {
	case e.kind() == late && (a.ends.n == 0 || a.ends.last().at <= e.at):
		a.ends.push(e)
	case a.happened:
		a.happened = false
		a.heap.sink(e)
	default:
		a.heap.push(e)
	}
}

// pop takes the next event out of an agenda that is not empty.
func (a *agenda) pop() event {
	if a.happened {
		a.happened = false
		a.heap.drop()
	}
	if a.ends.n == 0 || len(a.heap) > 0 && a.heap[0].before(a.ends.first()) == 1 {
		a.happened = true
		return a.heap[0]
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
		if e.before(&h[parent]) == 0 {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// drop takes the first event out of a heap that is not empty.
func (a *heap) drop() {
	h := *a
	last := h[len(h)-1]
	*a = h[:len(h)-1]
	if len(h) > 1 {
		a.sink(last)
	}
}

// sink puts an event in place of the first one.
func (a *heap) sink(e event) {
	h := *a
	i := 0
	for {
		child := 4*i + 1
		if child+4 > len(h) {
			least := child
			for c := child + 1; c < len(h); c++ {
				least += (c - least) * h[c].before(&h[least])
			}
			if least < len(h) && h[least].before(&e) == 1 {
				h[i] = h[least]
				i = least
			}
			break
		}
		four := (*[4]event)(h[child:])
		left := four[1].before(&four[0])
		right := 2 + four[3].before(&four[2])
		least := left + (right-left)*four[right].before(&four[left])
		if e.before(&four[least]) == 1 {
			break
		}
		h[i] = four[least]
		i = child + least
	}
	h[i] = e
}
