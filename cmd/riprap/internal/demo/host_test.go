package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestAnOutageRefusesConnectsAndEndsOnTheSameAddress(t *testing.T) {
	s := standard(300)
	tally := newTally(s.Length)
	h, err := newHost(t.Context(), s, newLedger(t), tally)
	if err != nil {
		t.Fatal(err)
	}
	defer h.down()
	get := func(ctx context.Context, c *http.Client, url string) error {
		r, err := post(ctx, c, url, newPurchase("shopper 1", 1))
		if err == nil && r.told != paid {
			err = errors.New(http.StatusText(r.status))
		}
		return err
	}
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
	if charges, err := h.ledger.charges(); err != nil || charges[1] != 2 {
		t.Errorf("the ledger: got %v, error %v, want the charges before and after the outage", charges, err)
	}
	tally.mu.Lock()
	defer tally.mu.Unlock()
	if got := tally.bins.sum(refused, 0, len(tally.bins)); got != 1 {
		t.Errorf("sends refused: got %d, want 1", got)
	}
}

func TestAPortThatStaysTakenIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := standard(300)
	h := &host{scenario: s, ledger: newLedger(t), tally: newTally(s.Length), addr: l.Addr().String()}
	if err := h.up(t.Context()); err == nil {
		h.down()
		t.Errorf("up on %s, which is taken: got no error, want one", h.addr)
	}
}
