package proxy

import (
	"errors"
	"net"
	"testing"
	"time"
)

func TestAddressesWithoutAHostAreOfThisMachineOnly(t *testing.T) {
	for text, want := range map[string]string{
		":7070": "127.0.0.1:7070", "0.0.0.0:7070": "0.0.0.0:7070", "[::]:7070": "[::]:7070", "localhost:0": "localhost:0",
		"": "", "none": "none", "127.0.0.1:07070": "127.0.0.1:7070",
	} {
		if got, err := address("--listen", text, "none"); err != nil || got != want {
			t.Errorf("address(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

// entrance is a turn at an address of its own.
func entrance(t *testing.T, most int) *turn {
	t.Helper()
	l, err := bind(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return newTurn(l, most)
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestMoreConnectionsThanAllowedWaitUntilOneIsClosed(t *testing.T) {
	turn := entrance(t, 2)
	accepted := make(chan net.Conn, 3)
	go func() {
		for {
			c, err := turn.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		dial(t, turn)
	}
	first := finished(t, "the first connection", accepted)
	second := finished(t, "the second connection", accepted)
	eventually(t, "two places are taken", func() bool { return len(turn.places) == 2 })
	if n := turn.open.Load(); n != 2 {
		t.Errorf("%d connections are open, want 2", n)
	}
	first.Close()
	first.Close() // as net/http does: it gives back one place
	third := finished(t, "the third connection", accepted)
	if n := turn.open.Load(); n != 2 {
		t.Errorf("%d connections are open, want 2", n)
	}
	turn.Close()
	if c, ok := <-accepted; ok {
		t.Errorf("got connection %v after the turn's end, want none", c)
	}
	second.Close()
	third.Close()
	if n := turn.open.Load(); n != 0 || len(turn.places) != 0 {
		t.Errorf("%d connections are open and %d places taken, want none", n, len(turn.places))
	}
}

func TestWhoAcceptsEndsWithTheTurnThoughTheAddressIsKept(t *testing.T) {
	before := entrance(t, 0)
	ended := make(chan error, 1)
	go func() {
		_, err := before.Accept()
		ended <- err
	}()
	before.Close()
	if err := finished(t, "Accept", ended); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after the turn's end = %v, want net.ErrClosed", err)
	}
	c := dial(t, before) // nobody accepts, and nobody is refused
	before.SetDeadline(time.Time{})
	after := newTurn(before.TCPListener, 0)
	got, err := after.Accept()
	if err != nil {
		t.Fatalf("Accept of the next turn = %v, want the connection that waits", err)
	}
	defer got.Close()
	if got.RemoteAddr().String() != c.LocalAddr().String() {
		t.Errorf("accepted one from %v, want from %v", got.RemoteAddr(), c.LocalAddr())
	}
}
