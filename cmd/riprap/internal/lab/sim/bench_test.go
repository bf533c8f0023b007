package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkEvent compares an event of a simulation with the least that any event-driven simulation has to do: take out
// the next of as many pending events, draw a random number, and put in a new event.
func BenchmarkEvent(b *testing.B) {
	sc := outage(longest)
	naive := attempts(4)
	for _, policy := range []struct {
		name      string
		candidate *Candidate
	}{
		{"riprap", &Candidate{Budget: &Budget{}}}, // which has recovered when it is measured
		{"naive", &naive},                         // which has not
	} {
		w := newWorld(&sc, policy.candidate, 1)
		for w.begin(); w.now < 200*s; {
			e := w.agenda.pop()
			w.happen(&e)
		}
		pending := w.agenda.len()
		b.Run("impl=heap/policy="+policy.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 0))
			next := func() time.Duration { return time.Duration(random.ExpFloat64() * float64(s)) }
			var a agenda
			for i := range pending {
				a.push(newEvent(next(), uint64(i), again, visit{}, 0))
			}
			made := uint64(pending)
			for b.Loop() {
				e := a.pop()
				made++
				a.push(newEvent(e.at+next(), made, again, visit{}, 0))
			}
			b.ReportMetric(float64(a.len()), "pending")
		})
		b.Run("impl=sim/policy="+policy.name, func(b *testing.B) {
			for b.Loop() {
				e := w.agenda.pop()
				w.happen(&e)
			}
			b.ReportMetric(float64(w.agenda.len()), "pending")
		})
	}
}
