package effects

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A fleet is the servers of one store. One that is killed gets a successor, with another address. Clients reach them by the fleet,
// as a RoundTripper that sends every attempt to any of them.
type fleet struct {
	plan  plan
	base  *http.Transport
	slots []slot
	seeds uint64
}

// A slot is where a server is, or is missing for a moment.
type slot struct {
	process *process
	addr    atomic.Pointer[string]
}

// launch starts servers. They end with the test.
func launch(t testing.TB, p plan, servers int) *fleet {
	t.Helper()
	f := &fleet{plan: p, slots: make([]slot, servers)}
	f.base = &http.Transport{DialContext: f.dial, MaxIdleConnsPerHost: 256}
	t.Cleanup(func() {
		f.base.CloseIdleConnections()
		for i := range f.slots {
			if p := f.slots[i].process; p != nil {
				p.kill()
			}
		}
	})
	for i := range f.slots {
		if err := f.fill(i); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// fill puts a new process in a slot.
func (f *fleet) fill(i int) (err error) {
	p := f.plan
	p.Seed += f.seeds
	f.seeds++
	s := &f.slots[i]
	if s.process, err = begin(p); err != nil {
		return err
	}
	s.addr.Store(&s.process.addr)
	return nil
}

// replace kills the server in a slot and starts its successor. In between clients find nobody there.
func (f *fleet) replace(i int) error {
	f.slots[i].process.kill()
	return f.fill(i)
}

// end lets all servers serve what they have begun, and waits until they are gone.
func (f *fleet) end() error {
	f.base.CloseIdleConnections()
	for i := range f.slots {
		s := &f.slots[i]
		if err := s.process.end(); err != nil {
			return fmt.Errorf("a server process that was told to end: %w", err)
		}
		s.process = nil
	}
	return nil
}

// RoundTrip sends a request to one of the servers.
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = strconv.Itoa(rand.IntN(len(f.slots))) + ".ledger.test"
	return f.base.RoundTrip(r)
}

func (f *fleet) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	number, _, _ := strings.Cut(addr, ".")
	i, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, *f.slots[i].addr.Load())
}
