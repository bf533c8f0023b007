package riprap_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// A storm is the outage that retries keep alive, after "Metastable Failures in Distributed Systems" (Bronson,
// Aghayev, Charapko and Zhu, HotOS 2021): one server with a queue, loaded to 280 calls of the 300 a second that it
// can serve, and a network that loses nothing but delivers all that was sent in ten seconds at once. Callers wait a
// second for an answer; the server cannot tell that they have left.
const (
	stormLoad     = 280.0
	stormCapacity = 300.0
	stormTimeout  = time.Second
	stormBegins   = 60 * time.Second
	stormEnds     = 70 * time.Second
	stormHorizon  = 600 * time.Second
)

// storm returns how many calls succeeded in each second. Each client of p stands for a process of its own here.
func storm(w *world, p *process, processes int) []int {
	good := make([]int, stormHorizon/time.Second)
	free := time.Duration(0) // when the server has done what is in its queue
	serve := func(sent time.Duration, ended func(error)) {
		free = max(free, w.now) + w.exp(stormCapacity)
		if free < sent+stormTimeout {
			w.after(free-w.now, func() { ended(nil) })
			return
		}
		if sent+stormTimeout > w.now { // else the caller has been told already
			w.after(sent+stormTimeout-w.now, func() { ended(errDown) })
		}
	}
	server := func(_ int, ended func(error)) {
		sent := w.now
		if stormBegins > sent || sent >= stormEnds {
			serve(sent, ended)
			return
		}
		w.after(stormEnds-sent, func() { serve(sent, ended) })
		if sent+stormTimeout <= stormEnds {
			w.after(stormTimeout, func() { ended(errDown) })
		}
	}
	over := func(c *call) {
		if second := int(w.now / time.Second); c.err == nil && second < len(good) {
			good[second]++
		}
	}
	w.poisson(stormLoad, stormHorizon, func() { p.client(w.random.IntN(processes)).call(server, over) })
	w.run(stormHorizon)
	return good
}

// recovered returns how long after the outage it took until ten seconds in a row had 95 % of the load answered on
// average, or none.
func recovered(good []int) (time.Duration, bool) {
	const span = 10
	for first := int(stormEnds / time.Second); first+span <= len(good); first++ {
		sum := 0
		for _, n := range good[first : first+span] {
			sum += n
		}
		if float64(sum) >= 0.95*stormLoad*span {
			return time.Duration(first)*time.Second - stormEnds, true
		}
	}
	return 0, false
}

// storms runs the storm in so many worlds, with riprap's default backoff.
func storms(r regime, processes, worlds int) (goods [][]int) {
	for seed := range worlds {
		w := newWorld(uint64(seed))
		budget := r(false)
		goods = append(goods, storm(w, &process{w, func(dest int, c *client) {
			c.policy.Backoff = riprap.Backoff{}
			budget(dest, c)
		}, map[int]*client{}}, processes))
	}
	return goods
}

// recoveries says how long storms lasted, from the shortest to the longest.
func recoveries(goods [][]int) string {
	least, most := stormHorizon, time.Duration(0)
	for _, good := range goods {
		took, ok := recovered(good)
		if !ok {
			return "never"
		}
		least, most = min(least, took), max(most, took)
	}
	if least == most {
		return fmt.Sprintf("%.0f s", least.Seconds())
	}
	return fmt.Sprintf("%.0f–%.0f s", least.Seconds(), most.Seconds())
}

// oneFloor is one retry a second for each process.
func oneFloor(bool) func(int, *client) {
	return func(_ int, c *client) { c.floor = &floor{perSecond: 1} }
}

// immediately is what a loop without any thought does.
func immediately(bool) func(int, *client) {
	return func(_ int, c *client) { c.policy.Backoff.Base = 1 }
}

var processCounts = []int{1, 10, 20, 100, 280}

var stormsUnderZeroBudgets = sync.OnceValue(func() (goods [][][]int) {
	for _, n := range processCounts {
		goods = append(goods, storms(budgets(zeroBudget), n, 3))
	}
	return goods
})

var stormsWithoutBudget = sync.OnceValue(func() [][]int { return storms(noBudget, 1, 1) })

func TestStormEndsHoweverManyProcessesCall(t *testing.T) {
	for i, n := range processCounts {
		for seed, good := range stormsUnderZeroBudgets()[i] {
			took, ok := recovered(good)
			if !ok {
				t.Errorf("%d processes, world %d: the storm did not end within %v", n, seed, stormHorizon)
				continue
			}
			// What has recovered stays so: the last hundred seconds are as good, within four standard deviations.
			sum := 0
			for _, n := range good[len(good)-100:] {
				sum += n
			}
			if want := 100*stormLoad - 4*math.Sqrt(100*stormLoad); float64(sum) < want {
				t.Errorf("%d processes, world %d: recovered after %v, but the last 100 s answered %d calls, want %.0f",
					n, seed, took, sum, want)
			}
		}
	}
}

// The storm has to be one: without a budget it goes on for ever, with backoff and jitter too.
func TestStormWithoutBudgetNeverEnds(t *testing.T) {
	for name, goods := range map[string][][]int{
		"immediate retries": storms(immediately, 1, 1),
		"full jitter":       stormsWithoutBudget(),
	} {
		if took, ok := recovered(goods[0]); ok {
			t.Errorf("%s: the storm ended after %v, want never", name, took)
		}
		if n := slices.Max(goods[0][100:]); n > 10 {
			t.Errorf("%s: %d calls answered in the best second of the storm, want none", name, n)
		}
	}
}

func TestStormWithoutRetriesEndsWhenTheQueueIsServed(t *testing.T) {
	good := storms(func(bool) func(int, *client) {
		return func(_ int, c *client) { c.policy.MaxAttempts = 1 }
	}, 1, 1)[0]
	// A backlog of 2800 less what waits a second at most, at 20 a second more than what comes in.
	if took, ok := recovered(good); !ok || took < 80*time.Second || took > 190*time.Second {
		t.Errorf("recovered %v after %v, want about 125s", ok, took)
	}
}

func stormTable() [][]string {
	rows := [][]string{{"processes"}, {"no budget"}, {"a floor of 1/s"}, {"riprap"}}
	none := recoveries(stormsWithoutBudget()) // nothing is shared among calls, so that the processes' number does not matter
	for i, n := range processCounts {
		rows[0] = append(rows[0], strconv.Itoa(n))
		rows[1] = append(rows[1], none)
		rows[2] = append(rows[2], recoveries(storms(oneFloor, n, 1)))
		rows[3] = append(rows[3], recoveries(stormsUnderZeroBudgets()[i]))
	}
	return rows
}

// More worlds than a test has time for: no storm may outlast the horizon in any.
func TestSoakStormEndsInEveryWorld(t *testing.T) {
	if os.Getenv("RIPRAP_SOAK") == "" {
		t.Skip("a long test: run make soak")
	}
	for _, n := range processCounts {
		for seed, good := range storms(budgets(zeroBudget), n, 40) {
			if _, ok := recovered(good); !ok {
				t.Errorf("%d processes, world %d: the storm did not end within %v", n, seed, stormHorizon)
			}
		}
		t.Logf("%d processes: done", n)
	}
}
