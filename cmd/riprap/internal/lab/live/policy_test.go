package live

import (
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

const ms = time.Millisecond

func TestPolicyIsAsMuchFasterAsTheScenario(t *testing.T) {
	o := &sim.Scenario{Timeout: s}
	zero := hasten(o, &sim.Candidate{}, 5)
	set := hasten(o, &sim.Candidate{
		Policy: riprap.Policy{MaxAttempts: 3, Timeout: 10 * s, AttemptTimeout: 2 * s, MinAttempt: 50 * ms,
			Backoff: riprap.Backoff{Base: 100 * ms, Max: 20 * s, Factor: 3, Jitter: riprap.Equal}},
		Budget: &sim.Budget{Ratio: 0.1, Reserve: 3, Window: 20 * s},
	}, 5)
	usual := hasten(o, &ours, 5)
	for _, c := range []struct {
		what      string
		got, want time.Duration
	}{
		{"no Timeout", zero.Timeout, -1},
		{"the scenario's Timeout for an attempt", zero.AttemptTimeout, 200 * ms},
		{"no MinAttempt", zero.MinAttempt, 1},
		{"the default Base", zero.Backoff.Base, 100 * ms},
		{"the default Max", zero.Backoff.Max, 2 * s},
		{"the default Window", usual.Budget.Window, 2 * s},
		{"Timeout", set.Timeout, 2 * s},
		{"AttemptTimeout", set.AttemptTimeout, 400 * ms},
		{"MinAttempt", set.MinAttempt, 10 * ms},
		{"Base", set.Backoff.Base, 20 * ms},
		{"Max", set.Backoff.Max, 4 * s},
		{"Window", set.Budget.Window, 4 * s},
		{"a nanosecond", hasten(o, &atOnce, 5).Backoff.Base, 1},
	} {
		if c.got != c.want {
			t.Errorf("hasten at speed 5: %s is %v, want %v", c.what, c.got, c.want)
		}
	}
	if b := zero.Budget; b == nil || !math.IsInf(b.Ratio, 1) {
		t.Errorf("hasten of a candidate without a Budget: Budget %v, want one without a limit", b)
	}
	if b := set.Budget; b.Ratio != 0.1 || b.Reserve != 3 {
		t.Errorf("hasten of a Budget: Ratio %v and Reserve %v, want 0.1 and 3", b.Ratio, b.Reserve)
	}
	if b := set.Backoff; set.MaxAttempts != 3 || b.Factor != 3 || b.Jitter != riprap.Equal {
		t.Errorf("hasten of a Policy: %d attempts, Backoff %+v; want 3, Factor 3, equal jitter", set.MaxAttempts, b)
	}
}

// The default is written down a second time here, since a Budget does not tell it.
func TestWindowIsThatOfAZeroBudget(t *testing.T) {
	now := time.Now()
	p := riprap.Policy{Budget: &riprap.Budget{Ratio: 1, Reserve: -1}}
	op := riprap.Operation{Policy: &p}
	op.Begin(now)
	op.Next(now, nil)
	if left := p.Budget.Left(now.Add(window * 8 / 10)); left != 1 {
		t.Errorf("Left shortly before the end of the window = %d, want 1", left)
	}
	if left := p.Budget.Left(now.Add(window * 11 / 10)); left != 0 {
		t.Errorf("Left after the window = %d, want 0", left)
	}
}
