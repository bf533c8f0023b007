package lab

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/rival"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

func TestASeedThatTakesLongDoesNotLetResultsPileUp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const seeds, most = 500, 2 * ahead
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		long := make(chan struct{})
		c := naive(2, "first one slow")
		c.Rival = func() sim.Rival {
			if begun.Add(1) == 1 {
				<-long
			}
			return &rival.Throttle{}
		}
		s := sim.Scenario{Arrivals: sim.Arrivals{Rate: 10}, Services: []sim.Service{{Kind: sim.Coin, Fails: 0.5}}, Length: sec}
		var all []*summary
		go func() { all = simulate(t.Context(), []trial{{&s, &c}}, 1, seeds, func() {}) }()
		synctest.Wait()
		if n := begun.Load(); n < 2 || n > most+1 {
			t.Errorf("%d simulations while an early one takes long, want no more than %d", n, most+1)
		}
		close(long)
		synctest.Wait()
		if all[0].seeds != seeds {
			t.Errorf("%d seeds in the end, want %d", all[0].seeds, seeds)
		}
	})
}
