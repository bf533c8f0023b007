package lab

import (
	"fmt"
	"math"
	"testing"
)

// flip simulates the scenario flaky with such a chance of failure.
func flip(t *testing.T, fails float64, seeds int, policies ...string) []*summary {
	t.Helper()
	q := known(t, "flaky")
	q.study.Services[0].Fails = fails
	var all []trial
	for _, name := range policies {
		all = append(all, trial{&q.study.Scenario, q.policy(t, name)})
	}
	return simulate(t.Context(), all, 1, seeds, func() {})
}

// With k attempts a call is answered with the probability 1-p^k, and makes (1-p^k)/(1-p) attempts on average.
func flakyTheory(t *testing.T, seeds int) {
	t.Helper()
	const calls = 20_000 // in each run
	for _, p := range []float64{0.01, 0.05, 0.1, 0.2, 0.5, 0.75} {
		for i, s := range flip(t, p, seeds, "no-retries", "at-once") {
			k := []int{1, 4}[i]
			who := fmt.Sprintf("%s, p = %v: ", s.candidate.Name, p)
			q := math.Pow(p, float64(k))
			theory(1-q, math.Sqrt(q*(1-q)/calls)).check(t, who+"answered", s.answered)

			mean := (1 - q) / (1 - p)
			square := 0.0 // the mean of its square
			for n := 1; n <= k; n++ {
				chance := math.Pow(p, float64(n-1)) // of an attempt n
				square += float64(2*n-1) * chance
			}
			// Some calls of the last moment have not made all of their attempts.
			load := theory(mean, math.Sqrt((square-mean*mean)/calls))
			load.rounded = 0.002 * (mean - 1)
			load.check(t, who+"attempts for each call", s.amplification)
		}
	}
}

func TestFlakyAnswersAndLoadAreThoseOfTheFormulas(t *testing.T) {
	t.Parallel()
	flakyTheory(t, 1)
}

func TestSoakFlakyAnswersAndLoadAreThoseOfTheFormulas(t *testing.T) {
	soak(t)
	flakyTheory(t, 10)
}

// One run, twenty seconds long, of the simulator published with "Fixing retries with token buckets and circuit breakers"
// (Marc Brooker, 2022): answered and attempts for each call, in per cent, and their standard deviations over the lab's runs.
var flakyFigures = []struct {
	policy                             string
	fails                              float64
	answered, answeredSD, load, loadSD float64
}{
	{"call-bucket-10", 0.01, 100, 0.001, 101.1, 0.06},
	{"call-bucket-10", 0.05, 99.97, 0.012, 105.6, 0.14},
	{"call-bucket-10", 0.1, 98.75, 0.104, 109.8, 0.114},
	{"call-bucket-10", 0.2, 89.2, 0.228, 111.7, 0.039},
	{"call-bucket-10", 0.5, 55.7, 0.315, 112.1, 0.017},
	{"call-bucket-10", 0.75, 28.1, 0.362, 112.2, 0.02},
	{"breaker-10", 0.01, 99.95, 0.012, 100.9, 0.076},
	{"breaker-10", 0.05, 99.3, 0.104, 104.3, 0.115},
	{"breaker-10", 0.1, 92.9, 0.35, 103.2, 0.255},
	{"breaker-10", 0.2, 80.4, 0.268, 100.1, 0.049},
	{"breaker-10", 0.5, 49.3, 0.419, 100, 0.002},
	{"breaker-10", 0.75, 24.6, 0.33, 100, 0.001},
}

func flakyTable(t *testing.T, seeds int) {
	t.Helper()
	for _, f := range flakyFigures {
		s := flip(t, f.fails, seeds, f.policy)[0]
		who := fmt.Sprintf("%s, p = %v: ", f.policy, f.fails)
		// They were rounded to one digit, or two.
		finding{mean: f.answered / 100, sd: f.answeredSD / 100, runs: 1, rounded: 0.0005}.check(t, who+"answered", s.answered)
		finding{mean: f.load / 100, sd: f.loadSD / 100, runs: 1, rounded: 0.0005}.check(t, who+"attempts for each call", s.amplification)
	}
}

func TestFlakyBudgetAndBreakerDoAsPublished(t *testing.T) {
	t.Parallel()
	flakyTable(t, 1)
}

func TestSoakFlakyBudgetAndBreakerDoAsPublished(t *testing.T) {
	soak(t)
	flakyTable(t, 10)
}

// The bucket is full at the start, 5 in each of 100 processes, and then pays for one retry in ten calls.
func TestFlakyBucketPaysForItsShareAndForWhatItHeld(t *testing.T) {
	t.Parallel()
	s := flip(t, 0.75, 1, "call-bucket-10")[0]
	want := 1.1 + 100*5/s.calls.mean()
	if got := s.amplification.mean(); math.Abs(got-want) > 0.005 {
		t.Errorf("attempts for each call of call-bucket-10 at p = 0.75 = %.4f, want %.4f", got, want)
	}
}
