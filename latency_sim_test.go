package riprap_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// taking is a service that answers after as long as it takes at the time.
func (w *world) taking(pace func(now time.Duration) time.Duration) service {
	return func(_ int, ended func(error)) {
		w.after(pace(w.now), func() { ended(nil) })
	}
}

// steady takes about as long, a tenth more or less.
func (w *world) steady(took time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return w.around(took) }
}

func (w *world) around(took time.Duration) time.Duration {
	return time.Duration(float64(took) * (0.9 + float64(0.2*w.random.Float64())))
}

// hanging is steady, but that a share of the attempts never gets an answer.
func (w *world) hanging(took time.Duration, share float64) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration {
		if w.random.Float64() < share {
			return 100 * time.Hour
		}
		return w.around(took)
	}
}

// A traffic is how calls come, so many a second, until the instant given. Each is made by begin, which is told what to do
// when it is over.
type traffic func(w *world, perSecond float64, until time.Duration, begin func(over func()))

func poisson(w *world, perSecond float64, until time.Duration, begin func(func())) {
	w.poisson(perSecond, until, func() { begin(func() {}) })
}

// sequential is one caller, who waits for the end of a call before the next.
func sequential(w *world, perSecond float64, until time.Duration, begin func(func())) {
	var next func()
	next = func() {
		if w.now < until {
			begin(func() { w.after(time.Duration(float64(time.Second)/perSecond), next) })
		}
	}
	next()
}

// fifty come in the same instant.
func fifty(w *world, perSecond float64, until time.Duration, begin func(func())) {
	var next func()
	next = func() {
		if w.now < until {
			for range 50 {
				begin(func() {})
			}
			w.after(time.Duration(50/perSecond*float64(time.Second)), next)
		}
	}
	next()
}

// busy is fifty callers with hardly a pause, so that a slow service gets fewer calls.
func busy(w *world, _ float64, until time.Duration, begin func(func())) {
	var next func()
	next = func() {
		if w.now < until {
			begin(func() { w.after(30*time.Millisecond, next) })
		}
	}
	for range 50 {
		next()
	}
}

// A slowdown is the service that answers in 20 ms and from slowBegins on in 400 ms.
const (
	slowBegins = 70 * time.Second
	slowEnds   = 130 * time.Second
)

// slowdown returns the part of the calls that were answered of those that began in the first two slots of the slow time, and
// later, and when the last one that was not answered began, since it became slow.
func slowdown(policy riprap.Policy, deaf bool, traffic traffic, perSecond float64) (early, late share, last time.Duration) {
	w := newWorld(1)
	c := &client{world: w, policy: policy, deaf: deaf}
	c.policy.Rand = w.random.Float64
	s := w.taking(func(now time.Duration) time.Duration {
		if now < slowBegins {
			return w.around(20 * time.Millisecond)
		}
		return w.around(400 * time.Millisecond)
	})
	traffic(w, perSecond, slowEnds, func(over func()) {
		c.call(s, func(o *call) {
			over()
			switch since := o.begun - slowBegins; {
			case since < 0:
			case since < 20*time.Second:
				early.count(o.err == nil)
			default:
				late.count(o.err == nil)
			}
			if o.err != nil {
				last = max(last, o.begun-slowBegins)
			}
		})
	})
	w.run(math.MaxInt64)
	return early, late, last
}

var traffics = []struct {
	name  string
	comes traffic
	rates []float64
}{
	{"at random", poisson, []float64{5, 20, 200}},
	{"one after another", sequential, []float64{5, 20, 200}},
	{"fifty at once", fifty, []float64{5, 20, 200}},
	{"fifty callers, 30 ms between their calls", busy, []float64{0}},
}

func TestTheBoundRecoversWithinTwoSlotsOfAServiceThatBecomesSlower(t *testing.T) {
	for _, traffic := range traffics {
		for _, perSecond := range traffic.rates {
			for attempts, ceiling := range map[int]time.Duration{0: 2 * time.Second, 1: 0} {
				t.Run(fmt.Sprintf("%s, %v calls a second, MaxAttempts %d, AttemptTimeout %v", traffic.name, perSecond, attempts, ceiling), func(t *testing.T) {
					p := riprap.Policy{MaxAttempts: attempts, AttemptTimeout: ceiling, Latency: &riprap.Latency{}}
					early, late, last := slowdown(p, false, traffic.comes, perSecond)
					if late.part < late.whole || late.whole < 50 {
						t.Errorf("20 s after the service became slower %d of %d calls were answered, want all; the last one that was not began after %v",
							late.part, late.whole, last)
					}
					if attempts == 0 && early.whole-early.part > 2 {
						t.Errorf("with retries %d of %d calls were answered in the first 20 s, want all but two", early.part, early.whole)
					}
				})
			}
		}
	}
}

// Else the test above would prove nothing. What saves the service then is that the window runs empty.
func TestABoundThatIsToldOfNoTimeoutKeepsCuttingOff(t *testing.T) {
	p := riprap.Policy{MaxAttempts: 1, Latency: &riprap.Latency{}}
	if early, _, last := slowdown(p, true, poisson, 20); early.part > 0 || last < 30*time.Second {
		t.Errorf("with a bound from successes alone %d calls were answered in the first 20 s, and the last one that was not began after %v, want none and half a minute",
			early.part, last)
	}
}

// The tables of docs/decisions/latency.md.
func TestLatencyTable(t *testing.T) {
	rows := [][]string{{"20 → 400 ms: calls", "not answered, four attempts", "… one attempt", "… timeouts are no samples"}}
	for _, traffic := range traffics {
		for _, perSecond := range traffic.rates {
			name := traffic.name
			if perSecond > 0 {
				name = fmt.Sprintf("%v a second, %s", perSecond, traffic.name)
			}
			row := []string{name}
			for _, variant := range []struct {
				attempts int
				deaf     bool
			}{{4, false}, {1, false}, {1, true}} {
				early, late, last := slowdown(riprap.Policy{MaxAttempts: variant.attempts, Latency: &riprap.Latency{}}, variant.deaf, traffic.comes, perSecond)
				lost := early.whole - early.part + late.whole - late.part
				cell := "0"
				if lost > 0 {
					cell = fmt.Sprintf("%d in %.1f s", lost, last.Seconds())
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
	}
	checkTable(t, "latency.md", "slowdown", rows)

	rows = [][]string{{"share that hangs", "answered", "bound: least", "median", "most", "seconds without"}}
	for _, hangs := range []float64{0.003, 0.01, 0.015, 0.02, 0.03} {
		p := riprap.Policy{MaxAttempts: 1, AttemptTimeout: ceiling, Latency: &riprap.Latency{}}
		seen := watch(p, 200, func(w *world) service { return w.taking(w.hanging(20*time.Millisecond, hangs)) })
		none := 0
		for i, b := range seen.bounds {
			if b == 0 {
				none++
			}
			if b == 0 || b > ceiling {
				seen.bounds[i] = ceiling
			}
		}
		slices.Sort(seen.bounds)
		milliseconds := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
		n := len(seen.bounds)
		rows = append(rows, []string{fmt.Sprint(hangs), fmt.Sprintf("%.3f", seen.answered.value()),
			milliseconds(seen.bounds[0]), milliseconds(seen.bounds[n/2]), milliseconds(seen.bounds[n-1]), fmt.Sprintf("%d of %d", none, n)})
	}
	checkTable(t, "latency.md", "hanging", rows)

	rows = [][]string{{"800 ms at 0.5 % of the calls behind 5 ms: answered", "one shared Latency", "one each"}}
	for _, attempts := range []int{1, 4} {
		shared := &riprap.Latency{}
		_, together := routes(shared, shared, attempts)
		_, apart := routes(&riprap.Latency{}, &riprap.Latency{}, attempts)
		name := "one attempt"
		if attempts > 1 {
			name = fmt.Sprintf("up to %d attempts", attempts)
		}
		rows = append(rows, []string{name, fmt.Sprintf("%.3f", together.value()), fmt.Sprintf("%.3f", apart.value())})
	}
	checkTable(t, "latency.md", "routes", rows)
}

func TestAnEarlyBoundThatIsTooShortCostsLessThanAHundredthOfTheCalls(t *testing.T) {
	for _, attempts := range []int{0, 1} {
		for _, ceiling := range []time.Duration{0, 10 * time.Second} {
			t.Run(fmt.Sprintf("MaxAttempts %d, AttemptTimeout %v", attempts, ceiling), func(t *testing.T) {
				answered := early(riprap.Policy{MaxAttempts: attempts, AttemptTimeout: ceiling}, 300)
				if answered.value() <= 0.99 {
					t.Errorf("%d of the first %d calls were answered, want more than 99 %%", answered.part, answered.whole)
				}
			})
		}
	}
}

// early returns how many of the first calls to a service that takes 300 ms were answered, with a bound of 100 ms to begin with.
func early(policy riprap.Policy, calls int) (answered share) {
	w := newWorld(1)
	policy.Latency = &riprap.Latency{Start: riprap.LatencySnapshot{P50: 20 * time.Millisecond, Bound: 100 * time.Millisecond}}
	policy.Rand = w.random.Float64
	c := &client{world: w, policy: policy}
	s := w.taking(func(time.Duration) time.Duration { return 300 * time.Millisecond })
	sequential(w, 10, math.MaxInt64, func(over func()) {
		c.call(s, func(o *call) {
			if answered.count(o.err == nil); answered.whole < calls {
				over()
			}
		})
	})
	w.run(math.MaxInt64)
	return answered
}

// A watched bound is looked at once a second, in the third minute and the fourth.
type watched struct {
	answered share
	bounds   []time.Duration
}

// watch lets calls come to a service, so many a second.
func watch(policy riprap.Policy, perSecond float64, s func(*world) service) (seen watched) {
	w := newWorld(1)
	policy.Rand = w.random.Float64
	c := &client{world: w, policy: policy}
	service := s(w)
	const from, until = 2 * time.Minute, 4 * time.Minute
	w.poisson(perSecond, until, func() {
		c.call(service, func(o *call) {
			if o.begun >= from {
				seen.answered.count(o.err == nil)
			}
		})
	})
	for at := from; at < until; at += time.Second {
		w.after(at, func() { seen.bounds = append(seen.bounds, policy.Latency.Snapshot(w.time()).Bound) })
	}
	w.run(until + time.Minute)
	return seen
}

const ceiling = 2 * time.Second

func TestHangingAttemptsDriveTheBoundToTheCeilingOrOff(t *testing.T) {
	for _, tt := range []struct {
		share float64
		want  string
		ok    func(bound time.Duration) bool
	}{
		{0.003, "three times the p99", func(b time.Duration) bool { return 60*time.Millisecond < b && b < 70*time.Millisecond }},
		{0.015, "the ceiling or none", func(b time.Duration) bool { return b == 0 || b >= ceiling }},
		{0.03, "none", func(b time.Duration) bool { return b == 0 }},
		{1, "none", func(b time.Duration) bool { return b == 0 }},
	} {
		t.Run(fmt.Sprint(tt.share), func(t *testing.T) {
			p := riprap.Policy{MaxAttempts: 1, AttemptTimeout: ceiling, Latency: &riprap.Latency{}}
			seen := watch(p, 200, func(w *world) service { return w.taking(w.hanging(20*time.Millisecond, tt.share)) })
			for i, bound := range seen.bounds {
				if !tt.ok(bound) {
					t.Fatalf("after %d s of %v of the attempts hanging the bound is %v, want %s", i, tt.share, bound, tt.want)
				}
			}
			if got := seen.answered.value(); math.Abs(got-(1-tt.share)) > 0.003 {
				t.Errorf("%v of the calls were answered, want all that did not hang: %v", got, 1-tt.share)
			}
		})
	}
}

func TestFailuresThatAreNotTimeoutsDoNotMoveTheBound(t *testing.T) {
	for _, tt := range []struct {
		name          string
		took, failing time.Duration
	}{
		{"at once", 300 * time.Millisecond, time.Millisecond},
		{"after 5 s", 2 * time.Second, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bounds := map[time.Duration]int{}
			for _, fails := range []float64{0, 0.5} {
				p := riprap.Policy{MaxAttempts: 1, Latency: &riprap.Latency{}}
				seen := watch(p, 50, func(w *world) service {
					return func(_ int, ended func(error)) {
						if w.random.Float64() < fails {
							w.after(tt.failing, func() { ended(errDown) })
							return
						}
						w.after(tt.took, func() { ended(nil) })
					}
				})
				for _, b := range seen.bounds {
					bounds[b]++
				}
			}
			if len(bounds) != 1 || bounds[0] > 0 {
				t.Errorf("with and without failures the bounds are %v, want one", bounds)
			}
		})
	}
}

// routes is a service with a route that takes 5 ms and one that takes 800 ms and is called once in 200 times.
func routes(slow, fast *riprap.Latency, attempts int) (fastAnswered, slowAnswered share) {
	w := newWorld(1)
	route := func(l *riprap.Latency, took time.Duration, answered *share) func() {
		p := riprap.Policy{MaxAttempts: attempts, AttemptTimeout: 10 * time.Second, Latency: l, Rand: w.random.Float64}
		c, s := &client{world: w, policy: p}, w.taking(w.steady(took))
		return func() {
			c.call(s, func(o *call) {
				if o.begun > 5*time.Second {
					answered.count(o.err == nil)
				}
			})
		}
	}
	callFast := route(fast, 5*time.Millisecond, &fastAnswered)
	callSlow := route(slow, 800*time.Millisecond, &slowAnswered)
	w.poisson(200, 5*time.Minute, func() {
		if w.random.Float64() < 0.005 {
			callSlow()
		} else {
			callFast()
		}
	})
	w.run(math.MaxInt64)
	return fastAnswered, slowAnswered
}

// What the documentation warns of.
func TestARareSlowRouteIsNeverAnsweredBehindAFastOneThatSharesItsLatency(t *testing.T) {
	shared := &riprap.Latency{}
	if fast, slow := routes(shared, shared, 1); slow.part > 0 || slow.whole < 200 || fast.part < fast.whole {
		t.Errorf("with a shared Latency the slow route was answered %d times of %d, the fast one %d of %d, want never and always",
			slow.part, slow.whole, fast.part, fast.whole)
	}
	if fast, slow := routes(&riprap.Latency{}, &riprap.Latency{}, 1); slow.part < slow.whole || slow.whole < 200 || fast.part < fast.whole {
		t.Errorf("with a Latency each the slow route was answered %d times of %d, the fast one %d of %d, want always",
			slow.part, slow.whole, fast.part, fast.whole)
	}
}
