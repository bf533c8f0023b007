package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// broken is a service that fails at once.
func broken() Scenario { return Scenario{Services: []Service{{Kind: Coin, Fails: 1}}} }

// silent is a service that never answers.
func silent() Scenario {
	return Scenario{Services: []Service{{Kind: Queue, Workers: 1000, Hangs: 1}}}
}

func quarter() float64 { return 0.25 }

func TestTheWaitsAreThoseOfThePolicy(t *testing.T) {
	tests := map[string]struct {
		backoff riprap.Backoff
		want    []time.Duration
	}{
		// A draw of a quarter waits three quarters of the limit.
		"full":         {riprap.Backoff{Base: 100 * ms, Max: s}, []time.Duration{75 * ms, 150 * ms, 300 * ms, 600 * ms, 750 * ms}},
		"equal":        {riprap.Backoff{Base: 100 * ms, Max: s, Jitter: riprap.Equal}, []time.Duration{87500 * time.Microsecond, 175 * ms, 350 * ms, 700 * ms, 875 * ms}},
		"none":         {riprap.Backoff{Base: 100 * ms, Max: s, Factor: 3, Jitter: riprap.None}, []time.Duration{100 * ms, 300 * ms, 900 * ms, s, s}},
		"decorrelated": {riprap.Backoff{Base: 100 * ms, Max: s, Jitter: riprap.Decorrelated}, []time.Duration{250 * ms, 587500 * time.Microsecond, 775 * ms, 775 * ms, 775 * ms}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := Candidate{Policy: riprap.Policy{MaxAttempts: 6, Backoff: tt.backoff, Rand: quarter}}
			sent, _, w := play(t, broken(), c, 0)
			var got []time.Duration
			for i := range sent[1:] {
				got = append(got, sent[i+1].at-sent[i].at)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("waits %v, want %v", got, tt.want)
			}
			for i, wait := range tt.want {
				if got := w.result.Waits[i]; got.Count != 1 || got.Mean() != wait {
					t.Errorf("Waits[%d] is %+v, want one of %v", i, got, wait)
				}
			}
		})
	}
}

func TestAnEndlessWaitDoesNotEndInThePast(t *testing.T) {
	sc := broken()
	sc.Network, sc.Arrivals, sc.Length = Spread{Mean: ms}, Arrivals{Clients: 1, Once: true}, s
	c := Candidate{Policy: riprap.Policy{Backoff: riprap.Backoff{Base: math.MaxInt64, Max: math.MaxInt64, Jitter: riprap.None}}}
	if r, _ := run(t, sc, c, 1); r.Attempts != 1 || r.Last != 2*ms {
		t.Errorf("%d attempts until %v, want 1 until 2ms", r.Attempts, r.Last)
	}
}

func TestNoCallMakesMoreAttemptsThanItsPolicyAllows(t *testing.T) {
	for limit, want := range map[int]int{0: 4, 1: 1, 3: 3, 7: 7} {
		c := attempts(limit)
		_, _, w := play(t, broken(), c, 0, ms, 2*ms)
		if r := w.result; r.Attempts != 3*want || r.GaveUp != 3 {
			t.Errorf("MaxAttempts %d: %d attempts for 3 calls, of which %d were given up; want %d, 3", limit, r.Attempts, r.GaveUp, 3*want)
		}
	}
}

func TestEachProcessRetriesAsLongAsItsOwnBudgetLasts(t *testing.T) {
	for processes, want := range map[int]int{1: 20 + 5, 4: 20 + 4*5} {
		sc := broken()
		sc.Arrivals = Arrivals{Clients: 20, Once: true}
		sc.Processes = processes
		c := attempts(3)
		c.Budget = &Budget{Ratio: -1, Reserve: 5}
		if r, _ := run(t, sc, c, 1); r.Attempts != want || r.GaveUp != 20 {
			t.Errorf("%d processes with a budget of five: %d attempts for 20 calls, %d given up; want %d, 20", processes, r.Attempts, r.GaveUp, want)
		}
	}
}

func TestEachClientIsAProcessUnlessTheirNumberIsGiven(t *testing.T) {
	sc := broken()
	sc.Arrivals = Arrivals{Clients: 20, Once: true}
	c := attempts(3)
	c.Budget = &Budget{Ratio: -1, Reserve: 1}
	if r, _ := run(t, sc, c, 1); r.Attempts != 20+20 {
		t.Errorf("20 clients with a budget of one retry each: %d attempts, want 40", r.Attempts)
	}
}

func TestABudgetOfThePolicyIsNotUsed(t *testing.T) {
	sc := broken()
	sc.Arrivals = Arrivals{Clients: 5, Once: true}
	c := attempts(2)
	c.Policy.Budget = &riprap.Budget{Ratio: -1, Reserve: -1}
	if r, _ := run(t, sc, c, 1); r.Attempts != 10 {
		t.Errorf("%d attempts, want 10: simulations must not share a budget", r.Attempts)
	}
}

func TestAnAttemptEndsWithThePolicysTimeoutOrElseTheScenarios(t *testing.T) {
	for name, tt := range map[string]struct{ scenario, policy, want time.Duration }{
		"the scenario's": {300 * ms, 0, 300 * ms},
		"the policy's":   {300 * ms, 500 * ms, 500 * ms},
		"the shorter":    {300 * ms, 100 * ms, 100 * ms},
		"only a policy":  {0, 200 * ms, 200 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			sc, c := silent(), attempts(2)
			sc.Timeout, c.Policy.AttemptTimeout = tt.scenario, tt.policy
			_, ended, _ := play(t, sc, c, 0)
			same(t, "two attempts", ended, []moment{{0, 1, tt.want, errLate}, {0, 2, 2*tt.want + 1, errLate}})
		})
	}
}

func TestACallEndsWithTheTimeoutOfItsPolicy(t *testing.T) {
	c := Candidate{Policy: riprap.Policy{
		MaxAttempts: -1, Timeout: s, AttemptTimeout: 300 * ms,
		Backoff: riprap.Backoff{Base: 100 * ms, Max: 100 * ms, Jitter: riprap.None},
	}}
	sent, ended, w := play(t, silent(), c, 0)
	same(t, "sent", sent, []moment{{0, 1, 0, nil}, {0, 2, 400 * ms, nil}, {0, 3, 800 * ms, nil}})
	same(t, "ended", ended, []moment{{0, 1, 300 * ms, errLate}, {0, 2, 700 * ms, errLate}, {0, 3, s, errLate}})
	if w.result.GaveUp != 1 || w.now != s {
		t.Errorf("given up %d, over at %v; want 1, 1s", w.result.GaveUp, w.now)
	}

	c.Policy.Backoff.Base, c.Policy.Backoff.Max = 700*ms, 700*ms // the first wait would end at the deadline
	if sent, _, w := play(t, silent(), c, 0); len(sent) != 1 || w.now != 300*ms {
		t.Errorf("%d attempts, over at %v; want 1, given up at 300ms since no other has a chance", len(sent), w.now)
	}
}

// patient is a Rival that waits longer than riprap.
type patient struct{ log }

func (patient) Wait(time.Duration, time.Duration, float64) time.Duration { return 600 * ms }

func TestARivalsWaitEndsWithTheCallToo(t *testing.T) {
	sc, c := broken(), attempts(-1)
	c.Policy.Timeout = s
	for minAttempt, want := range map[time.Duration]int{0: 2, 400 * ms: 2, 400*ms + 1: 1} {
		var sent, ended []moment
		c.Policy.MinAttempt = minAttempt
		c.Rival = func() Rival { return patient{log{0, &sent, &ended}} }
		sc.Arrivals = Arrivals{Clients: 1, Once: true}
		if r, _ := run(t, sc, c, 1); r.Attempts != want || r.GaveUp != 1 || r.Last > s {
			t.Errorf("waits of 600ms in a call of 1s that needs %v: %d attempts until %v, want %d", minAttempt, r.Attempts, r.Last, want)
		}
	}
}

func TestALateAnswerIsWastedAndDoesNotCount(t *testing.T) {
	sc := served(Admission{})
	sc.Timeout = 9 * ms
	_, ended, w := play(t, sc, attempts(2), 0)
	same(t, "attempts of 10ms that have 9ms", ended, []moment{{0, 1, 9 * ms, errLate}, {0, 2, 18*ms + 1, errLate}})
	if r := w.result; r.Answered != 0 || r.GaveUp != 1 || r.Served != 2 || r.Wasted != 2 {
		t.Errorf("answered %d, given up %d, served %d, wasted %d; want 0, 1, 2, 2", r.Answered, r.GaveUp, r.Served, r.Wasted)
	}

	sc.Timeout, sc.Network = 25*ms, Spread{Mean: 8 * ms} // the work is in time, its answer is not
	if _, _, w := play(t, sc, attempts(1), 0); w.result.Answered != 0 || w.result.Served != 1 || w.result.Wasted != 0 {
		t.Errorf("an answer that is late on its way: %+v, want one served and none answered", w.result)
	}
}

// stern is a Rival that lets out only so many attempts, and grants only so many retries.
type stern struct {
	log
	attempts, retries *int
}

func (r stern) Admit(now time.Duration, attempt int, u float64) bool {
	*r.attempts--
	return *r.attempts >= 0 && r.log.Admit(now, attempt, u)
}

func (r stern) Retry(time.Duration, error) bool { *r.retries--; return *r.retries >= 0 }

func TestARivalHoldsBackAttemptsAndRetries(t *testing.T) {
	for name, tt := range map[string]struct{ attempts, retries, sent, withheld int }{
		"neither":  {100, 100, 30, 0},
		"attempts": {12, 100, 12, 10}, // all first tries and two retries; each call ends with one that is not let out
		"retries":  {100, 8, 18, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sc, c := broken(), attempts(3)
			sc.Arrivals, sc.Processes = Arrivals{Clients: 10, Once: true}, 1
			var sent, ended []moment
			c.Rival = func() Rival { return stern{log{0, &sent, &ended}, &tt.attempts, &tt.retries} }
			r, _ := run(t, sc, c, 1)
			if r.Attempts != tt.sent || len(ended) != tt.sent || r.Withheld != tt.withheld || r.GaveUp != 10 {
				t.Errorf("%d attempts, %d heard of, %d withheld, %d of 10 calls given up; want %d, %[5]d, %d, 10",
					r.Attempts, len(ended), r.Withheld, r.GaveUp, tt.sent, tt.withheld)
			}
		})
	}
}

// keen is a Rival that writes down how the attempt before had ended.
type keen struct {
	log
	prev *[]error
}

func (k keen) Ended(_ time.Duration, _ int, prev, _ error) { *k.prev = append(*k.prev, prev) }

func TestARivalHearsHowTheAttemptBeforeHadEnded(t *testing.T) {
	// The answer to the first attempt is lost, the second at 51 ms fails, and the third at 52 ms is answered.
	sc, c := served(Admission{}), attempts(3)
	sc.Timeout = 50 * ms
	sc.Arrivals = Arrivals{Clients: 1, Once: true}
	sc.Triggers = []Trigger{{Kind: Lost, For: 20 * ms, Factor: 1}, {Kind: Down, From: 40 * ms, For: 11500 * time.Microsecond}}
	c.Policy.Backoff = riprap.Backoff{Base: ms, Max: ms, Jitter: riprap.None}
	var sent, ended []moment
	var prev []error
	c.Rival = func() Rival { return keen{log{0, &sent, &ended}, &prev} }
	r, _ := run(t, sc, c, 1)
	if want := []error{nil, errLate, errFailed}; !slices.Equal(prev, want) || r.Answered != 1 {
		t.Errorf("before the three attempts: %v, answered %d; want %v, 1", prev, r.Answered, want)
	}
}
