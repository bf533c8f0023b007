package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// These are far from what makes sense, and near enough that no sum of times overflows and no mistyped figure keeps a
// machine busy for days.
const (
	longest     = 366 * 24 * time.Hour // of all times in a Scenario
	farthest    = 100 * longest        // the end of a simulation that has no Length
	shortest    = time.Millisecond     // pause of a client
	leastRate   = 1e-9                 // a second
	mostRate    = 10e6                 // a second; calls that come in less than a nanosecond would all come at once, for ever
	mostFactor  = 1e6                  // of a trigger
	mostCalls   = 250e6                // about a billion events
	mostOpen    = 20e6                 // calls under way at once, which take some gigabytes
	mostClients = 1 << 20              // as many processes, at all hops together
	mostHops    = 32
)

// Check returns what makes the scenario one that cannot be simulated: a figure that is missing, makes no sense, or would
// take more than about a billion events.
func (s *Scenario) Check() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return nil
}

func (s *Scenario) check() error {
	if err := times(at{"length", s.Length}, at{"timeout", s.Timeout}, at{"step of the series", s.Step}); err != nil {
		return err
	}
	if err := s.Network.check("network"); err != nil {
		return err
	}
	if err := s.Arrivals.check(); err != nil {
		return err
	}
	if s.Length == 0 && (s.open() || !s.Arrivals.Once) {
		return errors.New("it has no end: want a length, or clients that make a single call")
	}
	if err := s.checkServices(); err != nil {
		return err
	}
	if all := len(s.Services) * s.processes(); s.Processes < 0 || s.Processes > mostClients || all > mostClients {
		return fmt.Errorf("%d processes at each of %d services: want %d in all, at most", s.processes(), len(s.Services), mostClients)
	}
	for i, t := range s.Triggers {
		if err := s.checkTrigger(i, t); err != nil {
			return fmt.Errorf("trigger %d (%s): %w", i+1, t.Kind, err)
		}
	}
	if calls := s.calls(); calls > mostCalls {
		return fmt.Errorf("about %.3g calls: want %.3g at most, by a lower rate, fewer clients or a shorter length", calls, mostCalls)
	}
	if most := s.highestRate(); most > mostRate {
		return fmt.Errorf("up to %.3g calls a second: want %.3g at most", most, mostRate)
	}
	if n := s.backlog(); n > mostOpen {
		return fmt.Errorf("about %.3g calls under way at once, as more come than are served: want %.3g at most, by a lower rate, a shorter length or a faster service", n, mostOpen)
	}
	return nil
}

// open reports whether calls are made whatever becomes of those before.
func (s *Scenario) open() bool { return s.Arrivals.Rate > 0 }

// highestRate is the most calls a second that there ever are.
func (s *Scenario) highestRate() (highest float64) {
	for at := time.Duration(0); s.open() && at < s.Length; {
		most, until := s.rate(at)
		highest, at = max(highest, most), until
	}
	return highest
}

// calls is how many calls clients make, at most or on average.
func (s *Scenario) calls() (n float64) {
	a := &s.Arrivals
	switch {
	case s.open():
		return s.made(0, s.Length)
	case a.Once:
		return float64(a.Clients)
	}
	return float64(a.Clients) * float64(s.Length) / float64(max(a.Pause.Mean, shortest)+2*s.Network.Mean)
}

// made is how many calls of an open stream come in a time, at most.
func (s *Scenario) made(from, until time.Duration) (n float64) {
	for at := from; at < until; {
		most, next := s.rate(at)
		next = min(next, until)
		n += most * (next - at).Seconds()
		at = next
	}
	return n
}

// backlog is how many calls of an open stream may be under way at once, as far as the scenario tells: what the last
// service leaves over, whose queue keeps also those whose callers have left, and what a trigger holds.
func (s *Scenario) backlog() (highest float64) {
	if !s.open() {
		return 0
	}
	served := math.Inf(1) // calls a second
	switch last := &s.Services[len(s.Services)-1]; {
	case last.Kind == Queue && last.Room == 0 && last.Hangs > 0 && s.Timeout == 0:
		served = 0 // once all workers hang
	case last.Kind == Queue && last.Room == 0 && s.Capacity() > 0:
		served = s.Capacity()
	case last.Kind == Crowd && last.Each > 0:
		served = 1 / last.Each.Seconds()
	}
	n := 0.0
	for at := time.Duration(0); at < s.Length; {
		most, until := s.rate(at)
		n = max(0, n+(most-served)*(until-at).Seconds())
		highest, at = max(highest, n), until
	}
	for _, t := range s.Triggers {
		switch held := s.made(t.From, t.until()); {
		case t.Kind == Cut:
			highest += held
		case t.Kind == Lost && s.Timeout == 0:
			highest += held * t.Factor
		}
	}
	return highest
}

func (a *Arrivals) check() error {
	switch {
	case !(a.Rate >= 0) || math.IsInf(a.Rate, 0): // also NaN
		return fmt.Errorf("%v calls a second: want a number that is not negative", a.Rate)
	case a.Rate > 0 && a.Rate < leastRate:
		return fmt.Errorf("%v calls a second: want %v at least", a.Rate, leastRate)
	case a.Clients < 0 || a.Clients > mostClients:
		return fmt.Errorf("%d clients: want up to %d", a.Clients, mostClients)
	case a.Rate == 0 && a.Clients == 0:
		return errors.New("no calls: want a rate or clients")
	}
	return a.Pause.check("pause")
}

func (s *Scenario) checkServices() error {
	if n := len(s.Services); n == 0 || n > mostHops {
		return fmt.Errorf("%d services: want 1 to %d", n, mostHops)
	}
	for i := range s.Services {
		v := &s.Services[i]
		where := fmt.Sprintf("service %d (%s)", i+1, v.Kind)
		if last := i == len(s.Services)-1; last == (v.Kind == Relay) {
			return fmt.Errorf("%s: want a relay in each place but the last, of %d", where, len(s.Services))
		}
		if err := v.check(); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

func (v *Service) check() error {
	if !slices.Contains([]ServiceKind{Queue, Crowd, Row, Coin, Relay}, v.Kind) {
		return fmt.Errorf("unknown kind: want %s, %s, %s, %s or %s", Queue, Crowd, Row, Coin, Relay)
	}
	if v.Workers < 0 {
		return fmt.Errorf("%d workers: want 0, which means one, or more", v.Workers)
	}
	if err := share("share that hangs", v.Hangs); err != nil {
		return err
	}
	if err := share("chance to fail", v.Fails); err != nil {
		return err
	}
	if err := times(at{"base", v.Base}, at{"each", v.Each}, at{"margin", v.Margin}); err != nil {
		return err
	}
	return v.Work.check("work")
}

func (s *Scenario) checkTrigger(i int, t Trigger) error {
	if err := times(at{"beginning", t.From}, at{"duration", t.For}); err != nil {
		return err
	}
	switch {
	case t.For == 0:
		return errors.New("over as soon as it begins: want a duration")
	case s.Length > 0 && t.until() > s.Length:
		return fmt.Errorf("from %v to %v: want it within the length of %v", t.From, t.until(), s.Length)
	}
	switch t.Kind {
	case Spike, Ramp:
		if !s.open() {
			return errors.New("it changes the rate of calls, and clients have none: want a rate, or another trigger")
		}
		return factor(t.Factor)
	case Slow, Lost, Cut, Down:
		same := func(u Trigger) bool { return u.Kind == t.Kind }
		if slices.ContainsFunc(s.Triggers[:i], same) {
			return fmt.Errorf("there is one already: want one of a kind, except %s and %s", Spike, Ramp)
		}
	default:
		return fmt.Errorf("unknown kind: want %s, %s, %s, %s, %s or %s", Down, Cut, Slow, Spike, Ramp, Lost)
	}
	switch t.Kind {
	case Slow:
		return factor(t.Factor)
	case Lost:
		return share("share of the answers", t.Factor)
	}
	return nil
}

func (s *Spread) check(what string) error {
	if s.Kind < Fixed || s.Kind > Normal {
		return fmt.Errorf("%s: unknown kind %d of spread", what, s.Kind)
	}
	return times(at{what, s.Mean}, at{"standard deviation of the " + what, s.SD})
}

func factor(x float64) error {
	if !(x >= 0 && x <= mostFactor) { // also NaN
		return fmt.Errorf("factor %v: want 0 to %v", x, mostFactor)
	}
	return nil
}

func share(what string, x float64) error {
	if !(x >= 0 && x <= 1) { // also NaN
		return fmt.Errorf("%s %v: want 0 to 1", what, x)
	}
	return nil
}

// An at is a time and what it is of.
type at struct {
	what string
	time time.Duration
}

func times(all ...at) error {
	for _, t := range all {
		if t.time < 0 || t.time > longest {
			return fmt.Errorf("%s %v: want 0 to %v", t.what, t.time, longest)
		}
	}
	return nil
}
