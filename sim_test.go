package riprap_test

import (
	"context"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// A world is simulated time: events that happen in the order of their instants, and the only source of randomness.
// The calls in it are riprap.Operations. Nothing of what decides about a retry is written a second time here.
type world struct {
	now    time.Duration // since the beginning
	random *rand.Rand
	events []event // a heap, the next one first
	made   int
}

type event struct {
	at    time.Duration
	order int // events of the same instant happen in the order in which they were made
	do    func()
}

func newWorld(seed uint64) *world {
	return &world{random: rand.New(rand.NewPCG(seed, 0))}
}

func (w *world) time() time.Time { return riprap.Start.Add(w.now) }

// exp draws from the exponential distribution: the gaps between the arrivals of a Poisson process of so many a second.
func (w *world) exp(perSecond float64) time.Duration {
	return time.Duration(w.random.ExpFloat64() / perSecond * float64(time.Second))
}

// after makes an event.
func (w *world) after(wait time.Duration, do func()) {
	w.made++
	e := event{w.now + wait, w.made, do}
	w.events = append(w.events, e)
	i := len(w.events) - 1
	for ; i > 0 && e.before(w.events[(i-1)/2]); i = (i - 1) / 2 {
		w.events[i] = w.events[(i-1)/2]
	}
	w.events[i] = e
}

// run lets time pass until the instant given or until nothing more happens.
func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= until {
		first, last := w.events[0], w.events[len(w.events)-1]
		w.events[len(w.events)-1] = event{}
		w.events = w.events[:len(w.events)-1]
		if len(w.events) > 0 {
			w.sink(last)
		}
		w.now = first.at
		first.do()
	}
}

// sink puts an event in the place of the first one.
func (w *world) sink(e event) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(w.events) {
			break
		}
		if right := child + 1; right < len(w.events) && w.events[right].before(w.events[child]) {
			child = right
		}
		if e.before(w.events[child]) {
			break
		}
		w.events[i] = w.events[child]
		i = child
	}
	w.events[i] = e
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// poisson makes arrivals at random instants, so many a second, from now on until the instant given.
func (w *world) poisson(perSecond float64, until time.Duration, arrive func()) {
	var next func()
	next = func() {
		if w.now < until {
			w.after(w.exp(perSecond), next)
			arrive()
		}
	}
	w.after(w.exp(perSecond), next)
}

// A service takes an attempt and reports, now or later, how it ended.
type service func(attempt int, ended func(error))

var errDown = errors.New("down")

// failing is a service that answers after 20 ms, or with an error after 5 ms by the chance that it has at the time.
func (w *world) failing(chance func(now time.Duration) float64) service {
	return func(_ int, ended func(error)) {
		if w.random.Float64() < chance(w.now) {
			w.after(5*time.Millisecond, func() { ended(errDown) })
			return
		}
		w.after(20*time.Millisecond, func() { ended(nil) })
	}
}

func always(chance float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return chance }
}

// between is the chance to fail of a service that is down from one instant to another.
func between(from, to time.Duration) func(time.Duration) float64 {
	return func(now time.Duration) float64 {
		if from <= now && now < to {
			return 1
		}
		return 0
	}
}

// A client is one process that calls one service.
type client struct {
	world  *world
	policy riprap.Policy
	floor  *floor // a budget that is not riprap's, to compare with
	retry  func() // told of each retry that was granted, if not nil
	deaf   bool   // its Latency is told of no timeout
}

// A call is what became of one operation.
type call struct {
	riprap.Operation
	begun time.Duration
	waits time.Duration // of its waits together
	err   error
}

// call makes one call, whose end over is told of.
func (c *client) call(s service, over func(*call)) {
	w, o := c.world, &call{begun: c.world.now}
	o.Policy = &c.policy
	var begin func()
	ended := func(err error) {
		if c.deaf && err != nil {
			o.Observe(w.time().Add(-1), errDown) // before the bound: no timeout
		}
		wait, stop := o.Next(w.time(), err)
		if c.floor != nil {
			if err == nil && o.Attempts == 1 {
				c.floor.deposit(w.now)
			}
			if wait > 0 && !c.floor.withdraw(w.now) {
				wait, stop = 0, riprap.ErrBudget
			}
		}
		if wait > 0 {
			if c.retry != nil {
				c.retry()
			}
			o.waits += wait
			w.after(wait, begin)
			return
		}
		o.err = stop
		over(o)
	}
	begin = func() {
		until := o.Begin(w.time())
		if until.IsZero() {
			s(o.Attempts, ended)
			return
		}
		over := false
		first := func(err error) { // what comes first, the answer or the bound
			if !over {
				over = true
				ended(err)
			}
		}
		s(o.Attempts, first)
		w.after(until.Sub(w.time()), func() { first(context.DeadlineExceeded) })
	}
	begin()
}

// A share is a part of a whole that is counted call by call.
type share struct{ part, whole int }

func (s *share) count(yes bool) {
	s.whole++
	if yes {
		s.part++
	}
}

func (s share) value() float64 { return float64(s.part) / float64(s.whole) }

// firstFailed tells the calls whose first attempt failed, which are those that a retry can rescue.
func (c *call) firstFailed() bool { return c.err != nil || c.Attempts > 1 }

// A sample is what a figure came to, world by world.
type sample []float64

func (s sample) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

// err is the standard error of the mean.
func (s sample) err() float64 {
	sum, mean := 0.0, s.mean()
	for _, x := range s {
		sum += float64((x - mean) * (x - mean)) // the conversion keeps processors from fusing it with the sum
	}
	return math.Sqrt(sum / float64(len(s)-1) / float64(len(s)))
}

var update = flag.Bool("update", false, "write the tables in docs/decisions anew")

// checkTable compares a table with the one of that name in a page of docs/decisions.
func checkTable(t *testing.T, page, name string, rows [][]string) {
	t.Helper()
	rule := make([]string, len(rows[0]))
	for i := range rule {
		rule[i] = "---"
		if i > 0 {
			rule[i] = "--:"
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{rows[0], rule}, rows[1:]...) {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	table := b.String()

	file := "docs/decisions/" + page
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "<!-- table "+name+" -->\n")
	old, after, ok2 := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table %s", file, name)
	}
	switch {
	case old == table:
	case *update:
		page := before + "<!-- table " + name + " -->\n" + table + "<!-- end -->\n" + after
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the table %s is not what the simulation gives; go test -run %s -update . writes it. got\n%s\nwant\n%s",
			file, name, strings.Split(t.Name(), "/")[0], old, table)
	}
}
