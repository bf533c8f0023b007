package sim

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var atOnce = riprap.Backoff{Base: 1, Max: 1}

// attempts is a candidate that tries so many times, at once.
func attempts(n int) Candidate {
	return Candidate{Policy: riprap.Policy{MaxAttempts: n, Backoff: atOnce}}
}

// outage is what a queue lives through while the network is cut for ten seconds.
func outage(length time.Duration) Scenario {
	return Scenario{
		Name:     "outage",
		Arrivals: Arrivals{Rate: 280},
		Timeout:  s,
		Services: []Service{{Kind: Queue, Work: Spread{Kind: Exponential, Mean: s / 300}}},
		Triggers: []Trigger{{Kind: Cut, From: 60 * s, For: 10 * s}},
		Length:   length,
	}
}

// run simulates a scenario to its end.
func run(t *testing.T, sc Scenario, c Candidate, seed uint64) (*Result, *world) {
	t.Helper()
	if err := sc.Check(); err != nil {
		t.Fatalf("Check: %v", err)
	}
	w := newWorld(&sc, &c, seed)
	return w.run(t.Context()), w
}

// A moment is what a caller saw: when an attempt was sent, or how it ended.
type moment struct {
	client, attempt int
	at              time.Duration
	err             error
}

// A log is a Rival that decides nothing and writes down what its client sees.
type log struct {
	client      int
	sent, ended *[]moment
}

func (l log) Admit(now time.Duration, attempt int, _ float64) bool {
	*l.sent = append(*l.sent, moment{l.client, attempt, now, nil})
	return true
}

func (l log) Ended(now time.Duration, attempt int, _, err error) {
	*l.ended = append(*l.ended, moment{l.client, attempt, now, err})
}

func (l log) Retry(time.Duration, error) bool                    { return true }
func (l log) Wait(own, _ time.Duration, _ float64) time.Duration { return own }

// play lets clients that have numbers from 0 make a call each, at the instants given, and returns what they saw.
func play(t *testing.T, sc Scenario, c Candidate, at ...time.Duration) (sent, ended []moment, w *world) {
	t.Helper()
	sc.Arrivals = Arrivals{Clients: len(at), Once: true}
	if err := sc.Check(); err != nil {
		t.Fatalf("Check: %v", err)
	}
	clients := 0
	c.Rival = func() Rival {
		clients++
		return log{clients - 1, &sent, &ended}
	}
	w = newWorld(&sc, &c, 1)
	w.nextBin()
	for i, at := range at {
		w.after(at, arrive, visit{call: int32(i)}, 0)
	}
	for w.agenda.len() > 0 {
		e := w.agenda.pop()
		w.happen(&e)
	}
	w.result.Total()
	return sent, ended, w
}

// same compares what clients saw with what was wanted.
func same(t *testing.T, what string, got, want []moment) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(got >= want-tolerance && got <= want+tolerance) {
		t.Errorf("%s: %.4g, want %.4g ± %.2g", what, got, want, tolerance)
	}
}

func TestTheSameSeedGivesTheSameResultAlsoAtTheSameTime(t *testing.T) {
	sc := outage(80 * s)
	sc.Processes = 3
	sc.Network = Spread{Kind: Normal, Mean: 5 * ms, SD: ms}
	c := Candidate{Budget: &Budget{}}
	want := Run(t.Context(), &sc, &c, 7)
	results := make([]*Result, 4)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = Run(t.Context(), &sc, &c, 7) })
	}
	all.Wait()
	for i, got := range results {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("run %d with seed 7 differs from the first: %d events, want %d", i, got.Events, want.Events)
		}
	}
	if other := Run(t.Context(), &sc, &c, 8); reflect.DeepEqual(other.Series, want.Series) {
		t.Error("seed 8 gives what seed 7 gave")
	}
}

func TestASimulationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sc, c := outage(600*s), attempts(2)
	if r := Run(ctx, &sc, &c, 1); r != nil {
		t.Errorf("Run with a context that is over: %d events, want nil", r.Events)
	}
	endless := Scenario{Arrivals: Arrivals{Clients: 1, Once: true}, Services: []Service{{Kind: Coin, Fails: 1}}}
	never := attempts(-1)
	if r := Run(&patience{Context: t.Context(), checks: 3}, &endless, &never, 1); r != nil {
		t.Errorf("Run of a call that is never answered and never given up: %d events, want nil", r.Events)
	}
}

// patience is a context that is over when it has been asked so many times, whatever the time.
type patience struct {
	context.Context
	checks int
}

func (p *patience) Err() error {
	if p.checks--; p.checks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestASimulationStopsAtItsLengthAndItsSeriesReachesUntilThen(t *testing.T) {
	sc := Scenario{
		Arrivals: Arrivals{Clients: 3, Once: true},
		Services: []Service{{Kind: Queue, Work: Spread{Mean: 10 * s}}},
		Length:   25500 * ms,
	}
	r, _ := run(t, sc, attempts(1), 1)
	if r.Answered != 2 || r.Last != 20*s {
		t.Errorf("answered %d of 3 calls that take 10s each, the last at %v; want 2 within 25.5s, at 20s", r.Answered, r.Last)
	}
	if len(r.Series) != 26 {
		t.Errorf("%d steps of a second in 25.5s, want 26, although nothing happens in the last", len(r.Series))
	}
	sc.Length = 20 * s
	if r, _ := run(t, sc, attempts(1), 1); r.Answered != 1 || len(r.Series) != 20 {
		t.Errorf("answered %d in %d steps, want 1 in 20: what happens at the very end is not part of it", r.Answered, len(r.Series))
	}
}

func TestWhatASimulationKeepsDoesNotGrowWithTheSimulatedTime(t *testing.T) {
	kept := func(length time.Duration) []int {
		sc := outage(length)
		sc.Step = 50 * ms // as many steps as a series may have at most, and ten times as many
		r, w := run(t, sc, Candidate{Budget: &Budget{}}, 1)
		q := w.hops[0].service.(*queue)
		return []int{cap(w.agenda.heap), len(w.agenda.ends.items), len(q.waiting.items), len(w.calls), cap(w.free), cap(r.Series)}
	}
	once, tenTimes := kept(100*s), kept(1000*s)
	for i, what := range []string{"heap", "ends of attempts", "queue", "chunks of calls", "list of free calls", "series"} {
		if tenTimes[i] > once[i] {
			t.Errorf("%s: room for %d after 1000s, want no more than the %d after 100s", what, tenTimes[i], once[i])
		}
	}
}

// inFlight counts the calls that clients still wait for.
func (w *world) inFlight() (n int) {
	free := map[int32]bool{}
	for _, i := range w.free {
		free[i] = true
	}
	for i := range int32(len(w.calls) * chunk) {
		if !free[i] && w.call(i).hop == 0 {
			n++
		}
	}
	return n
}

// anything returns a scenario and a policy that nobody has thought of.
func anything(random *rand.Rand) (Scenario, Candidate) {
	one := func(all ...time.Duration) time.Duration { return all[random.IntN(len(all))] }
	spread := func() Spread {
		return Spread{Kind: SpreadKind(random.IntN(3)), Mean: one(0, ms, 20*ms, 300*ms), SD: one(0, ms, 50*ms)}
	}
	coin := func() bool { return random.IntN(2) == 0 }
	sc := Scenario{
		Arrivals:  Arrivals{Rate: float64(random.IntN(3)) * 40 * random.Float64(), Clients: 1 + random.IntN(30), Pause: spread(), Once: coin()},
		Network:   spread(),
		Timeout:   one(0, 50*ms, s),
		Length:    one(s, 7*s, 12345*ms),
		Step:      one(0, ms, 300*ms),
		Processes: random.IntN(4),
	}
	for range random.IntN(3) {
		sc.Services = append(sc.Services, Service{Kind: Relay})
	}
	sc.Services = append(sc.Services, Service{
		Kind:      []ServiceKind{Queue, Queue, Crowd, Row, Coin}[random.IntN(5)],
		Workers:   random.IntN(4),
		Work:      spread(),
		Hangs:     float64(random.IntN(2)) * random.Float64(),
		Base:      one(0, 10*ms, s),
		Each:      one(0, ms),
		Fails:     random.Float64(),
		Admission: Admission{Room: random.IntN(6) - 1, LIFO: coin(), Drop: coin(), Margin: one(0, 20*ms), Cancels: coin()},
	})
	for _, k := range []TriggerKind{Down, Cut, Slow, Lost, Spike, Ramp, Spike} {
		from := time.Duration(random.Int64N(int64(sc.Length)))
		if random.IntN(5) == 0 && (sc.Arrivals.Rate > 0 || k != Spike && k != Ramp) {
			sc.Triggers = append(sc.Triggers, Trigger{Kind: k, From: from, For: max((sc.Length-from)/2, 1), Factor: random.Float64() * float64(1+random.IntN(2))})
		}
	}
	for i := range sc.Triggers {
		if sc.Triggers[i].Kind == Lost {
			sc.Triggers[i].Factor = min(sc.Triggers[i].Factor, 1)
		}
	}
	c := Candidate{Policy: riprap.Policy{
		MaxAttempts:    random.IntN(5),
		Timeout:        one(0, 0, 100*ms, 2*s),
		AttemptTimeout: one(0, 0, 30*ms),
		MinAttempt:     one(0, 5*ms),
		Backoff:        riprap.Backoff{Base: one(0, 1, 10*ms), Jitter: riprap.Jitter(random.IntN(4))},
	}}
	if coin() {
		c.Budget = &Budget{Ratio: random.Float64(), Reserve: random.IntN(5) - 1}
	}
	return sc, c
}

// lawful checks what holds for every simulation.
func lawful(t *testing.T, sc *Scenario, c *Candidate, r *Result, w *world) {
	t.Helper()
	if open := w.inFlight(); r.Calls != r.Answered+r.GaveUp+open {
		t.Errorf("%d calls, want %d answered + %d given up + %d open", r.Calls, r.Answered, r.GaveUp, open)
	}
	var sum Bin
	for i := range r.Series {
		sum.add(&r.Series[i])
	}
	for _, order := range [][3]any{
		{"reached, attempts", int(sum.Reached), r.Attempts}, {"served, reached", r.Served, int(sum.Reached)}, {"wasted, served", r.Wasted, r.Served},
		{"refused and dropped and served, reached", r.Refused + r.Dropped + r.Served, int(sum.Reached)}, {"bins, bound", len(r.Series), bins},
	} {
		if order[1].(int) > order[2].(int) || order[1].(int) < 0 {
			t.Errorf("%s: %d, want 0 to %d", order[0], order[1], order[2])
		}
	}
	limit := c.Policy.MaxAttempts
	if limit == 0 {
		limit = 4
	}
	if limit > 0 && len(sc.Services) == 1 && r.Attempts > r.Calls*limit {
		t.Errorf("%d attempts for %d calls, want %d for each at most", r.Attempts, r.Calls, limit)
	}
	if v := r.Recovery; v != nil {
		for what, x := range map[string]float64{"Overshoot": v.Overshoot, "Lost": v.Lost, "During": v.During, "EndRate": v.EndRate, "Usual": v.Usual, "After": v.After.Seconds()} {
			if !(x >= 0 && x < 1e18) {
				t.Errorf("Recovery.%s is %v", what, x)
			}
		}
	}
}

func lawfulForSeed(t *testing.T, seed uint64) {
	sc, c := anything(rand.New(rand.NewPCG(seed, 0)))
	if err := sc.Check(); err != nil {
		t.Fatalf("Check of a scenario that makes sense: %v\n%+v", err, sc)
	}
	w := newWorld(&sc, &c, seed)
	if r := w.run(&patience{Context: t.Context(), checks: 40}); r != nil {
		lawful(t, &sc, &c, r, w)
	}
	if t.Failed() {
		t.Logf("seed %d: %+v\n%+v", seed, sc, c)
	}
}

func TestEveryCallIsAnsweredOrGivenUpOrOpen(t *testing.T) {
	for seed := range uint64(150) {
		if lawfulForSeed(t, seed); t.Failed() {
			return
		}
	}
}

func FuzzEveryCallIsAnsweredOrGivenUpOrOpen(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(lawfulForSeed)
}
