package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// A host gives a service an address on loopback and makes its faults happen: real connections break and real connects
// are refused.
type host struct {
	scenario scenario
	tally    *tally
	addr     string

	service *service
	server  *http.Server
	served  chan struct{} // closed when the server's accept loop has ended
}

// newHost starts a service on a free port. The caller ends it with down.
func newHost(ctx context.Context, s scenario, t *tally) (*host, error) {
	h := &host{scenario: s, tally: t, addr: "127.0.0.1:0"}
	return h, h.up(ctx)
}

// up starts a new process on the host's address.
func (h *host) up(ctx context.Context) error {
	l, err := h.listen(ctx)
	if err != nil {
		return err
	}
	h.addr = l.Addr().String()
	h.service = startService(h.scenario, h.tally)
	h.server = &http.Server{Handler: h.service, ErrorLog: log.New(io.Discard, "", 0)}
	server, served := h.server, make(chan struct{})
	h.served = served
	go func() {
		server.Serve(l) // ends with down
		close(served)
	}()
	return nil
}

// listen insists for two seconds: while the service is down its port is free for any other program that asks for one.
func (h *host) listen(ctx context.Context) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", h.addr)
		if err == nil {
			return l, nil
		}
		if sleep(ctx, 5*time.Millisecond) != nil {
			return nil, fmt.Errorf("the service could not listen: %w", err)
		}
	}
}

// down ends the process as a crash does: the listener and every connection go, the queue is lost, connects are refused
// from now on.
func (h *host) down() {
	if h.server == nil {
		return
	}
	h.server.Close()
	h.service.stop()
	<-h.served
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
	case throttle:
		h.service.throttle(f.Asks)
		h.tally.wait(ctx, f.until())
		h.service.throttle(0)
		return nil
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
	}
	return fmt.Errorf("no such fault: %q", f.Kind)
}

// sleep waits for d, or returns early with the reason why ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
