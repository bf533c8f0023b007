package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// answered is a series of steps with so many calls answered, as pairs of how many steps and how many calls.
func answered(pairs ...int) (series []Bin) {
	for pair := range slices.Chunk(pairs, 2) {
		series = append(series, slices.Repeat([]Bin{{Calls: 100, Tries: 100, Good: pair[1]}}, pair[0])...)
	}
	return series
}

// measured is what becomes of a service with 100 calls a second and a trigger from 20 s to 30 s.
func measured(series []Bin, change func(*Scenario, *Result)) *Recovery {
	sc := Scenario{
		Arrivals: Arrivals{Rate: 100},
		Services: []Service{{Kind: Queue, Work: Spread{Mean: 5 * ms}}},
		Triggers: []Trigger{{Kind: Down, From: 20 * s, For: 10 * s}},
		Length:   time.Duration(len(series)) * s,
	}
	r := &Result{Step: s, Series: series}
	if change != nil {
		change(&sc, r)
	}
	r.measure(&sc)
	return r.Recovery
}

func TestAServiceHasRecoveredWhenItAnswersAsUsualAgainAndStillDoesAtTheEnd(t *testing.T) {
	tests := map[string]struct {
		series    []Bin
		again     bool
		after     time.Duration
		recovered bool
		endRate   float64
		lost      float64
	}{
		"at once":             {answered(20, 100, 10, 0, 70, 100), true, 0, true, 100, 10. / 80},
		"after 25 s":          {answered(20, 100, 35, 0, 45, 100), true, 25 * s, true, 100, 35. / 80},
		"nearly as usual":     {answered(20, 100, 10, 0, 70, 95), true, 0, true, 95, (1000 + 70*5.) / 8000},
		"not quite":           {answered(20, 100, 10, 0, 70, 94), false, 0, false, 94, (1000 + 70*6.) / 8000},
		"never":               {answered(20, 100, 80, 0), false, 0, false, 0, 1},
		"relapses":            {answered(20, 100, 10, 0, 30, 100, 40, 20), true, 0, false, 20, (1000 + 40*80.) / 8000},
		"relapses late":       {answered(20, 100, 10, 0, 52, 100, 18, 0), true, 0, false, 0, 28. / 80},
		"slips a little":      {answered(20, 100, 10, 0, 30, 100, 40, 91), true, 0, true, 91, (1000 + 40*9.) / 8000},
		"nine seconds only":   {answered(20, 100, 10, 0, 9, 100, 61, 0), false, 0, false, 0, 71. / 80},
		"no harm done":        {answered(100, 100), true, 0, true, 100, 0},
		"more than usual":     {answered(20, 100, 10, 50, 70, 120), true, 0, true, 120, 0},
		"trigger at the end":  {answered(20, 100, 10, 0), false, 0, false, 0, 1},
		"too short to say so": {answered(20, 100, 10, 0, 9, 100), false, 0, false, 100, 10. / 19},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := measured(tt.series, nil)
			if v.Again != tt.again || v.After != tt.after || v.Recovered != tt.recovered || v.EndRate != tt.endRate || math.Abs(v.Lost-tt.lost) > 1e-9 {
				t.Errorf("measured %+v, want %+v", *v, tt)
			}
			if v.Usual != 100 {
				t.Errorf("Usual: %v, want the rate of the arrivals, 100", v.Usual)
			}
		})
	}
}

// A quarter of a minute of 20 calls a second has 300 of them, give or take 17: a tenth less is chance, a half is not.
func TestFewCallsMayBeFewerByChance(t *testing.T) {
	for end, want := range map[int]bool{20: true, 18: true, 16: true, 15: false, 9: false} {
		series := answered(20, 20, 10, 0, 45, 20, 15, end)
		v := measured(series, func(sc *Scenario, _ *Result) { sc.Arrivals.Rate = 20 })
		if v.Recovered != want {
			t.Errorf("20 calls/s and %d answered at the end: recovered %v, want %v", end, v.Recovered, want)
		}
	}
	if got := stayed(4, time.Second); got != 2 {
		t.Errorf("stayed(4, 1s) = %v, want 2: half of the usual", got)
	}
}

func TestWhatClosedClientsUsuallyGetIsWhatTheyGotBeforeTheTrigger(t *testing.T) {
	closed := func(sc *Scenario, _ *Result) { sc.Arrivals = Arrivals{Clients: 10} }
	// The first five seconds are the first quarter, and do not count.
	v := measured(answered(5, 10, 15, 40, 10, 0, 70, 39), closed)
	if v.Usual != 40 || !v.Recovered || v.EndRate != 39 {
		t.Errorf("measured %+v, want 40 usual, 39 in the end, recovered", *v)
	}
	v = measured(answered(20, 0, 10, 0, 70, 100), closed)
	if v.Usual != 0 || v.Again || v.Recovered || v.Lost != 0 {
		t.Errorf("measured %+v: where nothing was answered before there is nothing to recover", *v)
	}
}

func TestAttemptsAreMeasuredAgainstWhatTheServiceCanDo(t *testing.T) {
	series := answered(20, 100, 10, 0, 70, 100)
	series[25] = Bin{Calls: 100, Tries: 100, Retries: 200}
	series[31] = Bin{Tries: 100, Retries: 400, Good: 100}
	series[3].Retries = 10_000 // before the trigger
	v := measured(series, nil)
	if v.Overshoot != 500./200 {
		t.Errorf("Overshoot: %v, want 2.5 of the 200 a second that the queue serves", v.Overshoot)
	}
	if v.During != 1200./1000 {
		t.Errorf("During: %v attempts for each call in the trigger, want 1.2", v.During)
	}
	v = measured(series, func(sc *Scenario, _ *Result) { sc.Services = []Service{{Kind: Crowd}} })
	if v.Overshoot != 500./100 {
		t.Errorf("Overshoot: %v, want 5 of the 100 calls a second, since a crowd has no limit", v.Overshoot)
	}
}

func TestATriggerThatEndsWithinAStepIsOverAfterIt(t *testing.T) {
	v := measured(answered(100, 100), func(sc *Scenario, _ *Result) { sc.Triggers[0].For = 10*s + 300*ms })
	if !v.Again || v.After != 700*ms {
		t.Errorf("healthy again %v after %v; want from 31s on, which is 700ms after the trigger", v.Again, v.After)
	}
}

func TestWithoutATriggerOrAnEndThereIsNoRecovery(t *testing.T) {
	for name, change := range map[string]func(*Scenario, *Result){
		"no trigger": func(sc *Scenario, _ *Result) { sc.Triggers = nil },
		"no length":  func(sc *Scenario, _ *Result) { sc.Length = 0 },
	} {
		if v := measured(answered(100, 100), change); v != nil {
			t.Errorf("%s: %+v, want nil", name, *v)
		}
	}
}

func TestNothingIsMeasuredThatIsNoNumber(t *testing.T) {
	for name, v := range map[string]*Recovery{
		"nothing happened":       measured(make([]Bin, 100), nil),
		"trigger all the time":   measured(answered(100, 0), func(sc *Scenario, _ *Result) { sc.Triggers[0] = Trigger{Kind: Down, For: 100 * s} }),
		"closed, from the start": measured(answered(100, 7), func(sc *Scenario, _ *Result) { sc.Triggers[0].From, sc.Arrivals = 0, Arrivals{Clients: 1} }),
		"shorter than a step": measured(answered(1, 7), func(sc *Scenario, _ *Result) {
			sc.Length, sc.Triggers[0] = 100*ms, Trigger{Kind: Down, From: 10 * ms, For: 20 * ms}
		}),
		"no capacity": measured(answered(100, 0), func(sc *Scenario, _ *Result) {
			sc.Arrivals, sc.Services = Arrivals{Clients: 1}, []Service{{Kind: Coin}}
		}),
	} {
		for what, x := range map[string]float64{"After": v.After.Seconds(), "Overshoot": v.Overshoot, "Lost": v.Lost, "During": v.During, "EndRate": v.EndRate, "Usual": v.Usual} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Errorf("%s: %s is %v", name, what, x)
			}
		}
	}
}

func TestTheStepOfASeriesGrowsWithTheLength(t *testing.T) {
	for _, tt := range []struct{ step, length, want time.Duration }{
		{0, 600 * s, s},
		{0, 200 * s, s},
		{100 * ms, 0, 100 * ms},
		{0, 2000 * s, s},
		{0, 2001 * s, 2 * s},
		{100 * ms, 600 * s, 400 * ms},
		{10 * s, 3 * s, 3 * s},
		{1, longest, 1 << 44},
	} {
		r := newResult(&Scenario{Step: tt.step, Length: tt.length})
		if r.Step != tt.want {
			t.Errorf("a step of %v in %v becomes %v, want %v", tt.step, tt.length, r.Step, tt.want)
		}
		if n := tt.length / r.Step; n > bins {
			t.Errorf("a step of %v in %v gives %d steps, want %d at most", tt.step, tt.length, n, bins)
		}
	}
}

func TestStepsAreAddedByTheirCountsAndTheirMostWaiting(t *testing.T) {
	b := Bin{Calls: 1, Good: 2, Waiting: 5}
	b.add(&Bin{Calls: 10, Good: 20, Waiting: 3})
	if want := (Bin{Calls: 11, Good: 22, Waiting: 5}); b != want {
		t.Errorf("add: %+v, want %+v", b, want)
	}
}

func TestNoCountAndNoSumOfWaitsIsTooLarge(t *testing.T) {
	const many = 3_000_000_000
	b := Bin{Tries: many}
	b.add(&Bin{Tries: many})
	if b.Tries != 2*many {
		t.Errorf("%d tries and as many are %d", many, b.Tries)
	}
	r := &Result{}
	for range 3 {
		r.waited(1, math.MaxInt64)
	}
	if got := r.Waits[0].Mean(); got != math.MaxInt64 {
		t.Errorf("the mean of three waits of %v is %v", time.Duration(math.MaxInt64), got)
	}
	if got := (Waits{}).Mean(); got != 0 {
		t.Errorf("the mean of no wait is %v", got)
	}
}

// That the service has not recovered is only said where it could have been seen to.
func TestWhatCannotBeSeenIsNotKnown(t *testing.T) {
	closed := func(sc *Scenario, _ *Result) { sc.Arrivals = Arrivals{Clients: 10} }
	for name, c := range map[string]struct {
		v    *Recovery
		want bool
	}{
		"long enough":                   {measured(answered(20, 100, 10, 0, 10, 0), nil), true},
		"too short":                     {measured(answered(20, 100, 10, 0, 9, 100), nil), false},
		"trigger until the end":         {measured(answered(20, 100, 10, 0), nil), false},
		"clients":                       {measured(answered(20, 40, 10, 0, 70, 0), closed), true},
		"clients, no answers before it": {measured(answered(20, 0, 10, 0, 70, 100), closed), false},
	} {
		if c.v.Known != c.want {
			t.Errorf("%s: known %v, want %v", name, c.v.Known, c.want)
		}
	}
}

func TestASeriesWithoutAnEndIsHalvedWhenItIsTooLong(t *testing.T) {
	sc := Scenario{Arrivals: Arrivals{Clients: 50, Once: true}, Step: ms, Services: []Service{{Kind: Queue, Work: Spread{Mean: 100 * ms}}}}
	r, _ := run(t, sc, attempts(1), 1)
	if want := 4 * ms; r.Step != want || len(r.Series) != 1251 {
		t.Errorf("5s in %d steps of %v, want 1251 of %v", len(r.Series), r.Step, want)
	}
	for i, b := range r.Series {
		want := 0
		if i > 0 && i%25 == 0 {
			want = 1
		}
		if b.Good != want {
			t.Errorf("step %d: %d answered, want %d", i, b.Good, want)
		}
	}
	if r.Series[0].Calls != 50 || r.Series[0].Waiting != 49 {
		t.Errorf("first step: %+v, want 50 calls and 49 waiting", r.Series[0])
	}
}
