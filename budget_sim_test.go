package riprap_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// A scenario is one thing that happens to a process, and the figures that come of it. The process makes up to three
// attempts, with full jitter from 50 ms; services answer within 20 ms and fail within 5 ms.
type scenario struct {
	figures []figure
	many    bool // destinations
	run     func(w *world, p *process) []float64
}

type figure struct {
	name   string
	digits int
	sign   float64 // +1 where more is better, -1 where less is
	// cedes is how much worse than a budget with a floor riprap is known to be here. The reasons are in
	// docs/decisions/budget.md.
	cedes float64
}

const less, more = -1, +1

// A process has a client for each destination that it calls.
type process struct {
	world   *world
	limit   func(dest int, c *client) // gives a client its budget
	clients map[int]*client
}

func (p *process) client(dest int) *client {
	c := p.clients[dest]
	if c == nil {
		c = &client{world: p.world, policy: riprap.Policy{
			MaxAttempts: 3,
			Backoff:     riprap.Backoff{Base: 50 * time.Millisecond},
			Rand:        p.world.random.Float64,
		}}
		p.limit(dest, c)
		p.clients[dest] = c
	}
	return c
}

// A regime makes what gives the clients of a process their budgets, given whether the process calls many destinations.
type regime func(many bool) func(dest int, c *client)

func noBudget(bool) func(int, *client) { return func(int, *client) {} }

// floors is one retry a second for each destination, ten for the process.
func floors(bool) func(int, *client) {
	parent := &floor{perSecond: 10}
	return func(_ int, c *client) { c.floor = &floor{perSecond: 1, parent: parent} }
}

// budgets is riprap's regime: the budget for each destination, and one above them where there are many.
func budgets(b func() *riprap.Budget) regime {
	return func(many bool) func(int, *client) {
		var parent *riprap.Budget
		if many {
			parent = &riprap.Budget{Reserve: 100}
		}
		return func(_ int, c *client) {
			c.policy.Budget = b()
			c.policy.Budget.Parent = parent
		}
	}
}

func zeroBudget() *riprap.Budget { return &riprap.Budget{} }

// load makes calls to one of the destinations at random and hands over what became of each.
func (p *process) load(perSecond float64, until time.Duration, dests int, s func(int) service, over func(int, *call)) {
	p.world.poisson(perSecond, until, func() {
		dest := p.world.random.IntN(dests)
		p.client(dest).call(s(dest), func(c *call) { over(dest, c) })
	})
	p.world.run(until + time.Minute)
}

func every(s service) func(int) service { return func(int) service { return s } }

var (
	coldStart = scenario{
		figures: []figure{
			{"cold start into an outage, 100 rps: retries in 1 s", 1, less, 0},
			{"… in 10 s", 1, less, 0},
		},
		run: func(w *world, p *process) []float64 {
			second, all := 0, 0
			down := w.failing(always(1))
			p.load(100, 10*time.Second, 1, every(func(attempt int, ended func(error)) {
				if attempt > 1 && w.now < time.Second {
					second++
				}
				if attempt > 1 && w.now < 10*time.Second {
					all++
				}
				down(attempt, ended)
			}), func(int, *call) {})
			return []float64{float64(second), float64(all)}
		},
	}
	lowTraffic = scenario{
		figures: []figure{{"0.1 rps, 5 % errors: rescued", 3, more, 0}},
		run: func(w *world, p *process) []float64 {
			var rescued share
			p.load(0.1, 20000*time.Second, 1, every(w.failing(always(0.05))), func(_ int, c *call) {
				if c.firstFailed() {
					rescued.count(c.err == nil)
				}
			})
			return []float64{rescued.value()}
		},
	}
	halfFails = scenario{
		figures: []figure{
			{"50 % errors, 100 rps: amplification", 3, less, 0},
			{"… success", 3, more, 0.01 * 0.5}, // a floor's retry a second is a hundredth of the calls, half of them succeed
		},
		run: brownout(0.5),
	}
	fifthFails = scenario{
		figures: []figure{
			{"20 % errors, 100 rps: amplification", 3, less, 0},
			{"… success", 3, more, 0.01 * 0.8},
		},
		run: brownout(0.2),
	}
	outage = scenario{
		figures: []figure{
			{"outage, 100 rps: amplification, first 10 s", 3, less, 0.013},
			{"… after that", 3, less, 0},
		},
		run: func(w *world, p *process) []float64 {
			var first, steady share
			p.load(100, 2*time.Minute, 1, every(w.failing(between(time.Minute, time.Hour))), func(_ int, c *call) {
				switch {
				case c.begun >= 70*time.Second:
					steady = share{steady.part + c.Attempts, steady.whole + 1}
				case c.begun >= time.Minute:
					first = share{first.part + c.Attempts, first.whole + 1}
				}
			})
			return []float64{first.value(), steady.value()}
		},
	}
	blip = scenario{
		figures: []figure{{"outage of 1 s, 1000 rps, base 2 s: rescued", 3, more, 0}},
		run: func(w *world, p *process) []float64 {
			p.client(0).policy.Backoff.Base = 2 * time.Second
			return p.secondDown()
		},
	}
	defaultBlip = scenario{
		figures: []figure{{"… with the default policy", 2, more, 0}},
		run: func(w *world, p *process) []float64 {
			p.client(0).policy.MaxAttempts, p.client(0).policy.Backoff = 0, riprap.Backoff{}
			return p.secondDown()
		},
	}
	thousandDown = scenario{
		figures: []figure{{"1000 destinations, 0.1 rps each, all down: amplification", 3, less, 0}},
		many:    true,
		run: func(w *world, p *process) []float64 {
			var all share
			p.load(100, time.Minute, 1000, every(w.failing(always(1))), func(_ int, c *call) {
				all = share{all.part + c.Attempts, all.whole + 1}
			})
			return []float64{all.value()}
		},
	}
	oneOfTenDown = scenario{
		figures: []figure{{"one of ten destinations down, 5 % errors elsewhere: rescued there", 3, more, 0}},
		many:    true,
		run: func(w *world, p *process) []float64 {
			var rescued share
			down, up := w.failing(always(1)), w.failing(always(0.05))
			p.load(100, time.Minute, 10, func(dest int) service {
				if dest == 0 {
					return down
				}
				return up
			}, func(dest int, c *call) {
				if dest > 0 && c.firstFailed() {
					rescued.count(c.err == nil)
				}
			})
			return []float64{rescued.value()}
		},
	}
)

// secondDown returns the share of rescued calls in an outage of one second at 1000 calls a second.
func (p *process) secondDown() []float64 {
	var rescued share
	p.load(1000, 20*time.Second, 1, every(p.world.failing(between(12*time.Second, 13*time.Second))), func(_ int, c *call) {
		if c.firstFailed() {
			rescued.count(c.err == nil)
		}
	})
	return []float64{rescued.value()}
}

func brownout(chance float64) func(*world, *process) []float64 {
	return func(w *world, p *process) []float64 {
		var attempts, success share
		p.load(100, time.Minute, 1, every(w.failing(always(chance))), func(_ int, c *call) {
			attempts = share{attempts.part + c.Attempts, attempts.whole + 1}
			success.count(c.err == nil)
		})
		return []float64{attempts.value(), success.value()}
	}
}

var scenarios = []scenario{coldStart, lowTraffic, halfFails, fifthFails, outage, blip, thousandDown, oneOfTenDown}

// measure runs a scenario under a regime, in so many worlds, and returns a sample for each of its figures.
func (s scenario) measure(r regime, worlds int) []sample {
	samples := make([]sample, len(s.figures))
	for seed := range worlds {
		w := newWorld(uint64(seed))
		for i, x := range s.run(w, &process{w, r(s.many), map[int]*client{}}) {
			samples[i] = append(samples[i], x)
		}
	}
	return samples
}

// A compared is a figure under the three rules, world by world.
type compared struct {
	figure
	none, floor, riprap sample
}

var comparison = sync.OnceValue(func() (all []compared) {
	const worlds = 20
	for _, s := range scenarios {
		none, floor, riprap := s.measure(noBudget, worlds/4), s.measure(floors, worlds), s.measure(budgets(zeroBudget), worlds)
		for i, f := range s.figures {
			all = append(all, compared{f, none[i], floor[i], riprap[i]})
		}
	}
	return all
})

func TestZeroBudgetIsAsGoodAsOneWithAFloor(t *testing.T) {
	for _, c := range comparison() {
		// The worlds are the same for both, so that the spread of the difference counts, which is smaller than that of
		// either. Four standard errors are as good as certain.
		var better sample
		for i := range c.riprap {
			better = append(better, c.sign*(c.riprap[i]-c.floor[i]))
		}
		if got, want := better.mean(), -c.cedes-4*better.err(); got < want {
			t.Errorf("%s: riprap %.4f, with a floor %.4f: better by %.4f, want at least %.4f",
				c.name, c.riprap.mean(), c.floor.mean(), got, want)
		}
		t.Logf("%s: %+.4f ± %.4f", c.name, better.mean(), better.err())
	}
}

func TestBudgetTable(t *testing.T) {
	rows := [][]string{{"", "no budget", "a floor of 1/s", "riprap"}}
	for _, c := range comparison() {
		row := []string{c.name}
		for _, s := range []sample{c.none, c.floor, c.riprap} {
			row = append(row, fmt.Sprintf("%.*f ± %.*f", c.digits, s.mean(), c.digits, s.err()))
		}
		rows = append(rows, row)
	}
	checkTable(t, "budget.md", "scenarios", rows)
	checkTable(t, "budget.md", "storm", stormTable())
	checkTable(t, "budget.md", "figures", figuresTable())
}

// figuresTable shows what other figures of the Budget would do.
func figuresTable() [][]string {
	rows := [][]string{{"ratio, reserve, window", "cold start: retries", "50 %: amplification", "success", "20 %: success",
		"outage: first 10 s", "1 s at 1000 rps: rescued", "… by the default policy", "storm, 280 processes"}}
	for _, b := range []struct {
		ratio   float64
		reserve int
		window  time.Duration
	}{
		{0.1, 10, 10}, {0.2, 5, 10}, {0.2, 10, 10}, {0.2, 20, 10}, {0.2, 50, 10}, {0.3, 10, 10},
		{0.21, 10, 10}, {0.2, 10, 8}, {0.21, 10, 8}, {0.22, 10, 8}, {0.2, 10, 60},
	} {
		budget := func() *riprap.Budget {
			return &riprap.Budget{Ratio: b.ratio, Reserve: b.reserve, Window: b.window * time.Second}
		}
		const worlds = 4
		cold, half := coldStart.measure(budgets(budget), 1), halfFails.measure(budgets(budget), worlds)
		fifth, down := fifthFails.measure(budgets(budget), worlds), outage.measure(budgets(budget), worlds)
		short, second := blip.measure(budgets(budget), 1), defaultBlip.measure(budgets(budget), worlds)
		rows = append(rows, []string{
			fmt.Sprintf("%v, %d, %d s", b.ratio, b.reserve, b.window),
			strconv.Itoa(int(cold[1].mean())),
			fmt.Sprintf("%.2f", half[0].mean()), fmt.Sprintf("%.3f", half[1].mean()), fmt.Sprintf("%.3f", fifth[1].mean()),
			fmt.Sprintf("%.2f", down[0].mean()), fmt.Sprintf("%.2f", short[0].mean()), fmt.Sprintf("%.2f", second[0].mean()),
			recoveries(storms(budgets(budget), 280, 1)),
		})
	}
	return rows
}
