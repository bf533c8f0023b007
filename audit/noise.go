package audit

import (
	"slices"
	"sync"
	"time"
)

// A noise is how late this machine is: how much longer than on its own a sleep takes, with a little work behind it. What it does to
// those it does to the client's waits. To look at sleeps alone would not do: a machine that is busy wakes sleepers first, and
// lets them wait when they have something to do.
type noise struct {
	mu       sync.Mutex
	readings []reading
	end      chan struct{}
	over     sync.WaitGroup
}

// A reading is one sleep and what it was good for.
type reading struct {
	from, to time.Time
	late     time.Duration // of the sleep
	work     time.Duration // how long the work took
}

const (
	// noiseStep is how long a sleep is: short, to have a reading near each wait.
	noiseStep = 40 * time.Millisecond

	// toil is work of a few milliseconds: more than a process gets at a time, less than a tenth of a processor.
	toil = 1_500_000
)

// listenForNoise takes readings with so many steps of work in each.
func listenForNoise(steps int) *noise {
	n := &noise{end: make(chan struct{})}
	n.over.Go(func() {
		timer := time.NewTimer(noiseStep)
		x := uint64(1)
		for {
			r := reading{from: time.Now()}
			timer.Reset(noiseStep)
			select {
			case <-timer.C:
			case <-n.end:
				return
			}
			woken := time.Now()
			x = work(x, steps)
			r.to = time.Now()
			r.late, r.work = woken.Sub(r.from)-noiseStep, r.to.Sub(woken)
			n.mu.Lock()
			n.readings = append(n.readings, r)
			n.mu.Unlock()
		}
	})
	return n
}

// work keeps a processor busy for so many steps of a random number generator.
//
//go:noinline
func work(x uint64, steps int) uint64 {
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func (n *noise) stop() {
	close(n.end)
	n.over.Wait()
}

// heard returns what was read so far, in its order, with lateness in which the work has its part: what it took longer than the quickest.
func (n *noise) heard() lateness {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all lateness
	for _, r := range n.readings {
		all = append(all, late{r.from, r.to, r.late + r.work})
	}
	if len(all) > 0 {
		quickest := n.readings[0].work
		for _, r := range n.readings {
			quickest = min(quickest, r.work)
		}
		for i := range all {
			all[i].by -= quickest
		}
	}
	return all
}

// A lateness says when the machine was late, and by how much.
type lateness []late

type late struct {
	from, to time.Time
	by       time.Duration
}

// near returns the most that the machine was late when a wait began or ended: in between it does not matter.
func (l lateness) near(s span) (most time.Duration) {
	for _, at := range []time.Time{s.from, s.to} {
		i, _ := slices.BinarySearchFunc(l, at.Add(-noiseStep), func(r late, at time.Time) int { return r.to.Compare(at) })
		for ; i < len(l) && !l[i].from.After(at.Add(noiseStep)); i++ {
			most = max(most, l[i].by)
		}
	}
	return most
}
