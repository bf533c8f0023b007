package sim

// A ring is a queue that grows when it is full, and gives out from both ends.
type ring[T any] struct {
	items []T // as many as a power of two
	at    int // of the oldest
	n     int
}

func (r *ring[T]) push(x T) {
	if r.n == len(r.items) {
		items := make([]T, max(2*r.n, 64))
		copied := copy(items, r.items[r.at:])
		copy(items[copied:], r.items[:r.at])
		r.items, r.at = items, 0
	}
	r.items[(r.at+r.n)&(len(r.items)-1)] = x
	r.n++
}

// The ring must not be empty for the rest.

func (r *ring[T]) first() *T { return &r.items[r.at] }
func (r *ring[T]) last() *T  { return &r.items[(r.at+r.n-1)&(len(r.items)-1)] }

// shift takes the oldest out.
func (r *ring[T]) shift() T {
	x := r.items[r.at]
	r.at = (r.at + 1) & (len(r.items) - 1)
	r.n--
	return x
}

// pop takes the youngest out.
func (r *ring[T]) pop() T {
	r.n--
	return r.items[(r.at+r.n)&(len(r.items)-1)]
}
