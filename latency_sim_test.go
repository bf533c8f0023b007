package riprap_test

import (
	"fmt"
	"math"
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
	return time.Duration(float64(took) * (0.9 + 0.2*w.random.Float64()))
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

// busy is fifty callers without a pause, so that a slow service gets fewer calls.
func busy(w *world, _ float64, until time.Duration, begin func(func())) {
	var next func()
	next = func() {
		if w.now < until {
			begin(func() { w.after(0, next) })
		}
	}
	for range 50 {
		next()
	}
}

// A slowdown is the service that answers in 20 ms and from slowBegins on in 400 ms.
const (
	slowBegins = 2 * time.Minute
	slowEnds   = 4 * time.Minute
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

func TestTheBoundRecoversWithinTwoSlotsOfAServiceThatBecomesSlower(t *testing.T) {
	for name, traffic := range map[string]traffic{"poisson": poisson, "sequential": sequential, "fifty at once": fifty, "fifty callers without pause": busy} {
		for _, perSecond := range []float64{5, 20, 200} {
			for _, attempts := range []int{0, 1} {
				for _, ceiling := range []time.Duration{0, 2 * time.Second} {
					t.Run(fmt.Sprintf("%s, %v calls/s, attempts %d, AttemptTimeout %v", name, perSecond, attempts, ceiling), func(t *testing.T) {
						p := riprap.Policy{MaxAttempts: attempts, AttemptTimeout: ceiling, Latency: &riprap.Latency{}}
						early, late, last := slowdown(p, false, traffic, perSecond)
						t.Logf("early %v late %v last %v", early, late, last)
						if late.value() < 1 {
							t.Errorf("from 20 s after the service became slower %v of %d calls were answered, want all", late.value(), late.whole)
						}
					})
				}
			}
		}
	}
}
