package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// crowded is a crowd in which an attempt takes 60 ms alone, and 10 ms more for each that is inside.
func crowded(cancels bool) Scenario {
	return Scenario{Services: []Service{{Kind: Crowd, Base: 50 * ms, Each: 10 * ms, Admission: Admission{Cancels: cancels}}}}
}

func TestInACrowdTheTimeIsSettledAtTheEntrance(t *testing.T) {
	// The first is alone, and is not slowed down by those who come later.
	_, ended, w := play(t, crowded(false), attempts(1), 0, 20*ms, 30*ms, 500*ms)
	same(t, "a crowd", ended, []moment{{0, 1, 60 * ms, nil}, {1, 1, 90 * ms, nil}, {2, 1, 110 * ms, nil}, {3, 1, 560 * ms, nil}})
	if got := w.result.Series[0].Waiting; got != 3 {
		t.Errorf("at most %d were inside, want 3", got)
	}
}

func TestWhoLeavesACrowdFreesItsPlaceIfTheWorkEndsWithIt(t *testing.T) {
	tests := map[string]struct {
		cancels        bool
		last           moment // of the fourth, who comes when the second and the third have just left
		served, wasted int
	}{
		"works on": {false, moment{3, 1, 131 * ms, errLate}, 4, 3}, // there are three, which takes 80 ms
		"cancels":  {true, moment{3, 1, 126 * ms, nil}, 2, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sc := crowded(tt.cancels)
			sc.Timeout = 65 * ms
			_, ended, w := play(t, sc, attempts(1), 0, 0, 0, 66*ms)
			same(t, "a crowd that two leave", ended, []moment{{0, 1, 60 * ms, nil}, {1, 1, 65 * ms, errLate}, {2, 1, 65 * ms, errLate}, tt.last})
			if r := w.result; r.Served != tt.served || r.Wasted != tt.wasted {
				t.Errorf("served %d, of these for nobody %d; want %d and %d", r.Served, r.Wasted, tt.served, tt.wasted)
			}
		})
	}
}

func TestTheEndOfAnAttemptThatWasAnsweredFreesNobodysPlace(t *testing.T) {
	sc := crowded(true)
	sc.Timeout = 65 * ms
	// When the time of the first would be over, the second is inside. The third finds it there.
	_, ended, w := play(t, sc, attempts(1), 0, 61*ms, 66*ms)
	same(t, "a crowd", ended, []moment{{0, 1, 60 * ms, nil}, {1, 1, 121 * ms, nil}, {2, 1, 131 * ms, errLate}})
	if in := w.hops[0].service.(*crowd).inside; in != 0 {
		t.Errorf("%d are inside at the end, want none", in)
	}
}

func TestACrowdIsEmptyInTheEndWhateverItsCallersDid(t *testing.T) {
	for name, change := range map[string]func(*Scenario){
		"they leave before they arrive": func(sc *Scenario) { sc.Timeout = 5 * ms },
		"they leave while inside":       func(sc *Scenario) { sc.Timeout = 50 * ms },
		"they leave after the work":     func(sc *Scenario) { sc.Timeout = 75 * ms },
		"answers are lost":              func(sc *Scenario) { sc.Timeout, sc.Triggers = 200*ms, []Trigger{{Kind: Lost, For: s, Factor: 1}} },
		"the service is down":           func(sc *Scenario) { sc.Triggers = []Trigger{{Kind: Down, For: 100 * ms}} },
	} {
		t.Run(name, func(t *testing.T) {
			sc := crowded(true)
			sc.Network = Spread{Mean: 10 * ms}
			change(&sc)
			_, _, w := play(t, sc, attempts(3), 0, ms, 2*ms, 300*ms)
			if in := w.hops[0].service.(*crowd).inside; in != 0 || w.inFlight() != 0 {
				t.Errorf("%d attempts are inside and %d calls open at the end, want none", in, w.inFlight())
			}
		})
	}
}

func TestOfThoseWhoReadTheSameVersionOneWrites(t *testing.T) {
	sc := Scenario{Network: Spread{Mean: 10 * ms}, Services: []Service{{Kind: Row}}}
	// All four read at 10 ms and write at 30 ms; those who lost know at 40 ms and read again at once.
	_, ended, w := play(t, sc, attempts(-1), 0, 0, 0, 0)
	winners := slices.DeleteFunc(slices.Clone(ended), func(m moment) bool { return m.err != nil })
	for i, m := range winners {
		if want := time.Duration(i+1)*40*ms + time.Duration(i); m.at != want || m.attempt != i+1 {
			t.Errorf("winner %d: attempt %d at %v, want %d at %v", i, m.attempt, m.at, i+1, want)
		}
	}
	r, version := w.result, w.hops[0].service.(*row).version
	if len(winners) != 4 || version != 4 || r.Attempts != 4+3+2+1 || r.Served != 10 || r.Series[0].Reached != 10 {
		t.Errorf("%d winners, version %d, %d attempts of which %d came and %d wrote; want 4, 4 and 10 each",
			len(winners), version, r.Attempts, r.Series[0].Reached, r.Served)
	}
}

func TestWhoLeavesBetweenReadingAndWritingDoesNotWrite(t *testing.T) {
	sc := Scenario{Network: Spread{Mean: 10 * ms}, Timeout: 25 * ms, Services: []Service{{Kind: Row}}}
	_, ended, w := play(t, sc, attempts(2), 0)
	same(t, "attempts of 40ms that have 25ms", ended, []moment{{0, 1, 25 * ms, errLate}, {0, 2, 50*ms + 1, errLate}})
	if v := w.hops[0].service.(*row).version; v != 0 || w.result.Served != 0 {
		t.Errorf("version %d after %d writes, want none", v, w.result.Served)
	}
}

func TestACoinFailsAsOftenAsItSays(t *testing.T) {
	for _, p := range []float64{0, 0.1, 0.5, 0.75, 1} {
		sc := Scenario{Arrivals: Arrivals{Clients: 20_000, Once: true}, Services: []Service{{Kind: Coin, Fails: p}}}
		r, _ := run(t, sc, attempts(4), 1)
		// Each of four attempts fails alike: 1-p⁴ are answered, by (1-p⁴)/(1-p) attempts on average.
		answered, load := 1-p*p*p*p, 1+p+p*p+p*p*p
		near(t, "answered", float64(r.Answered)/20_000, answered, 0.012)
		near(t, "attempts for a call", float64(r.Attempts)/20_000, load, 0.04)
	}
}

func TestARelayCallsTheNextServiceForEachAttemptAndPassesItsAnswerOn(t *testing.T) {
	sc := Scenario{Services: []Service{{Kind: Relay}, {Kind: Relay}, {Kind: Coin, Fails: 1}}}
	_, ended, w := play(t, sc, attempts(4), 0)
	if r := w.result; r.Attempts != 64 || r.GaveUp != 1 || r.Calls != 1 {
		t.Errorf("one call over three hops of four attempts: %d attempts below, %d of %d given up; want 64, 1 of 1", r.Attempts, r.GaveUp, r.Calls)
	}
	if first := w.result.Series[0].Tries; first != 1 {
		t.Errorf("%d of the attempts are no retry of anybody, want 1", first)
	}
	ended = slices.DeleteFunc(ended, func(m moment) bool { return m.client != 0 })
	for i, m := range ended {
		if m.attempt != i+1 || m.err != errFailed {
			t.Errorf("the client's attempt %d: %+v, want a failure", i+1, m)
		}
	}
	if len(ended) != 4 {
		t.Errorf("the client made %d attempts, want 4", len(ended))
	}
	sc.Services[2].Fails = 0
	_, _, w = play(t, sc, attempts(4), 0)
	if r := w.result; r.Attempts != 1 || r.Answered != 1 {
		t.Errorf("one call to a service that answers: %d attempts and %d answered, want 1 and 1", r.Attempts, r.Answered)
	}
}

func TestARelayWorksOnForCallersThatHaveLeft(t *testing.T) {
	sc := Scenario{Timeout: 100 * ms, Services: []Service{{Kind: Relay}, {Kind: Queue, Work: Spread{Mean: 60 * ms}}}}
	// Of two calls, the second is served until 120 ms. Both the client and the relay have left it by then.
	_, _, w := play(t, sc, Candidate{Policy: riprap.Policy{MaxAttempts: 1}}, 0, 0)
	if r := w.result; r.Answered != 1 || r.GaveUp != 1 || r.Served != 2 || r.Wasted != 1 {
		t.Errorf("answered %d, given up %d, served %d, wasted %d; want 1, 1, 2, 1", r.Answered, r.GaveUp, r.Served, r.Wasted)
	}
}
