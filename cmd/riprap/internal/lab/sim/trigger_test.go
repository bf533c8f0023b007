package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// plain has a queue that takes 10 ms, and a network that takes 5 ms each way.
func plain(triggers ...Trigger) Scenario {
	sc := served(Admission{})
	sc.Network = Spread{Mean: 5 * ms}
	sc.Triggers = triggers
	return sc
}

func TestAServiceThatIsDownFailsAtOnce(t *testing.T) {
	_, ended, w := play(t, plain(Trigger{Kind: Down, From: 100 * ms, For: 50 * ms}), attempts(1), 94*ms, 95*ms, 145*ms-1, 145*ms)
	same(t, "down from 100ms to 150ms", ended, []moment{{1, 1, 105 * ms, errFailed}, {0, 1, 114 * ms, nil}, {2, 1, 155*ms - 1, errFailed}, {3, 1, 165 * ms, nil}})
	if r := w.result; r.Served != 2 || r.Series[0].Reached != 4 {
		t.Errorf("%d came and %d were served, want 4 and 2", r.Series[0].Reached, r.Served)
	}
}

func TestACutHoldsWhatIsSentAndDeliversItInOrderAtItsEnd(t *testing.T) {
	_, ended, w := play(t, plain(Trigger{Kind: Cut, From: 100 * ms, For: 50 * ms}), attempts(1), 94*ms, 95*ms, 120*ms, 130*ms, 144*ms, 145*ms)
	same(t, "cut from 100ms to 150ms", ended, []moment{
		{0, 1, 114 * ms, nil}, {1, 1, 165 * ms, nil}, {2, 1, 175 * ms, nil}, {3, 1, 185 * ms, nil}, {4, 1, 195 * ms, nil}, {5, 1, 205 * ms, nil},
	})
	if got := w.result.Series[0].Waiting; got != 4 {
		t.Errorf("at most %d waited, want 4", got)
	}
}

func TestWhileAServiceIsSlowWorkTakesLonger(t *testing.T) {
	slow := Trigger{Kind: Slow, From: 100 * ms, For: 50 * ms, Factor: 3}
	_, ended, _ := play(t, plain(slow), attempts(1), 95*ms-1, 145*ms-1, 190*ms)
	same(t, "work of 10ms that takes three times as long", ended, []moment{{0, 1, 115*ms - 1, nil}, {1, 1, 185*ms - 1, nil}, {2, 1, 210 * ms, nil}})

	sc := crowded(false)
	sc.Triggers = []Trigger{slow}
	_, ended, _ = play(t, sc, attempts(1), 0, 100*ms)
	same(t, "a slow crowd", ended, []moment{{0, 1, 60 * ms, nil}, {1, 1, 280 * ms, nil}})
}

func TestAServiceWhoseAnswersAreLostDoesTheWork(t *testing.T) {
	sc := plain(Trigger{Kind: Lost, From: 100 * ms, For: 50 * ms, Factor: 1})
	sc.Timeout = 40 * ms
	_, ended, w := play(t, sc, attempts(1), 0, 90*ms, 140*ms)
	same(t, "answers lost from 100ms to 150ms", ended, []moment{{0, 1, 20 * ms, nil}, {1, 1, 130 * ms, errLate}, {2, 1, 160 * ms, nil}})
	if w.result.Served != 3 {
		t.Errorf("served %d, want 3", w.result.Served)
	}
}

func TestTheShareOfAnswersThatIsLostIsTheFactor(t *testing.T) {
	sc := plain(Trigger{Kind: Lost, For: s, Factor: 0.3})
	sc.Services[0].Workers, sc.Timeout = 20_000, 100*ms
	sc.Arrivals = Arrivals{Clients: 20_000, Once: true}
	r, _ := run(t, sc, attempts(1), 1)
	near(t, "answered of 20000", float64(r.Answered), 14_000, 4*math.Sqrt(20_000*0.3*0.7))
}

func TestOnlyTheLastServiceIsConcernedByTriggers(t *testing.T) {
	// An attempt is with the relay from 5 ms on and with the queue from 10 ms on, which answers at 20 ms; the relay does at
	// 25 ms.
	tests := map[string]struct {
		trigger Trigger
		want    moment
	}{
		"none":                          {Trigger{Kind: Down, From: 500 * ms, For: ms}, moment{0, 1, 30 * ms, nil}},
		"down while it is at the relay": {Trigger{Kind: Down, From: 4 * ms, For: 3 * ms}, moment{0, 1, 30 * ms, nil}},
		"down when it is at the queue":  {Trigger{Kind: Down, From: 9 * ms, For: 3 * ms}, moment{0, 1, 20 * ms, errFailed}},
		"cut before the relay":          {Trigger{Kind: Cut, From: 3 * ms, For: 5 * ms}, moment{0, 1, 30 * ms, nil}},
		"cut before the queue":          {Trigger{Kind: Cut, From: 9 * ms, For: 5 * ms}, moment{0, 1, 34 * ms, nil}},
		"the relay's answer is safe":    {Trigger{Kind: Lost, From: 22 * ms, For: 5 * ms, Factor: 1}, moment{0, 1, 30 * ms, nil}},
		"the queue's answer is lost":    {Trigger{Kind: Lost, From: 19 * ms, For: 5 * ms, Factor: 1}, moment{0, 1, 100 * ms, errLate}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sc := plain(tt.trigger)
			sc.Timeout = 100 * ms
			sc.Services = slices.Insert(sc.Services, 0, Service{Kind: Relay})
			_, ended, _ := play(t, sc, attempts(1), 0)
			ended = slices.DeleteFunc(ended, func(m moment) bool { return m.client != 0 })
			same(t, "a client, a relay and a queue", ended, []moment{tt.want})
		})
	}
}

func TestAFaultReachesFromTheFirstTriggerToTheEndOfTheLast(t *testing.T) {
	sc := Scenario{Triggers: []Trigger{{From: 30 * s, For: 5 * s}, {From: 10 * s, For: 40 * s}, {From: 20 * s, For: s}}}
	if from, until := sc.Fault(); from != 10*s || until != 50*s {
		t.Errorf("Fault() = %v, %v, want 10s, 50s", from, until)
	}
	if from, until := (&Scenario{}).Fault(); from != 0 || until != 0 {
		t.Errorf("Fault() without a trigger = %v, %v, want zero", from, until)
	}
}

func TestCapacityIsWhatTheWorkersOfTheLastServiceCanDo(t *testing.T) {
	for name, tt := range map[string]struct {
		last Service
		want float64
	}{
		"queue":        {Service{Kind: Queue, Work: Spread{Mean: 10 * ms}}, 100},
		"four workers": {Service{Kind: Queue, Workers: 4, Work: Spread{Mean: 10 * ms}}, 400},
		"no work":      {Service{Kind: Queue}, 0},
		"crowd":        {Service{Kind: Crowd, Base: s}, 0},
	} {
		sc := Scenario{Services: []Service{{Kind: Relay}, tt.last}}
		if got := sc.Capacity(); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: Capacity() = %v, want %v", name, got, tt.want)
		}
	}
}

func TestSpreadsAreDrawnAsTheyAreNamed(t *testing.T) {
	const n = 100_000
	for name, tt := range map[string]struct {
		spread   Spread
		mean, sd time.Duration
	}{
		"zero":        {Spread{}, 0, 0},
		"fixed":       {Spread{Mean: 10 * ms, SD: 5 * ms}, 10 * ms, 0},
		"exponential": {Spread{Kind: Exponential, Mean: 10 * ms}, 10 * ms, 10 * ms},
		"normal":      {Spread{Kind: Normal, Mean: 10 * ms, SD: 2 * ms}, 10 * ms, 2 * ms},
		// The absolute value of a normal around zero has the mean sd·√(2/π) and the deviation sd·√(1-2/π).
		"folded": {Spread{Kind: Normal, SD: 10 * ms}, 7978846, 6028103},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(&Scenario{Services: []Service{{Kind: Coin}}}, &Candidate{}, 1)
			sum, squares := 0.0, 0.0
			for range n {
				x := tt.spread.Draw(w.random)
				if x < 0 {
					t.Fatalf("draw: %v, want no negative time", x)
				}
				sum += float64(x)
				squares += float64(x) * float64(x)
			}
			mean := sum / n
			near(t, "mean", mean, float64(tt.mean), 4*float64(tt.sd)/math.Sqrt(n))
			near(t, "deviation", math.Sqrt(max(squares/n-mean*mean, 0)), float64(tt.sd), 0.03*float64(tt.sd)+1)
		})
	}
}
