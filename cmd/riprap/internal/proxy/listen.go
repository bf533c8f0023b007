package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// address reads where to listen: HOST:PORT, or one of the words. Without a host it is this machine only.
func address(what, text string, words ...string) (string, error) {
	if text == "" || slices.Contains(words, text) {
		return text, nil
	}
	host, port, err := net.SplitHostPort(text)
	n, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil && strings.Contains(text, "://"):
		return "", fmt.Errorf("%s %q: want HOST:PORT, not a URL", what, text)
	case err != nil:
		return "", fmt.Errorf("%s %q: want %s", what, text, strings.Join(append([]string{"HOST:PORT, such as 127.0.0.1:7070"}, words...), ", or "))
	case wrong != nil:
		return "", fmt.Errorf("%s %q: want a port from 0 to 65535, got %q", what, text, port)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), strconv.FormatUint(n, 10)), nil // what ":8080" means elsewhere is seldom meant here
}

// bind takes an address.
func bind(ctx context.Context, where string) (*net.TCPListener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", where)
	switch {
	case err == nil:
		return l.(*net.TCPListener), nil // what "tcp" is
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: another program has it, or another proxy: end that one, or take another port", where)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen on %s: this machine has no such address", where)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: ports below 1024 need the right to: take another one, or give the program CAP_NET_BIND_SERVICE", where)
	}
	if wrong, ok := errors.AsType[*net.OpError](err); ok {
		err = wrong.Err
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", where, err)
}

// A turn is the time in which one server takes the connections of an address. The address outlives it, so that another
// server can go on where it ended, and nobody who connects meanwhile is refused.
type turn struct {
	*net.TCPListener
	open   atomic.Int64  // connections
	places chan struct{} // one for each that may be open; nil means no limit
	over   chan struct{}
	ended  atomic.Bool
}

func newTurn(l *net.TCPListener, most int) *turn {
	t := &turn{TCPListener: l, over: make(chan struct{})}
	if most > 0 {
		t.places = make(chan struct{}, most)
	}
	return t
}

// Accept waits for a place, then for a connection. Those for which there is no place wait in the kernel, and not in memory.
func (t *turn) Accept() (net.Conn, error) {
	if t.places != nil {
		select {
		case t.places <- struct{}{}:
		case <-t.over:
			return nil, net.ErrClosed
		}
	}
	c, err := t.AcceptTCP()
	if err != nil {
		if t.places != nil {
			<-t.places
		}
		if t.ended.Load() {
			err = net.ErrClosed
		}
		return nil, err
	}
	t.open.Add(1)
	return &connection{TCPConn: c, turn: t}, nil
}

// Close ends the turn. The address stays taken.
func (t *turn) Close() error {
	if t.ended.CompareAndSwap(false, true) {
		close(t.over)
		t.SetDeadline(time.Unix(1, 0)) // whoever accepts ends; the next turn takes it off
	}
	return nil
}

// A connection is one of a turn. It has all that a TCPConn has, since net/http and httputil look for some of it.
type connection struct {
	*net.TCPConn
	turn   *turn
	closed atomic.Bool
}

func (c *connection) Close() error {
	err := c.TCPConn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.turn.open.Add(-1)
		if c.turn.places != nil {
			<-c.turn.places
		}
	}
	return err
}
