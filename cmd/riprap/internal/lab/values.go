package lab

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// parsePolicy reads NAME:key=value,… .
func (q *request) parsePolicy(text string) (sim.Candidate, error) {
	name, keys, _ := strings.Cut(text, ":")
	if name == "" || strings.ContainsAny(name, "=,") {
		return sim.Candidate{}, errors.New("want NAME:key=value,…")
	}
	c := ours
	c.About = keys
	for i, pair := range strings.Split(keys, ",") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if key == "like" && i > 0 {
			return c, fmt.Errorf("%s: want it before the other keys, which change what it names", pair)
		}
		if err := q.setPolicy(&c, key, value); err != nil {
			return c, fmt.Errorf("%s: %w", pair, err)
		}
	}
	c.Name = name
	return c, nil
}

func (q *request) setPolicy(c *sim.Candidate, key, value string) (err error) {
	p := &c.Policy
	switch key {
	case "like":
		other, err := q.candidate(value)
		if err != nil {
			return err
		}
		about := c.About
		*c = *other
		c.About = about
	case "attempts":
		if p.MaxAttempts, err = strconv.Atoi(value); err != nil || p.MaxAttempts == 0 || p.MaxAttempts < -1 {
			return errors.New("want a number from 1, or -1 for no limit")
		}
	case "base":
		p.Backoff.Base, err = positive(value)
	case "max":
		p.Backoff.Max, err = positive(value)
	case "factor":
		if p.Backoff.Factor, err = strconv.ParseFloat(value, 64); err != nil || !(p.Backoff.Factor >= 1 && p.Backoff.Factor <= 1e6) {
			return errors.New("want a number from 1")
		}
	case "jitter":
		err = p.Backoff.Jitter.UnmarshalText([]byte(value))
	case "timeout":
		p.AttemptTimeout, err = positive(value)
	case "total":
		p.Timeout, err = positive(value)
	case "budget":
		c.Budget, err = parseBudget(value)
	case "server":
		var a sim.Admission
		a, err = admission(&q.study.Scenario, value)
		c.Admission = &a
	default:
		return errors.New("unknown key: there are like, attempts, base, max, factor, jitter, timeout, total, budget and server")
	}
	return err
}

// positive reads a time that is used.
func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("want a time such as 500ms or 10s")
	}
	return d, nil
}

// parseBudget reads none or RATIO/RESERVE/WINDOW, whose end may be left out.
func parseBudget(text string) (*sim.Budget, error) {
	if text == "none" {
		return nil, nil
	}
	b := &sim.Budget{}
	wrong := errors.New("want none or RATIO/RESERVE/WINDOW, such as 0.2/10/10s")
	for i, part := range strings.Split(text, "/") {
		var err error
		switch i {
		case 0:
			if b.Ratio, err = strconv.ParseFloat(part, 64); math.IsNaN(b.Ratio) {
				err = wrong
			}
		case 1:
			b.Reserve, err = strconv.Atoi(part)
		case 2:
			b.Window, err = positive(part)
		default:
			err = wrong
		}
		if err != nil {
			return nil, wrong
		}
	}
	// A zero would mean the default.
	if b.Ratio == 0 {
		b.Ratio = -1
	}
	if b.Reserve == 0 && strings.Contains(text, "/") {
		b.Reserve = -1
	}
	return b, nil
}

// admission reads ways to admit that the scenario's last service has.
func admission(s *sim.Scenario, text string) (sim.Admission, error) {
	a, err := parseAdmission(text)
	kind := s.Services[len(s.Services)-1].Kind
	rest := a
	if kind == sim.Crowd {
		rest.Cancels = false
	}
	switch {
	case err != nil || kind == sim.Queue || rest == sim.Admission{}:
		return a, err
	case kind == sim.Crowd:
		return a, fmt.Errorf("the scenario %s has no queue, so that it can only be cancels", s.Name)
	}
	return a, fmt.Errorf("the scenario %s has no queue and no work that could be ended", s.Name)
}

// trigger reads a trigger that changes something.
func trigger(s *sim.Scenario, text string) (sim.Trigger, error) {
	t, err := parseTrigger(text)
	kind := s.Services[len(s.Services)-1].Kind
	if err == nil && t.Kind == sim.Slow && (kind == sim.Coin || kind == sim.Row) {
		return t, fmt.Errorf("the service of the scenario %s works in no time, and is never slow", s.Name)
	}
	return t, err
}

// parseAdmission reads ways to admit, joined by +.
func parseAdmission(text string) (a sim.Admission, err error) {
	for way := range strings.SplitSeq(text, "+") {
		name, value, valued := strings.Cut(way, "=")
		switch {
		case way == "fifo":
		case way == "lifo":
			a.LIFO = true
		case way == "cancels":
			a.Cancels = true
		case name == "room" && valued:
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return a, fmt.Errorf("%s: want a number of places", way)
			}
			a.Room = n
			if n == 0 {
				a.Room = -1
			}
		case name == "drop":
			a.Drop = true
			if valued {
				if a.Margin, err = time.ParseDuration(value); err != nil || a.Margin < 0 {
					return a, fmt.Errorf("%s: want a time such as 20ms", way)
				}
			}
		default:
			return a, fmt.Errorf("%q is none of fifo, lifo, room=N, drop, drop=MARGIN and cancels", way)
		}
	}
	return a, nil
}

// parseTrigger reads KIND:FROM+FOR*FACTOR. The zero Trigger stands for none.
func parseTrigger(text string) (t sim.Trigger, err error) {
	if text == "none" {
		return t, nil
	}
	wrong := errors.New("want KIND:FROM+FOR or KIND:FROM+FOR*FACTOR, such as slow:60s+10s*4")
	kind, rest, ok := strings.Cut(text, ":")
	span, factor, multiplied := strings.Cut(rest, "*")
	from, length, ok2 := strings.Cut(span, "+")
	if !ok || !ok2 {
		return t, wrong
	}
	if t.From, err = time.ParseDuration(from); err != nil || t.From < 0 {
		return t, wrong
	}
	if t.For, err = positive(length); err != nil {
		return t, wrong
	}
	t.Factor = 1
	if multiplied {
		if t.Factor, err = strconv.ParseFloat(factor, 64); err != nil || !(t.Factor > 0 && t.Factor <= 1e6) {
			return t, wrong
		}
	}
	switch t.Kind = sim.TriggerKind(kind); t.Kind {
	case sim.Down, sim.Cut:
		if multiplied {
			return t, fmt.Errorf("%s has no factor: want %s:%s", kind, kind, span)
		}
		return t, nil
	case sim.Slow, sim.Spike, sim.Ramp:
		if !multiplied {
			return t, fmt.Errorf("%s needs a factor, such as %s*4", kind, text)
		}
		if t.Kind == sim.Slow && t.Factor < 1 {
			return t, fmt.Errorf("with the factor %v the service is faster: work takes so many times as long, 1 at least", t.Factor)
		}
		return t, nil
	case sim.Lost:
		if t.Factor > 1 {
			return t, errors.New("the factor of lost is a share of the answers, 1 at most")
		}
		return t, nil
	}
	return t, fmt.Errorf("%q is none of down, cut, slow, spike, ramp and lost", kind)
}
