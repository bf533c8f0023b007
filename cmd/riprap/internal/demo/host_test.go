package demo

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestAnOutageRefusesConnectsAndEndsOnTheSameAddress(t *testing.T) {
	s := standard(300)
	tally := newTally(s.Length)
	h, err := newHost(t.Context(), s, tally)
	if err != nil {
		t.Fatal(err)
	}
	defer h.down()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	c := &http.Client{Transport: &meter{base, tally}}
	url := "http://" + h.addr + "/"

	if err := get(t.Context(), c, url); err != nil {
		t.Errorf("before the outage: got error %v, want none", err)
	}

	// A request in hand when the process dies is lost, and nobody listens any more.
	h.service.hang()
	pending := make(chan error)
	go func() { pending <- get(t.Context(), c, url) }()
	for counted := 0; counted < 2; { // until the request is in the service
		tally.mu.Lock()
		counted = tally.bins.sum(arrived, 0, len(tally.bins))
		tally.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	h.down()
	if err := <-pending; err == nil {
		t.Error("a request in hand when the process died: got an answer, want an error")
	}
	err = get(t.Context(), c, url)
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
		t.Errorf("while the service is down: got error %v, want a refused connect", err)
	}

	addr := h.addr
	if err := h.up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.addr != addr {
		t.Errorf("after the outage: got address %s, want %s as before", h.addr, addr)
	}
	if err := get(t.Context(), c, url); err != nil {
		t.Errorf("after the outage: got error %v, want none", err)
	}
	tally.mu.Lock()
	defer tally.mu.Unlock()
	// The request in hand is sent anew by net/http, because its connection had been used before, and refused then.
	if got := tally.bins.sum(refused, 0, len(tally.bins)); got != 2 {
		t.Errorf("sends refused: got %d, want 2", got)
	}
}

func TestAPortThatStaysTakenIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := standard(300)
	h := &host{scenario: s, tally: newTally(s.Length), addr: l.Addr().String()}
	if err := h.up(t.Context()); err == nil {
		h.down()
		t.Errorf("up on %s, which is taken: got no error, want one", h.addr)
	}
}
