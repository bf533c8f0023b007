package demo

import (
	"context"
	"fmt"
)

// A host gives the payments service an address on loopback and makes its faults happen: real connections break and real
// connects are refused. The ledger outlives the service's processes, as a database does.
type host struct {
	scenario scenario
	tally    *tally
	ledger   *ledger
	addr     string

	service *service
	server  *server // nil while it is down
}

// newHost starts a service on a free port. The caller ends it with down.
func newHost(ctx context.Context, s scenario, l *ledger, t *tally) (*host, error) {
	h := &host{scenario: s, tally: t, ledger: l, addr: "127.0.0.1:0"}
	return h, h.up(ctx)
}

// up starts a new process on the host's address.
func (h *host) up(ctx context.Context) error {
	service := startService(h.scenario, h.ledger.charge, h.tally)
	server, err := serve(ctx, h.addr, timed(service, h.tally))
	if err != nil {
		service.stop()
		return err
	}
	h.service, h.server, h.addr = service, server, server.addr
	return nil
}

// down ends the process as a crash does: the listener and every connection go, the queue is lost, connects are refused
// from now on.
func (h *host) down() {
	if h.server == nil {
		return
	}
	h.server.cut()
	h.service.stop()
	h.server.close()
	h.server = nil
}

// fail plays the scenario's faults, from a start in the tally's time, and returns once the last is over or ctx is done.
func (h *host) fail(ctx context.Context) error {
	for _, f := range h.scenario.Faults {
		if err := h.tally.wait(ctx, f.From); err != nil {
			return nil
		}
		if err := h.play(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) play(ctx context.Context, f fault) error {
	switch f.Kind {
	case outage:
		h.service.hang()
		if h.tally.wait(ctx, f.From+f.Hangs) != nil {
			return nil
		}
		h.down()
		if h.tally.wait(ctx, f.until()) != nil {
			return nil
		}
		return h.up(ctx)
	case slow:
		h.service.delay(f.Later)
		h.tally.wait(ctx, f.until())
		h.service.delay(0)
		return nil
	case loss:
		h.service.lose(true)
		h.tally.wait(ctx, f.until())
		h.service.lose(false)
		return nil
	case throttle:
		h.service.throttle(f.Asks)
		h.tally.wait(ctx, f.until())
		h.service.throttle(0)
		return nil
	}
	return fmt.Errorf("no such fault: %q", f.Kind)
}
