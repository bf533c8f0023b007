// Package live runs scenarios of the simulator on real HTTP: servers and clients on loopback, riphttp.Transports with the
// candidates' policies, real timers. It is what the simulator's word is compared with.
//
// A scenario can run faster than it is written. At a speed of 5 its second is 200 ms long, its calls come five times as
// often, and the policies' times are a fifth of what they say; all that a Result says is in the scenario's time again.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/riphttp"
)

// A Result is what a run came to, counted as the simulator counts. Events is zero and Recovery nil: nobody simulated
// anything, and a run is too short for a simulation's measure of health.
type Result struct {
	sim.Result

	// Late is by how much the machine was late, in the scenario's time: 19 of 20 things happened no later than that
	// after they were due. Latest is the worst of all. Where they are not small against the scenario's Timeout, the run
	// shows the machine and not the policy: run it at a lower speed.
	Late, Latest time.Duration
}

// Run runs a scenario with everybody calling as the candidate does, and takes Length / speed. When calls come and how
// long work takes are the same for the same seed, what becomes of them is up to the machine. It returns an error if ctx
// ended it early, or the scenario or the candidate has something that only a simulation has; see Check.
func Run(ctx context.Context, s *sim.Scenario, c *sim.Candidate, seed uint64, speed float64) (*Result, error) {
	if err := Check(s, c); err != nil {
		return nil, err
	}
	if !(speed > 0) {
		return nil, fmt.Errorf("a live run at speed %v never ends", speed)
	}
	ran, end := context.WithCancel(ctx)
	defer end()

	t := newTally(s, speed)
	v := newService(s, c, t, rand.New(rand.NewPCG(seed, 1)))
	url, stop, err := v.serve(ran)
	if err != nil {
		return nil, err
	}
	defer stop()
	defer end() // before stop: it ends what stop waits for
	base := &http.Transport{MaxIdleConnsPerHost: 256}
	defer base.CloseIdleConnections()
	processes := make([]*http.Client, max(s.Processes, 1))
	for i := range processes {
		processes[i] = newProcess(s, c, t, base)
	}

	random := rand.New(rand.NewPCG(seed, 0))
	var calls sync.WaitGroup
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() / s.Arrivals.Rate * float64(time.Second))
		if at >= s.Length || !t.wait(ran, at) {
			break
		}
		t.late(at)
		t.count(func(b *sim.Bin) { b.Calls++ })
		p := processes[random.IntN(len(processes))]
		calls.Go(func() { call(ran, p, url, t) })
	}
	t.wait(ran, s.Length)
	end()
	calls.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return t.result(), nil
}

// call makes one call and counts what became of it. If the end of the run ended it, nobody knows.
func call(ctx context.Context, p *http.Client, url string, t *tally) {
	err := get(ctx, p, url)
	if ctx.Err() != nil {
		return
	}
	t.count(func(b *sim.Bin) {
		if err != nil {
			b.GaveUp++
		} else {
			b.Good++
		}
	})
}

// get asks once and reads the answer.
func get(ctx context.Context, p *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := p.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the service answered %s", resp.Status)
	}
	return nil
}

// newProcess is an ordinary client with the candidate's policy and a budget of its own.
func newProcess(s *sim.Scenario, c *sim.Candidate, t *tally, base http.RoundTripper) *http.Client {
	p := hasten(s, c, t.speed)
	p.Trace = &riprap.Trace{
		Attempt: func(ctx context.Context, e riprap.Event) context.Context {
			t.count(func(b *sim.Bin) {
				if e.Attempts > 1 {
					b.Retries++
				} else {
					b.Tries++
				}
			})
			return ctx
		},
		Retry: func(_ context.Context, e riprap.Event) { t.waited(e.Attempts, e.Wait) },
	}
	return &http.Client{Transport: &riphttp.Transport{Base: &stamper{base, t}, Policy: &p}}
}

// Check returns what a scenario or a candidate has that cannot be run live.
func Check(s *sim.Scenario, c *sim.Candidate) error {
	if err := s.Check(); err != nil {
		return err
	}
	last := s.Services[0]
	switch {
	case len(s.Services) > 1, last.Kind != sim.Queue, last.Hangs > 0:
		return errors.New("live runs have one service: a queue, with work that ends")
	case s.Arrivals.Rate <= 0:
		return errors.New("live runs have open arrivals: want a rate")
	case s.Network != sim.Spread{}:
		return errors.New("live runs have the network that they run on: want none")
	case s.Length <= 0:
		return errors.New("live runs end: want a length")
	case len(s.Triggers) > 1, len(s.Triggers) == 1 && s.Triggers[0].Kind != sim.Cut:
		return errors.New("live runs have one trigger at most: a cut")
	case c.Rival != nil:
		return fmt.Errorf("%s is not riprap alone: there is no HTTP client for it", c.Name)
	}
	return nil
}
