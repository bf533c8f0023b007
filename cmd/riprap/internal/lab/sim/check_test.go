package sim

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestCheckSaysWhatCannotBeSimulatedAndWhatToDo(t *testing.T) {
	last := func(sc *Scenario) *Service { return &sc.Services[len(sc.Services)-1] }
	trigger := func(k TriggerKind, from, length time.Duration, factor float64) func(*Scenario) {
		return func(sc *Scenario) { sc.Triggers = []Trigger{{Kind: k, From: from, For: length, Factor: factor}} }
	}
	tests := map[string]struct {
		change func(*Scenario)
		want   string // in the error; empty for none
	}{
		"as it is":            {func(*Scenario) {}, ""},
		"no service":          {func(sc *Scenario) { sc.Services = nil }, "0 services: want 1 to 32"},
		"33 services":         {func(sc *Scenario) { sc.Services = make([]Service, 33) }, "33 services"},
		"kind of service":     {func(sc *Scenario) { last(sc).Kind = "stack" }, "service 1 (stack): unknown kind: want queue, crowd"},
		"relay at the end":    {func(sc *Scenario) { last(sc).Kind = Relay }, "service 1 (relay): want a relay in each place but the last"},
		"queue in the middle": {func(sc *Scenario) { sc.Services = append(sc.Services, sc.Services[0]) }, "service 1 (queue): want a relay"},
		"relay first":         {func(sc *Scenario) { sc.Services = []Service{{Kind: Relay}, *last(sc)} }, ""},
		"workers":             {func(sc *Scenario) { last(sc).Workers = -1 }, "-1 workers"},
		"hangs":               {func(sc *Scenario) { last(sc).Hangs = math.NaN() }, "service 1 (queue): share that hangs NaN: want 0 to 1"},
		"fails":               {func(sc *Scenario) { last(sc).Fails = 1.5 }, "chance to fail 1.5: want 0 to 1"},
		"margin":              {func(sc *Scenario) { last(sc).Margin = -ms }, "margin -1ms: want 0 to"},
		"each":                {func(sc *Scenario) { last(sc).Each = math.MaxInt64 }, "each 2562047h"},
		"base":                {func(sc *Scenario) { last(sc).Base = -1 }, "base -1ns"},
		"work":                {func(sc *Scenario) { last(sc).Work.Mean = -s }, "work -1s: want 0 to"},
		"kind of spread":      {func(sc *Scenario) { last(sc).Work.Kind = 3 }, "work: unknown kind 3 of spread"},
		"network":             {func(sc *Scenario) { sc.Network.SD = -s }, "standard deviation of the network -1s"},
		"no calls":            {func(sc *Scenario) { sc.Arrivals.Rate = 0 }, "no calls: want a rate or clients"},
		"rate that is none":   {func(sc *Scenario) { sc.Arrivals.Rate = math.NaN() }, "NaN calls a second"},
		"endless rate":        {func(sc *Scenario) { sc.Arrivals.Rate = math.Inf(1) }, "+Inf calls a second"},
		"negative rate":       {func(sc *Scenario) { sc.Arrivals.Rate = -5 }, "-5 calls a second"},
		"hardly a rate":       {func(sc *Scenario) { sc.Arrivals.Rate = 1e-300 }, "1e-300 calls a second: want 1e-09 at least"},
		"huge rate":           {func(sc *Scenario) { sc.Arrivals.Rate = 1e9 }, "about 6e+11 calls: want 2.5e+08 at most, by a lower rate"},
		"rate in a spike":     {trigger(Spike, 10*s, 100*s, 1e5), "about 2.8e+09 calls"},
		"rate in a ramp":      {trigger(Ramp, 10*s, 100*s, 1e5), "calls: want"},
		"negative clients":    {func(sc *Scenario) { sc.Arrivals = Arrivals{Clients: -1} }, "-1 clients: want up to"},
		"too many clients":    {func(sc *Scenario) { sc.Arrivals = Arrivals{Clients: 2e6} }, "2000000 clients: want up to"},
		"clients without end": {func(sc *Scenario) { sc.Arrivals, sc.Length = Arrivals{Clients: 1}, 0 }, "it has no end: want a length"},
		"clients that hurry":  {func(sc *Scenario) { sc.Arrivals = Arrivals{Clients: 1000} }, "about 6e+08 calls"},
		"clients that pause":  {func(sc *Scenario) { sc.Arrivals = Arrivals{Clients: 1000, Pause: Spread{Mean: s}} }, ""},
		"negative pause":      {func(sc *Scenario) { sc.Arrivals = Arrivals{Clients: 1, Pause: Spread{Mean: -s}} }, "pause -1s"},
		"a single call each":  {func(sc *Scenario) { sc.Arrivals, sc.Length = Arrivals{Clients: 1e6, Once: true}, 0 }, ""},
		"no length":           {func(sc *Scenario) { sc.Length = 0 }, "it has no end: want a length"},
		"negative length":     {func(sc *Scenario) { sc.Length = -s }, "length -1s: want 0 to 8784h0m0s"},
		"negative timeout":    {func(sc *Scenario) { sc.Timeout = -s }, "timeout -1s"},
		"endless timeout":     {func(sc *Scenario) { sc.Timeout = math.MaxInt64 }, "timeout 2562047h"},
		"negative step":       {func(sc *Scenario) { sc.Step = -1 }, "step of the series -1ns"},
		"negative processes":  {func(sc *Scenario) { sc.Processes = -1 }, "processes"},
		"too many processes":  {func(sc *Scenario) { sc.Processes = 2e6 }, "2000000 processes at each of 1 services"},
		"cut and down":        {func(sc *Scenario) { sc.Triggers = []Trigger{{Kind: Cut, For: s}, {Kind: Down, For: s}} }, ""},
		"two spikes, two ramps": {func(sc *Scenario) {
			sc.Triggers = []Trigger{{Kind: Spike, For: s}, {Kind: Spike, From: s, For: s}, {Kind: Ramp, For: s}, {Kind: Ramp, For: s}}
		}, ""},
		"two cuts": {func(sc *Scenario) { sc.Triggers = []Trigger{{Kind: Cut, For: s}, {Kind: Cut, From: 5 * s, For: s}} },
			"trigger 2 (cut): there is one already: want one of a kind, except spike and ramp"},
		"kind of trigger":       {trigger("flood", 0, s, 1), "trigger 1 (flood): unknown kind: want down, cut"},
		"trigger before":        {trigger(Down, -s, 5*s, 0), "trigger 1 (down): beginning -1s"},
		"trigger of no time":    {trigger(Down, s, 0, 0), "over as soon as it begins: want a duration"},
		"trigger backwards":     {trigger(Down, s, -s, 0), "duration -1s"},
		"trigger after":         {trigger(Cut, 599*s, 2*s, 0), "from 9m59s to 10m1s: want it within the length of 10m0s"},
		"trigger until the end": {trigger(Cut, 590*s, 10*s, 0), ""},
		"factor that is none":   {trigger(Slow, 0, s, math.NaN()), "trigger 1 (slow): factor NaN: want 0 to 1e+06"},
		"endless factor":        {trigger(Spike, 0, s, math.Inf(1)), "factor +Inf"},
		"negative factor":       {trigger(Ramp, 0, s, -1), "factor -1"},
		"more than all lost":    {trigger(Lost, 0, s, 1.1), "share of the answers 1.1: want 0 to 1"},
		"rate that no clock can tell": {func(sc *Scenario) { sc.Arrivals.Rate, sc.Length, sc.Triggers = 1e12, 1, nil },
			"up to 1e+12 calls a second: want 1e+07 at most"},
		"spike that no clock can tell": {func(sc *Scenario) {
			sc.Arrivals.Rate, sc.Triggers = 100, []Trigger{{Kind: Spike, From: s, For: 1, Factor: 1e6}, {Kind: Ramp, From: 0, For: 2 * s, Factor: 1e6}}
		}, "up to 1e+14 calls a second: want 1e+07 at most"},
		"service that cannot keep up":  {func(sc *Scenario) { sc.Arrivals.Rate, sc.Timeout = 1e5, 0 }, "about 6.08e+07 calls under way at once"},
		"queue of those who have left": {func(sc *Scenario) { sc.Arrivals.Rate = 1e5 }, "want 2e+07 at most, by a lower rate"},
		"service that can":             {func(sc *Scenario) { sc.Arrivals.Rate, last(sc).Work.Mean = 1e5, s/200_000 }, ""},
		"queue with room for few":      {func(sc *Scenario) { sc.Arrivals.Rate, last(sc).Room, sc.Triggers = 1e5, 5, nil }, ""},
		"workers that hang for ever": {func(sc *Scenario) {
			sc.Arrivals.Rate, last(sc).Work.Mean, last(sc).Hangs, sc.Timeout = 1e5, s/200_000, 0.1, 0
		}, "under way at once"},
		"crowd that is never done": {func(sc *Scenario) { sc.Arrivals.Rate, sc.Services = 1e5, []Service{{Kind: Crowd, Each: 10 * ms}} },
			"about 6.09e+07 calls under way at once"},
		"spike that is made good": {func(sc *Scenario) {
			last(sc).Work.Mean, sc.Triggers = s/100_000, []Trigger{{Kind: Spike, From: s, For: 50 * s, Factor: 1000}, {Kind: Spike, From: 300 * s, For: 50 * s, Factor: 1000}}
		}, ""},
		"answers lost for ever": {func(sc *Scenario) {
			sc.Arrivals.Rate, last(sc).Work.Mean, sc.Timeout = 1e5, s/200_000, 0
			sc.Triggers = []Trigger{{Kind: Lost, For: 600 * s, Factor: 0.5}}
		}, "about 3e+07 calls"},
		"network that holds all": {func(sc *Scenario) {
			sc.Arrivals.Rate, last(sc).Work.Mean, sc.Triggers = 1e5, s/200_000, []Trigger{{Kind: Cut, For: 500 * s}}
		}, "about 5e+07 calls"},
		"spike for clients": {func(sc *Scenario) {
			sc.Arrivals, sc.Triggers = Arrivals{Clients: 5}, []Trigger{{Kind: Spike, For: s, Factor: 2}}
		}, "trigger 1 (spike): it changes the rate of calls, and clients have none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sc := outage(600 * s)
			tt.change(&sc)
			err := sc.Check()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Check: %v, want nil", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "scenario outage: ")):
				t.Errorf("Check: %v, want scenario outage: … %s …", err, tt.want)
			}
		})
	}
}

func FuzzWhateverPassesCheckCanBeSimulated(f *testing.F) {
	kinds := []ServiceKind{Queue, Crowd, Row, Coin, Relay, "", "stack"}
	triggers := []TriggerKind{Down, Cut, Slow, Spike, Ramp, Lost, "", "flood"}
	f.Add(280.0, 0, false, int64(0), int64(s), int64(600*s), int64(0), 0, uint8(0), 0, int64(3*ms), 0.0, 0, uint8(1), int64(60*s), int64(10*s), 0.0, 4, int64(0), int64(s))
	f.Add(1e-9, 5, true, int64(longest), int64(longest), int64(longest), int64(1), 3, uint8(1), 9, int64(longest), 1.0, -1, uint8(2), int64(0), int64(longest), 1e6, -1, int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(math.NaN(), -1, true, int64(-1), int64(-1), int64(0), int64(-1), -3, uint8(2), -9, int64(-1), math.NaN(), 5, uint8(3), int64(-1), int64(0), math.Inf(1), 0, int64(-1), int64(-1))
	f.Add(0.0, 100, true, int64(10*ms), int64(0), int64(0), int64(1), 0, uint8(2), 0, int64(2*ms), 0.0, 0, uint8(99), int64(0), int64(0), 0.0, -1, int64(0), int64(1))
	f.Add(50.0, 0, false, int64(0), int64(s), int64(50*s), int64(s), 2, uint8(4), 1, int64(ms), 0.1, 0, uint8(4), int64(0), int64(50*s), 0.0, 3, int64(s), int64(10*ms))
	f.Fuzz(func(t *testing.T, rate float64, clients int, once bool, pause, timeout, length, step int64, processes int, kind uint8,
		workers int, work int64, share float64, room int, trigger uint8, from, lasting int64, factor float64, attempts int, total, backoff int64) {
		v := Service{
			Kind: kinds[int(kind)%len(kinds)], Workers: workers, Work: Spread{SpreadKind(kind % 4), time.Duration(work), time.Duration(work)},
			Hangs: share, Base: time.Duration(work), Each: time.Duration(pause), Fails: share,
			Admission: Admission{Room: room, LIFO: once, Drop: kind%2 == 0, Margin: time.Duration(work), Cancels: kind%3 == 0},
		}
		sc := Scenario{
			Arrivals:  Arrivals{Rate: rate, Clients: clients, Once: once, Pause: Spread{SpreadKind(kind % 3), time.Duration(pause), 0}},
			Network:   Spread{SpreadKind(trigger % 3), time.Duration(pause), time.Duration(work)},
			Timeout:   time.Duration(timeout),
			Services:  []Service{v},
			Length:    time.Duration(length),
			Step:      time.Duration(step),
			Processes: processes,
		}
		if v.Kind == Relay {
			sc.Services = append(sc.Services, Service{Kind: kinds[int(kind/8)%len(kinds)], Fails: share, Work: v.Work, Base: v.Base})
		}
		if trigger < 100 {
			sc.Triggers = []Trigger{{triggers[int(trigger)%len(triggers)], time.Duration(from), time.Duration(lasting), factor}}
		}
		if sc.Check() != nil || clients > 1000 || processes > 1000 {
			return // of the latter, each takes memory
		}
		c := Candidate{Budget: &Budget{Ratio: factor, Reserve: room, Window: time.Duration(pause)}}
		c.Policy.MaxAttempts, c.Policy.Timeout = attempts, time.Duration(total)
		c.Policy.Backoff.Base, c.Policy.Backoff.Max, c.Policy.Backoff.Jitter = time.Duration(backoff), time.Duration(total), 0
		w := newWorld(&sc, &c, uint64(length))
		if r := w.run(&patience{Context: t.Context(), checks: 5}); r != nil {
			lawful(t, &sc, &c, r, w)
		}
	})
}
