package sim

import (
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestOpenArrivalsAreAPoissonProcess(t *testing.T) {
	sc := Scenario{Arrivals: Arrivals{Rate: 50}, Services: []Service{{Kind: Coin}}, Length: 2000 * s}
	r, _ := run(t, sc, attempts(1), 1)
	sum, squares := 0.0, 0.0
	for _, b := range r.Series {
		sum += float64(b.Calls)
		squares += float64(b.Calls) * float64(b.Calls)
	}
	n := float64(len(r.Series))
	mean := sum / n
	near(t, "calls a second", mean, 50, 4*math.Sqrt(50/n))
	// The variance of a Poisson count is its mean, and its own deviation is about √(2/n) of that.
	near(t, "variance of the calls in a second", squares/n-mean*mean, 50, 4*50*math.Sqrt(2/n))
}

// expected is how many calls are made between two instants, by the rate that the documentation promises.
func (s *Scenario) expected(from, until time.Duration) (sum float64) {
	const step = 10 * time.Millisecond
	for at := from; at < until; at += step {
		rate := s.Arrivals.Rate
		for _, t := range s.Triggers {
			if t.From > at || at >= t.From+t.For {
				continue
			}
			switch t.Kind {
			case Spike:
				rate *= t.Factor
			case Ramp:
				up := (at + step/2 - t.From).Seconds() / t.For.Seconds() // 0 to 1
				rate *= 1 + (t.Factor-1)*(1-math.Abs(2*up-1))
			}
		}
		sum += rate * step.Seconds()
	}
	return sum
}

func TestSpikesAndRampsChangeTheRateExactlyWhileTheyAreOn(t *testing.T) {
	tests := map[string][]Trigger{
		"none":              nil,
		"spike":             {{Kind: Spike, From: 20 * s, For: 5 * s, Factor: 2}},
		"ramp":              {{Kind: Ramp, From: 0, For: 50 * s, Factor: 2}},
		"ramp down":         {{Kind: Ramp, From: 10 * s, For: 60 * s, Factor: 0.25}},
		"ramp to nothing":   {{Kind: Ramp, From: 10 * s, For: 60 * s, Factor: 0}},
		"no calls at all":   {{Kind: Spike, From: 20 * s, For: 30 * s, Factor: 0}},
		"two spikes":        {{Kind: Spike, From: 10 * s, For: 20 * s, Factor: 3}, {Kind: Spike, From: 20 * s, For: 20 * s, Factor: 0.5}},
		"spike and ramp":    {{Kind: Ramp, From: 0, For: 100 * s, Factor: 3}, {Kind: Spike, From: 40 * s, For: 20 * s, Factor: 2}},
		"until the end":     {{Kind: Spike, From: 90 * s, For: 10 * s, Factor: 4}},
		"one after another": {{Kind: Spike, From: 10 * s, For: 10 * s, Factor: 2}, {Kind: Spike, From: 20 * s, For: 10 * s, Factor: 4}},
	}
	for name, triggers := range tests {
		t.Run(name, func(t *testing.T) {
			sc := Scenario{Arrivals: Arrivals{Rate: 400}, Services: []Service{{Kind: Coin}}, Triggers: triggers, Length: 100 * s}
			r, _ := run(t, sc, attempts(1), 1)
			for at := 0; at < 100; at += 5 {
				got := 0
				for _, b := range r.Series[at : at+5] {
					got += int(b.Calls)
				}
				want := sc.expected(time.Duration(at)*s, time.Duration(at+5)*s)
				if math.Abs(float64(got)-want) > 4*math.Sqrt(want) {
					t.Errorf("%d calls from %ds to %ds, want %.0f ± %.0f", got, at, at+5, want, 4*math.Sqrt(want))
				}
			}
		})
	}
}

func TestAClientMakesOneCallAfterAnotherAndPausesBetween(t *testing.T) {
	sc := Scenario{
		Arrivals: Arrivals{Clients: 1, Pause: Spread{Mean: 70 * ms}},
		Services: []Service{{Kind: Queue, Work: Spread{Mean: 30 * ms}}},
		Length:   s,
	}
	var sent, ended []moment
	c := attempts(1)
	c.Rival = func() Rival { return log{0, &sent, &ended} }
	run(t, sc, c, 1)
	for i := range 9 {
		if want := time.Duration(70+i*100) * ms; sent[i].at != want || ended[i].at != want+30*ms {
			t.Errorf("call %d from %v to %v, want %v to %v", i, sent[i].at, ended[i].at, want, want+30*ms)
		}
	}
	if len(sent) != 10 {
		t.Errorf("%d calls in a second, want 10", len(sent))
	}
}

func TestClientsNeverHaveMoreThanACallEachInFlight(t *testing.T) {
	sc := Scenario{
		Arrivals: Arrivals{Clients: 20, Pause: Spread{Kind: Exponential, Mean: 5 * ms}},
		Network:  Spread{Kind: Exponential, Mean: ms},
		Timeout:  50 * ms,
		Services: []Service{{Kind: Queue, Work: Spread{Kind: Exponential, Mean: 3 * ms}}},
		Length:   20 * s,
	}
	c := Candidate{Policy: riprap.Policy{Backoff: riprap.Backoff{Base: 10 * ms}}}
	w := newWorld(&sc, &c, 1)
	w.begin()
	most := 0
	for w.agenda.len() > 0 && w.now < sc.Length {
		e := w.agenda.pop()
		w.happen(&e)
		most = max(most, w.inFlight())
	}
	if most != 20 {
		t.Errorf("at most %d calls of 20 clients were in flight, want 20", most)
	}
	w.result.Total()
	// A queue that is never idle serves what it can, whoever asks.
	near(t, "served a second", float64(w.result.Served)/20, s.Seconds()/0.003, 4*math.Sqrt(s.Seconds()/0.003/20)+3)
}

func TestClientsOfAServiceThatFailsAtOnceDoNotCallForEverInOneInstant(t *testing.T) {
	sc := Scenario{Arrivals: Arrivals{Clients: 2}, Services: []Service{{Kind: Coin, Fails: 1}}, Length: s}
	if r, _ := run(t, sc, attempts(1), 1); r.Calls != 2000 {
		t.Errorf("two clients without a pause made %d calls in a second, want one a millisecond each", r.Calls)
	}
}

func TestClientsOfASingleCallMakeItAtOnce(t *testing.T) {
	sc := Scenario{Arrivals: Arrivals{Clients: 30, Once: true}, Services: []Service{{Kind: Coin}}}
	if r, _ := run(t, sc, attempts(1), 1); r.Calls != 30 || r.Answered != 30 || r.Last != 0 {
		t.Errorf("30 clients: %d calls, %d answered, the last thing at %v; want 30, 30, 0s", r.Calls, r.Answered, r.Last)
	}
}
