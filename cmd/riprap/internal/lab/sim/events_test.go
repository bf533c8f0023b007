package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestAnEventGivesBackWhatItWasMadeOf(t *testing.T) {
	for k := arrive; k <= again; k++ {
		e := newEvent(time.Second, 1<<48-1, k, visit{call: 3, turn: 4}, 255)
		if e.at != time.Second || e.kind() != k || e.hop() != 255 || e.call != 3 || e.turn != 4 {
			t.Errorf("newEvent(1s, …, kind %d, call 3, turn 4, hop 255) is at %v, kind %d, %+v, hop %d", k, e.at, e.kind(), e.visit, e.hop())
		}
	}
}

func TestEventsOfTheSameInstantComeInTheOrderInWhichTheyWereMade(t *testing.T) {
	tests := map[string]struct {
		e, f event
		want int
	}{
		"sooner":                   {newEvent(1, 9, again, visit{}, 9), newEvent(2, 1, arrive, visit{}, 0), 1},
		"later":                    {newEvent(2, 1, arrive, visit{}, 0), newEvent(1, 9, again, visit{}, 9), 0},
		"same instant, made first": {newEvent(5, 1, again, visit{}, 9), newEvent(5, 2, arrive, visit{}, 0), 1},
		"same instant, made last":  {newEvent(5, 2, arrive, visit{}, 0), newEvent(5, 1, again, visit{}, 9), 0},
		"after four billion":       {newEvent(5, 1<<32-1, again, visit{}, 0), newEvent(5, 1<<32, arrive, visit{}, 0), 1},
		"at the end of time":       {newEvent(0, 1, arrive, visit{}, 0), newEvent(2*farthest, 0, arrive, visit{}, 0), 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.e.before(&tt.f); got != tt.want {
				t.Errorf("before is %d, want %d", got, tt.want)
			}
		})
	}
}

// agendaAgainstSort lets each number make an event, or take out one, and compares an agenda with a sorted list.
func agendaAgainstSort(t *testing.T, steps []byte) {
	t.Helper()
	var (
		a     agenda
		model []event
		now   time.Duration
		made  uint64
	)
	take := func() {
		got, want := a.pop(), model[0]
		if model = model[1:]; got != want {
			t.Fatalf("pop: event %d at %v, want %d at %v", got.what>>16, got.at, want.what>>16, want.at)
		}
		now = got.at
	}
	for _, x := range steps {
		if x >= 160 {
			if len(model) > 0 {
				take()
			}
		} else {
			made++
			e := newEvent(now+time.Duration(x%16), made, kind(x>>4)%(again+1), visit{call: int32(made)}, 0)
			a.push(e)
			i, _ := slices.BinarySearchFunc(model, e, func(f, e event) int {
				return cmp.Or(cmp.Compare(f.at, e.at), cmp.Compare(f.what, e.what))
			})
			model = slices.Insert(model, i, e)
		}
		if a.len() != len(model) {
			t.Fatalf("len: %d, want %d", a.len(), len(model))
		}
	}
	for len(model) > 0 {
		take()
	}
	if a.len() != 0 {
		t.Fatalf("len: %d after all were taken out", a.len())
	}
}

func TestTheAgendaGivesOutEventsInTheirOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		steps := make([]byte, random.IntN(400))
		for i := range steps {
			steps[i] = byte(random.UintN(256))
		}
		agendaAgainstSort(t, steps)
	}
}

func FuzzAgenda(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{80, 80, 3, 200, 5, 5, 5, 255, 255})
	f.Add([]byte{0, 200, 0, 0, 200, 95, 81, 94, 200, 200})
	f.Fuzz(agendaAgainstSort)
}

func TestEndsThatDoNotComeInOrderAreSortedAllTheSame(t *testing.T) {
	var a agenda
	for i, at := range []time.Duration{5, 9, 2, 9, 7} { // the deadline of a call is nearer than the end of an attempt
		a.push(newEvent(at, uint64(i), late, visit{}, 0))
	}
	var got []time.Duration
	for a.len() > 0 {
		got = append(got, a.pop().at)
	}
	if want := []time.Duration{2, 5, 7, 9, 9}; !slices.Equal(got, want) {
		t.Errorf("ends came at %v, want %v", got, want)
	}
}

// ringAgainstSlice compares a ring with a slice: each number puts it in, or takes one out at one end.
func ringAgainstSlice(t *testing.T, steps []byte) {
	t.Helper()
	var r ring[byte]
	var model []byte
	for _, x := range steps {
		switch n := len(model); {
		case x < 170 || n == 0:
			r.push(x)
			model = append(model, x)
		case x%2 == 0:
			if got, want := r.shift(), model[0]; got != want {
				t.Fatalf("shift: %d, want %d", got, want)
			}
			model = model[1:]
		default:
			if got, want := r.pop(), model[n-1]; got != want {
				t.Fatalf("pop: %d, want %d", got, want)
			}
			model = model[:n-1]
		}
		if r.n != len(model) {
			t.Fatalf("the ring holds %d, want %d", r.n, len(model))
		}
		if r.n > 0 && (*r.first() != model[0] || *r.last() != model[r.n-1]) {
			t.Fatalf("first and last: %d and %d, want %d and %d", *r.first(), *r.last(), model[0], model[r.n-1])
		}
	}
}

func TestARingGivesOutWhatASliceWould(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		steps := make([]byte, random.IntN(1000))
		for i := range steps {
			steps[i] = byte(random.UintN(256))
		}
		ringAgainstSlice(t, steps)
	}
}

func FuzzRing(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 201, 4})
	f.Add(slices.Repeat([]byte{7, 8, 9, 200}, 60))
	f.Fuzz(ringAgainstSlice)
}

func TestARingThatStaysShortTakesNoMoreMemory(t *testing.T) {
	var r ring[int]
	for i := range 100_000 {
		r.push(i)
		if i >= 50 {
			r.shift()
		}
	}
	if len(r.items) != 64 {
		t.Errorf("a ring that never held more than 51 has room for %d, want 64", len(r.items))
	}
}
