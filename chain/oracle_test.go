package chain_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

const forever = time.Duration(math.MaxInt64)

// What Check and Hops work out service by service is told here by following every way through the chain, and by letting the
// engine itself make the attempts.

// worst makes the attempts of a policy as riprap does, each as long as its bound and each wait the longest, within a time that
// the caller has. It returns how many there were and what the last one had.
func worst(p riprap.Policy, has time.Duration) (attempts int, left time.Duration) {
	p.Rand, p.Budget = func() float64 { return 0 }, nil
	now := time.Unix(0, 0)
	o := riprap.Operation{Policy: &p}
	if p.Timeout > 0 {
		has = min(has, p.Timeout)
	}
	if has != forever {
		o.Deadline = now.Add(has)
	}
	for {
		until := o.Begin(now)
		if until.IsZero() {
			return o.Attempts, forever
		}
		left, now = until.Sub(now), until
		wait, _ := o.Next(now, errors.New("too slow"))
		if wait == 0 {
			return o.Attempts, left
		}
		now = now.Add(wait)
	}
}

// A step is a call on a way through a chain.
type step struct {
	from int
	call *chain.Call
}

// ways calls visit with each way from a service that nobody calls to any other.
func ways(c *chain.Chain, visit func([]step)) {
	called := map[string]bool{}
	for _, s := range c.Services {
		for _, call := range s.Calls {
			called[call.To] = true
		}
	}
	var follow func(at int, way []step)
	follow = func(at int, way []step) {
		for i := range c.Services[at].Calls {
			call := &c.Services[at].Calls[i]
			longer := append(way[:len(way):len(way)], step{at, call})
			visit(longer)
			to, _ := strconv.Atoi(call.To)
			follow(to, longer)
		}
	}
	for i, s := range c.Services {
		if !called[s.Name] {
			follow(i, nil)
		}
	}
}

func limitOf(d time.Duration) time.Duration {
	if d <= 0 {
		return forever
	}
	return d
}

func attemptOf(c *chain.Call) time.Duration {
	return min(limitOf(c.Policy.AttemptTimeout), limitOf(c.Policy.Timeout))
}

func totalOf(c *chain.Call) time.Duration {
	if c.Policy.MaxAttempts == 1 {
		return attemptOf(c)
	}
	return c.Policy.Timeout // a tame chain has one
}

func attemptsOf(c *chain.Call) int {
	if c.Policy.MaxAttempts == 0 {
		return 4
	}
	return c.Policy.MaxAttempts
}

// disordered reports whether a call or a limit is not below the one right above it, somewhere.
func disordered(c *chain.Chain) (found bool) {
	patience := map[string]time.Duration{}
	ways(c, func(way []step) {
		last := way[len(way)-1]
		total := totalOf(last.call)
		patience[last.call.To] = max(patience[last.call.To], total)
		if total >= limitOf(c.Services[last.from].Limit) || len(way) > 1 && total >= attemptOf(way[len(way)-2].call) {
			found = true
		}
	})
	for _, s := range c.Services {
		if waits := patience[s.Name]; s.Limit > 0 && waits > 0 && s.Limit > waits {
			found = true
		}
	}
	return found
}

func TestSuppressionNeverHidesTheLastFinding(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		c := tame(random.IntN)
		findings := chain.Check(c)
		if got, want := has(findings, "callee-outlives-caller"), disordered(c); got != want {
			t.Fatalf("Check of %+v =\n%sa callee outlives its caller: %t, want %t", c, written(findings), got, want)
		}

		product, most := 1, c.MaxCalls
		ways(c, func(way []step) {
			calls := 1
			for _, s := range way {
				calls *= attemptsOf(s.call)
			}
			product = max(product, calls)
		})
		if most == 0 {
			most = 10
		}
		if got, want := has(findings, "retries-multiply"), most > 0 && product > most; got != want {
			t.Fatalf("Check of %+v =\n%sretries multiply: %t, want %t with a product of %d", c, written(findings), got, want, product)
		}
	}
}

func TestAttemptsFitIfTheEngineMakesThemAll(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	fit := map[bool]int{}
	for range 5000 {
		c := tame(random.IntN)
		c.Services = c.Services[:1]
		if len(c.Services[0].Calls) == 0 {
			continue
		}
		c.Services[0].Limit = 0
		first := call(c, 0)
		attempts, left := worst(first.Policy, forever)
		want := attempts == attemptsOf(first) && left == attemptOf(first)
		fit[want]++
		if got := !has(onlyFirst(c), "attempts-do-not-fit"); got != want {
			t.Fatalf("Check with %+v finds that the attempts fit: %t, want %t: the engine made %d, the last with %s",
				first.Policy, got, want, attempts, left)
		}
	}
	if fit[true] < 100 || fit[false] < 100 {
		t.Errorf("attempts fit or not: %v, want enough of both", fit)
	}
}

// onlyFirst returns the findings about the first call of the first service.
func onlyFirst(c *chain.Chain) (findings []chain.Finding) {
	for _, f := range chain.Check(c) {
		if f.Service == c.Services[0].Name && f.Call == 0 {
			findings = append(findings, f)
		}
	}
	return findings
}

func TestHopsShowWhatTheEngineLeaves(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		c := tame(random.IntN)
		want := map[*chain.Call]time.Duration{}
		calls := map[*chain.Call]int{}
		least := map[string]time.Duration{}
		for i, s := range c.Services { // callers come first in a tame chain
			has := min(limitOf(s.Limit), limitOf(least[s.Name]))
			for j := range s.Calls {
				call := &c.Services[i].Calls[j]
				_, left := worst(call.Policy, has)
				least[call.To] = min(left, limitOf(least[call.To]))
				to, _ := strconv.Atoi(call.To)
				want[call] = min(left, limitOf(c.Services[to].Limit))
			}
		}
		ways(c, func(way []step) {
			n := 1
			for _, s := range way {
				n *= attemptsOf(s.call)
			}
			last := way[len(way)-1].call
			calls[last] = max(calls[last], n)
		})
		drawn := 0
		for _, h := range c.Hops() {
			if h.Depth == 0 {
				continue
			}
			from, _ := strconv.Atoi(h.From)
			call := &c.Services[from].Calls[h.Call]
			drawn++
			if h.Left != want[call] || h.Calls != calls[call] {
				t.Fatalf("Hops of %+v has %+v, want %s left and %d calls", c, h, want[call], calls[call])
			}
		}
		if drawn != len(want) {
			t.Fatalf("Hops of %+v has %d calls, want %d", c, drawn, len(want))
		}
	}
}
