package sim

import "time"

// A service takes the attempts of its hop.
type service interface {
	reach(v visit)  // an attempt has come
	worked(v visit) // the work on one is done
	left(v visit)   // the caller of one has left
}

func (w *world) newService(s Service, hop uint8) service {
	switch at := (place{w, hop}); s.Kind {
	case Queue:
		return &queue{place: at, Service: s, idle: max(s.Workers, 1)}
	case Crowd:
		return &crowd{place: at, Service: s}
	case Row:
		return &row{place: at}
	case Coin:
		return &coin{place: at, fails: s.Fails}
	default:
		return &relay{place: at}
	}
}

// send puts an attempt on its way to the service of a hop.
func (w *world) send(v visit, hop uint8) {
	wait := w.scenario.Network.Draw(w.random)
	if hop == w.onward && w.cut.has(w.now+wait) {
		wait = w.cut.until - w.now
	}
	if wait == 0 {
		w.reached(v, hop)
		return
	}
	w.after(wait, reach, v, hop)
}

func (w *world) reached(v visit, hop uint8) {
	if hop == w.onward {
		w.bin.Reached++
		if w.down.has(w.now) {
			w.answer(v, hop, false)
			return
		}
	}
	w.hops[hop].service.reach(v)
}

// answer puts an answer on its way to the caller.
func (w *world) answer(v visit, hop uint8, ok bool) {
	if hop == w.onward && w.lost.has(w.now) && w.random.Float64() < w.losses {
		return
	}
	wait := w.scenario.Network.Draw(w.random)
	switch {
	case wait == 0 && ok:
		w.ended(v, nil)
	case wait == 0:
		w.ended(v, errFailed)
	case ok:
		w.after(wait, good, v, hop)
	default:
		w.after(wait, bad, v, hop)
	}
}

// A place is where a service is.
type place struct {
	world *world
	hop   uint8
}

// serve answers an attempt whose work is done, whether somebody still waits for it or not.
func (p place) serve(v visit, ok bool) {
	w := p.world
	w.bin.Served++
	if !w.current(v) {
		w.bin.Wasted++
		return
	}
	w.answer(v, p.hop, ok)
}

// slowed is how long work takes now.
func (p place) slowed(work time.Duration) time.Duration {
	if w := p.world; w.slow.has(w.now) {
		return capped(float64(work) * w.slowness)
	}
	return work
}

// capped is a time in nanoseconds, if it is not longer than any that counts.
func capped(ns float64) time.Duration { return time.Duration(min(ns, float64(farthest))) }

func (p place) refuse(v visit) {
	p.world.bin.Refused++
	p.world.answer(v, p.hop, false)
}

func (place) worked(visit) {}
func (place) left(visit)   {}

// A crowd is served all at once, and the more they are the longer it takes. How long is settled when an attempt comes.
type crowd struct {
	place
	Service
	inside int
}

func (s *crowd) reach(v visit) {
	c := s.world.call(v.call)
	if s.Cancels {
		if c.turn != v.turn {
			return
		}
		c.inside = true
	}
	s.inside++
	s.world.bin.waiting(s.inside)
	s.world.after(s.slowed(s.Base+capped(float64(s.inside)*float64(s.Each))), worked, v, s.hop)
}

func (s *crowd) worked(v visit) {
	if s.Cancels {
		if !s.world.current(v) {
			return
		}
		s.world.call(v.call).inside = false
	}
	s.inside--
	s.serve(v, true)
}

func (s *crowd) left(v visit) {
	if c := s.world.call(v.call); c.inside {
		c.inside = false
		s.inside--
	}
}

// A row of a table is read and then written. A write succeeds if nobody else has written since the read. A caller that
// leaves meanwhile does not write.
type row struct {
	place
	version uint32
}

func (s *row) reach(v visit) {
	w := s.world
	if !w.current(v) {
		return
	}
	w.call(v.call).seen = s.version
	net := &w.scenario.Network
	w.after(net.Draw(w.random)+net.Draw(w.random), worked, v, s.hop)
}

func (s *row) worked(v visit) {
	w := s.world
	if !w.current(v) {
		return
	}
	ok := w.call(v.call).seen == s.version
	if ok {
		s.version++
	}
	s.serve(v, ok)
}

// A coin says whether an attempt fails.
type coin struct {
	place
	fails float64
}

func (s *coin) reach(v visit) { s.serve(v, s.world.random.Float64() >= s.fails) }

// A relay calls the service of the next hop.
type relay struct{ place }

func (s *relay) reach(v visit) {
	s.world.newCall(s.hop+1, -1, s.world.call(v.call).isRetry, v)
}
