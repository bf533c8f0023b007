package lab

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// A trial is one candidate in one scenario.
type trial struct {
	scenario  *sim.Scenario
	candidate *sim.Candidate
}

// ahead is how many simulations there may be for each processor that are not in a summary yet. One that takes long keeps
// those of its trial's later seeds waiting, and each of them has a series.
const ahead = 32

// simulate runs each trial under so many seeds, on all processors, and calls done after each simulation, from several
// goroutines at once. When ctx ends it, the summaries hold what there is. They are the same for the same seeds, however
// many processors there are.
func simulate(ctx context.Context, trials []trial, first uint64, seeds int, done func()) []*summary {
	type job struct{ trial, seed int }
	jobs := make(chan job)
	room := make(chan struct{}, ahead*runtime.GOMAXPROCS(0))
	go func() {
		defer close(jobs)
		// Seed by seed, so that a table which is stopped early has something to say about all.
		for seed := range seeds {
			for i := range trials {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				select {
				case jobs <- job{i, seed}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()

	summaries := make([]*summary, len(trials))
	pending := make([]map[int]*sim.Result, len(trials)) // results that came before those of smaller seeds
	for i, t := range trials {
		summaries[i] = &summary{scenario: t.scenario, candidate: t.candidate}
		pending[i] = map[int]*sim.Result{}
	}
	next := make([]int, len(trials))
	var mu sync.Mutex // guards the three above
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				t := trials[j.trial]
				r := sim.Run(ctx, t.scenario, t.candidate, first+uint64(j.seed))
				if r == nil {
					continue
				}
				mu.Lock()
				pending[j.trial][j.seed] = r
				for {
					r := pending[j.trial][next[j.trial]]
					if r == nil {
						break
					}
					delete(pending[j.trial], next[j.trial])
					next[j.trial]++
					summaries[j.trial].add(r)
					<-room
				}
				mu.Unlock()
				done()
			}
		})
	}
	workers.Wait()
	// Stopped early: what came out of order counts too.
	for i, results := range pending {
		for _, seed := range slices.Sorted(maps.Keys(results)) {
			summaries[i].add(results[seed])
		}
	}
	return summaries
}
