package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// BenchmarkEvent compares an event of a simulation with the least that any event-driven simulation has to do: take the
// next event out of a heap of the same size, draw a random number, and put a new event in.
func BenchmarkEvent(b *testing.B) {
	outage := Scenario{
		Name:     "outage",
		Arrivals: Arrivals{Rate: 280},
		Timeout:  time.Second,
		Services: []Service{{Kind: Queue, Work: Spread{Kind: Exponential, Mean: time.Second / 300}}},
		Triggers: []Trigger{{Kind: Cut, From: 60 * time.Second, For: 10 * time.Second}},
		Length:   600 * time.Second,
	}
	usual := Candidate{Name: "riprap", Budget: &Budget{}}
	naive := Candidate{Name: "naive", Policy: riprap.Policy{Backoff: riprap.Backoff{Base: 1, Max: 1}}}
	b.Run("impl=heap", func(b *testing.B) {
		random := rand.New(rand.NewPCG(1, 0))
		var a heap
		for range 600 {
			a.push(event{at: time.Duration(random.ExpFloat64() * 1e9)})
		}
		for b.Loop() {
			e := a.pop()
			e.at += time.Duration(random.ExpFloat64() * 1e9)
			e.order++
			a.push(e)
		}
	})
	for name, c := range map[string]*Candidate{"riprap": &usual, "naive": &naive} {
		b.Run("impl="+name, func(b *testing.B) {
			w := newWorld(&outage, c, 1)
			w.begin()
			for b.Loop() {
				e := w.agenda.pop()
				w.happen(&e)
			}
			b.ReportMetric(float64(w.agenda.len()), "pending")
		})
	}
}

func BenchmarkContentionTable(b *testing.B) {
	imm := riprap.Backoff{Base: 1, Max: 1}
	for b.Loop() {
		events := 0
		for n := 10; n <= 190; n += 10 {
			for _, backoff := range []riprap.Backoff{
				imm,
				{Base: 10 * time.Millisecond, Max: 2 * time.Second, Jitter: riprap.None},
				{Base: 10 * time.Millisecond, Max: 2 * time.Second, Jitter: riprap.Equal},
				{Base: 10 * time.Millisecond, Max: 2 * time.Second},
				{Base: 5 * time.Millisecond, Max: 2 * time.Second, Jitter: riprap.Decorrelated},
			} {
				c := Candidate{Policy: riprap.Policy{MaxAttempts: -1, Backoff: backoff}}
				s := Scenario{Arrivals: Arrivals{Clients: n, Once: true},
					Network: Spread{Kind: Normal, Mean: 10 * time.Millisecond, SD: 2 * time.Millisecond}, Services: []Service{{Kind: Row}}}
				for seed := range 100 {
					events += Run(context.Background(), &s, &c, uint64(seed)).Events
				}
			}
		}
		b.ReportMetric(float64(events), "events/op")
	}
}
