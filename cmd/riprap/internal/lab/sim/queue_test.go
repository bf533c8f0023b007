package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// served is a queue whose work takes 10 ms.
func served(a Admission) Scenario {
	return Scenario{Services: []Service{{Kind: Queue, Work: Spread{Mean: 10 * ms}, Admission: a}}}
}

func TestAQueueServesInTheOrderOfArrivalUnlessItIsLIFO(t *testing.T) {
	tests := map[string]struct {
		a    Admission
		want []int // clients, in the order in which they are served
	}{
		"zero": {Admission{}, []int{0, 1, 2, 3}},
		"LIFO": {Admission{LIFO: true}, []int{0, 3, 2, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, ended, _ := play(t, served(tt.a), attempts(1), 0, ms, 2*ms, 3*ms)
			var want []moment
			for i, client := range tt.want {
				want = append(want, moment{client, 1, time.Duration(i+1) * 10 * ms, nil})
			}
			same(t, "four attempts within 3ms, 10ms of work each", ended, want)
		})
	}
}

func TestWorkersServeInParallel(t *testing.T) {
	sc := served(Admission{})
	sc.Services[0].Workers = 2
	_, ended, _ := play(t, sc, attempts(1), 0, ms, 2*ms, 3*ms, 4*ms)
	same(t, "two workers", ended, []moment{{0, 1, 10 * ms, nil}, {1, 1, 11 * ms, nil}, {2, 1, 20 * ms, nil}, {3, 1, 21 * ms, nil}, {4, 1, 30 * ms, nil}})
}

func TestAQueueRefusesAtOnceWhatItHasNoRoomFor(t *testing.T) {
	tests := map[string]struct {
		room    int
		refused []moment
	}{
		"two places": {2, []moment{{3, 1, 3 * ms, errFailed}, {4, 1, 4 * ms, errFailed}}},
		"none":       {-1, []moment{{1, 1, 1 * ms, errFailed}, {2, 1, 2 * ms, errFailed}, {3, 1, 3 * ms, errFailed}, {4, 1, 4 * ms, errFailed}}},
		"any number": {0, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, ended, w := play(t, served(Admission{Room: tt.room}), attempts(1), 0, ms, 2*ms, 3*ms, 4*ms)
			refused := slices.DeleteFunc(ended, func(m moment) bool { return m.err == nil })
			same(t, "refused of five attempts within 4ms", refused, tt.refused)
			if n := len(tt.refused); w.result.Refused != n || w.result.Served != 5-n {
				t.Errorf("refused %d and served %d, want %d and %d", w.result.Refused, w.result.Served, n, 5-n)
			}
		})
	}
}

// Five attempts come at once and are wanted within 35 ms. The first three can be ready in time.
func TestAQueueDoesNotWorkForThoseWhoLeaveIfItIsTold(t *testing.T) {
	tests := map[string]struct {
		a                       Admission
		served, wasted, dropped int
	}{
		"never told":           {Admission{}, 5, 2, 0}, // the fourth leaves while it is served, the fifth before
		"told when they leave": {Admission{Cancels: true}, 4, 1, 1},
		"knows the deadline":   {Admission{Drop: true}, 4, 1, 1},
		"and what work takes":  {Admission{Drop: true, Margin: 10 * ms}, 3, 0, 2},
		"and exactly that":     {Admission{Drop: true, Margin: 15 * ms}, 2, 0, 3}, // the third has exactly 15ms left
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sc := served(tt.a)
			sc.Timeout = 35 * ms
			_, _, w := play(t, sc, attempts(1), 0, 0, 0, 0, 0)
			if r := w.result; r.Served != tt.served || r.Wasted != tt.wasted || r.Dropped != tt.dropped {
				t.Errorf("served %d, of these for nobody %d, dropped %d; want %d, %d, %d", r.Served, r.Wasted, r.Dropped, tt.served, tt.wasted, tt.dropped)
			}
		})
	}
}

func TestAnIdleWorkerDropsWhatComesTooLateAsWell(t *testing.T) {
	for name, a := range map[string]Admission{"Cancels": {Cancels: true}, "Drop": {Drop: true}, "Margin": {Drop: true, Margin: 60 * ms}} {
		t.Run(name, func(t *testing.T) {
			sc := served(a)
			sc.Timeout = 100 * ms
			if name == "Margin" {
				sc.Timeout = 160 * ms
			}
			sc.Triggers = []Trigger{{Kind: Cut, From: 0, For: 100 * ms}} // the attempt comes when its time is over, or nearly so
			_, ended, w := play(t, sc, attempts(1), 0)
			same(t, "the only attempt", ended, []moment{{0, 1, sc.Timeout, errLate}})
			if r := w.result; r.Served != 0 || r.Dropped != 1 {
				t.Errorf("served %d and dropped %d, want 0 and 1", r.Served, r.Dropped)
			}
		})
	}
}

func TestADroppingQueueNeverBeginsWithLessThanTheMarginLeft(t *testing.T) {
	sc := outage(100 * s)
	sc.Services[0].Admission = Admission{Drop: true, Margin: 20 * ms}
	sc.Services[0].Work = Spread{Mean: s / 300} // never as long as the margin
	r, _ := run(t, sc, attempts(4), 1)
	if r.Wasted != 0 || r.Dropped == 0 {
		t.Errorf("wasted %d and dropped %d: want none wasted, since work is shorter than the margin, and some dropped", r.Wasted, r.Dropped)
	}
}

func TestWorkThatHangsKeepsItsWorkerExactlyUntilTheCallerLeaves(t *testing.T) {
	sc := served(Admission{})
	sc.Services[0].Hangs = 1
	sc.Timeout = 100 * ms
	// The second attempt waits for the worker until 100 ms and then keeps it for the 50 ms that are left to it.
	_, ended, w := play(t, sc, attempts(1), 0, 50*ms, 200*ms)
	same(t, "attempts that hang", ended, []moment{{0, 1, 100 * ms, errLate}, {1, 1, 150 * ms, errLate}, {2, 1, 300 * ms, errLate}})
	if r := w.result; r.Wasted != 3 || w.now != 300*ms {
		t.Errorf("%d wasted until %v, want 3 until 300ms", r.Wasted, w.now)
	}
	sc.Timeout = 0
	if _, ended, _ := play(t, sc, attempts(1), 0, 50*ms); len(ended) != 0 {
		t.Errorf("an only worker hangs for ever, and still this came back: %v", ended)
	}
}

// A thousand workers, 1000 calls a second, one in twenty of which hangs for 100 s, are the example of "Site Reliability
// Engineering", chapter 22: 19.6 % are served. 1000 = x·(0.95·0.1 + 0.05·100) leaves x = 196 of them a second.
func TestAFewCallsThatHangTakeAllWorkers(t *testing.T) {
	sc := Scenario{
		Arrivals: Arrivals{Rate: 1000},
		Timeout:  100 * s,
		Services: []Service{{Kind: Queue, Workers: 1000, Work: Spread{Mean: 100 * ms}, Hangs: 0.05, Admission: Admission{Room: -1}}},
		Length:   600 * s,
	}
	r, _ := run(t, sc, attempts(1), 1)
	reached, refused := 0, 0
	for _, b := range r.Series[200:] {
		reached += int(b.Reached)
		refused += int(b.Refused)
	}
	near(t, "share admitted", 1-float64(refused)/float64(reached), 0.1962, 0.005)
}

// erlangB is the share of calls that find no worker idle where none waits, and erlangC where all wait ("Solution of some
// problems in the theory of probabilities", A. K. Erlang, 1917). Load is the rate times the mean work.
func erlangB(workers int, load float64) float64 {
	b := 1.0
	for i := 1; i <= workers; i++ {
		b = load * b / (float64(i) + load*b)
	}
	return b
}

func erlangC(workers int, load float64) float64 {
	b := erlangB(workers, load)
	return b / (1 - load/float64(workers)*(1-b))
}

func TestAQueueWaitsAsTheoryHasIt(t *testing.T) {
	for _, tt := range []struct {
		workers int
		use     float64
	}{{1, 0.7}, {4, 0.7}, {20, 0.8}} {
		load := tt.use * float64(tt.workers)
		sc := Scenario{
			Arrivals: Arrivals{Rate: load / 0.010},
			Services: []Service{{Kind: Queue, Workers: tt.workers, Work: Spread{Kind: Exponential, Mean: 10 * ms}}},
		}
		sc.Length = time.Duration(150_000 / sc.Arrivals.Rate * float64(s))
		c := attempts(1)
		var sent, ended []moment
		c.Rival = func() Rival { return log{0, &sent, &ended} }
		w := newWorld(&sc, &c, 1)
		q := w.hops[0].service.(*queue)
		busy, waits := 0.0, 0
		w.begin()
		for w.agenda.len() > 0 {
			e := w.agenda.pop()
			if e.at >= sc.Length {
				break
			}
			busy += float64(tt.workers-q.idle) * (e.at - w.now).Seconds()
			if e.kind() == arrive && q.idle == 0 {
				waits++
			}
			w.happen(&e)
		}
		inside := time.Duration(0)
		for _, m := range ended {
			inside += m.at
		}
		for _, m := range sent[:len(ended)] { // nearly the same ones
			inside -= m.at
		}
		c0 := erlangC(tt.workers, load)
		mean := 0.010 + c0*0.010/(float64(tt.workers)-load)
		near(t, "share of workers busy", busy/float64(tt.workers)/sc.Length.Seconds(), tt.use, 0.02*tt.use)
		near(t, "share that waits", float64(waits)/float64(len(sent)), c0, 0.04*c0)
		near(t, "mean time inside, s", inside.Seconds()/float64(len(ended)), mean, 0.05*mean)
	}
}

func TestAQueueWithoutRoomRefusesAsTheoryHasIt(t *testing.T) {
	sc := Scenario{
		Arrivals: Arrivals{Rate: 800},
		Services: []Service{{Kind: Queue, Workers: 10, Work: Spread{Kind: Exponential, Mean: 10 * ms}, Admission: Admission{Room: -1}}},
		Length:   200 * s,
	}
	r, _ := run(t, sc, attempts(1), 1)
	want := erlangB(10, 8)
	n := float64(r.Attempts)
	near(t, "share refused", float64(r.Refused)/n, want, 8*math.Sqrt(want*(1-want)/n)) // refusals come in bursts
}
