package audit

import (
	"sync"
	"time"
)

// A noise is how late this machine is: how much longer a sleep takes than it was told to. What it does to the audit's sleeps it
// does to the client's waits.
type noise struct {
	mu   sync.Mutex
	late []time.Duration
	end  chan struct{}
	over sync.WaitGroup
}

// noiseStep is short, to have many readings in an audit of a few seconds.
const noiseStep = 20 * time.Millisecond

func listenForNoise() *noise {
	n := &noise{end: make(chan struct{})}
	n.over.Go(func() {
		timer := time.NewTimer(noiseStep)
		for {
			began := time.Now()
			timer.Reset(noiseStep)
			select {
			case <-timer.C:
			case <-n.end:
				return
			}
			late := time.Since(began) - noiseStep
			n.mu.Lock()
			n.late = append(n.late, late)
			n.mu.Unlock()
		}
	})
	return n
}

func (n *noise) stop() {
	close(n.end)
	n.over.Wait()
}

// share returns the share of sleeps that were more than d late.
func (n *noise) share(d time.Duration) float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.late) == 0 {
		return 0
	}
	count := 0
	for _, late := range n.late {
		if late > d {
			count++
		}
	}
	return float64(count) / float64(len(n.late))
}
