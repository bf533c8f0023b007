package sim

// A queue is served by workers, one attempt at a time each.
type queue struct {
	place
	Service
	idle    int
	waiting ring[visit]
}

func (q *queue) reach(v visit) {
	switch {
	case q.idle > 0 && q.useless(v):
		q.world.bin.Dropped++
	case q.idle > 0:
		q.idle--
		q.start(v)
	case q.Room < 0, q.Room > 0 && q.waiting.n >= q.Room:
		q.refuse(v)
	default:
		q.waiting.push(v)
		q.world.bin.waiting(q.waiting.n)
	}
}

func (q *queue) start(v visit) {
	w := q.world
	work := q.slowed(q.Work.Draw(w.random))
	if q.Hangs > 0 && w.random.Float64() < q.Hangs && w.current(v) {
		until := w.call(v.call).until
		if until == 0 {
			return // for ever
		}
		work = until - w.now
	}
	w.after(work, worked, v, q.hop)
}

func (q *queue) worked(v visit) {
	q.serve(v, true)
	q.idle++
	for q.idle > 0 && q.waiting.n > 0 {
		var next visit
		if q.LIFO {
			next = q.waiting.pop()
		} else {
			next = q.waiting.shift()
		}
		if q.useless(next) {
			q.world.bin.Dropped++
			continue
		}
		q.idle--
		q.start(next)
	}
}

// useless reports whether nobody would wait for the work on an attempt.
func (q *queue) useless(v visit) bool {
	if !q.world.current(v) {
		return q.Cancels || q.Drop
	}
	until := q.world.call(v.call).until
	return q.Drop && until > 0 && until-q.world.now <= q.Margin
}
