package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// A client is one side's way to make a call: it returns nil once the call has its answer.
// It sends through base and counts the sends that were not the first of their call.
type client func(s scenario, base http.RoundTripper, t *tally) func(ctx context.Context, url string) error

// A side is one of the two runs that are compared.
type side struct {
	name   string
	client client
}

// sides run in this order.
var sides = []side{{"naive", naive}, {"riprap", withRiprap}}

// naive is the retry loop that tutorials show, in good faith: it checks the status, gives up after a number of
// attempts, waits longer from one to the next, bounds every attempt and passes the context on. What it lacks is what
// tutorials leave out:
//
//   - jitter: calls that failed together come back together;
//   - a budget: it sends its retries although all the others before them failed too;
//   - Retry-After: it waits its own backoff after a 429 as after any failure.
func naive(s scenario, base http.RoundTripper, t *tally) func(context.Context, string) error {
	c := &http.Client{Transport: base, Timeout: s.AttemptTimeout}
	return func(ctx context.Context, url string) error {
		wait := s.Backoff
		for attempt := 1; ; attempt++ {
			err := get(ctx, c, url)
			if err == nil || attempt == s.Attempts {
				return err
			}
			if err := sleep(ctx, wait); err != nil {
				return err
			}
			wait *= 2
			t.count(retried)
		}
	}
}

// withRiprap is an ordinary client on a riphttp.Transport with the naive loop's limits, and everything else as it
// comes. How long a caller waits comes with the context, as on the naive side.
func withRiprap(s scenario, base http.RoundTripper, t *tally) func(context.Context, string) error {
	c := &http.Client{Transport: &riphttp.Transport{
		Base: base,
		Policy: &riprap.Policy{
			MaxAttempts:    s.Attempts,
			AttemptTimeout: s.AttemptTimeout,
			Backoff:        riprap.Backoff{Base: s.Backoff},
			Trace: &riprap.Trace{Attempt: func(ctx context.Context, e riprap.Event) context.Context {
				if e.Attempts > 1 {
					t.count(retried)
				}
				return ctx
			}},
		},
	}}
	return func(ctx context.Context, url string) error { return get(ctx, c, url) }
}

// get asks once and reads the answer.
func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
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

// run lets one side make the scenario's calls while the service goes through its faults. It returns what was counted,
// the more so when ctx ended it early, and an error if the service could not be run.
func (d side) run(ctx context.Context, s scenario, arrivals []time.Duration, t *tally) error {
	ctx, end := context.WithCancel(ctx)
	defer end()

	h, err := newHost(ctx, s, t)
	if err != nil {
		return err
	}
	defer h.down()
	// Both sides get a transport of their own with the same settings. The default of two idle connections to a host
	// would make every burst pay for new ones.
	base := &http.Transport{MaxIdleConnsPerHost: s.Callers, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext}
	defer base.CloseIdleConnections()
	call := d.client(s, &meter{base, t}, t)
	url := "http://" + h.addr + "/"

	var running sync.WaitGroup
	var broken error
	running.Go(func() {
		if broken = h.fail(ctx); broken != nil {
			end()
		}
	})
	for _, at := range arrivals {
		if t.wait(ctx, at) != nil || t.now() >= s.Length {
			break
		}
		t.countAt(made, at)
		t.highest(behind, int((t.now() - at).Milliseconds()))
		running.Go(func() {
			patient, cancel := context.WithTimeout(ctx, s.Patience)
			defer cancel()
			err := call(patient, url)
			if ctx.Err() == nil { // else the run's end ended it, and nobody knows what would have become of it
				t.ended(at, err)
			}
		})
	}
	t.wait(ctx, s.Length)
	end()
	running.Wait()
	return broken
}

// A meter counts the sends that found nobody listening: the service itself cannot.
type meter struct {
	base  http.RoundTripper
	tally *tally
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.base.RoundTrip(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		m.tally.count(refused)
	}
	return resp, err
}
