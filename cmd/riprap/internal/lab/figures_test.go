package lab

import (
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// The tests of figures hold the lab against what others have published, measured or derived about the same models. What
// they have no time for, more seeds and longer runs, is in tests named TestSoak….

// soak skips a test that takes long.
func soak(t *testing.T) {
	t.Helper()
	if os.Getenv("RIPRAP_SOAK") == "" {
		t.Skip("a long test: run make soak")
	}
}

// A finding is what others found: the mean of runs whose standard deviation is sd each. Theory has infinitely many.
type finding struct {
	mean, sd float64
	runs     float64
	rounded  float64 // by how much at most it was
}

// theory is a finding that a formula gives, for runs of such a standard deviation.
func theory(mean, sd float64) finding { return finding{mean: mean, sd: sd, runs: math.Inf(1)} }

// check compares it with runs of the lab: four standard errors apart is too far.
func (f finding) check(t *testing.T, what string, got sample) {
	t.Helper()
	tolerance := f.rounded + 4*f.sd*math.Sqrt(1/f.runs+1/float64(len(got)))
	if math.Abs(got.mean()-f.mean) <= tolerance+1e-9 {
		return
	}
	t.Errorf("%s = %.5g in %d runs, want %.5g ± %.2g", what, got.mean(), len(got), f.mean, tolerance)
}

// below checks that one sample has the lower mean, by so many standard errors.
func below(t *testing.T, errors float64, what string, a, b sample) {
	t.Helper()
	se := math.Sqrt(a.sd()*a.sd()/float64(len(a)) + b.sd()*b.sd()/float64(len(b)))
	if b.mean()-a.mean() < errors*se {
		t.Errorf("%s: %.5g and %.5g, want the first lower by %.1f standard errors of %.2g", what, a.mean(), b.mean(), errors, se)
	}
}

// known returns a copy of a study's scenario, of which anything may be changed.
func known(t *testing.T, name string) *request {
	t.Helper()
	q := &request{}
	if err := q.choose(name); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *request) policy(t *testing.T, name string) *sim.Candidate {
	t.Helper()
	c, err := q.candidate(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// results simulates under the seeds from 1 on, on all processors, where a summary does not say enough.
func results(t *testing.T, s *sim.Scenario, c *sim.Candidate, seeds int) []*sim.Result {
	t.Helper()
	all := make([]*sim.Result, seeds)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(seeds, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < seeds; i = int(next.Add(1)) - 1 {
				all[i] = sim.Run(t.Context(), s, c, uint64(i+1))
			}
		})
	}
	workers.Wait()
	return all
}

// sampled is a figure of each result.
func sampled(all []*sim.Result, f func(*sim.Result) float64) (s sample) {
	for _, r := range all {
		s = append(s, f(r))
	}
	return s
}

// rate is how much of something there is a second, in a part of a series with steps of a second.
func rate(bins []sim.Bin, f func(*sim.Bin) int) float64 {
	sum := 0
	for i := range bins {
		sum += int(f(&bins[i]))
	}
	return float64(sum) / float64(len(bins))
}

func sent(b *sim.Bin) int { return b.Tries + b.Retries }
func good(b *sim.Bin) int { return b.Good }
