// Package memhttp serves HTTP in memory, over net.Pipe, for tests in fake time: a real socket stops the clock of a
// testing/synctest bubble, a pipe does not. Server is a whole net/http server, Script a peer that says byte for byte
// what a test wants it to say.
//
// A test that makes a server in a bubble ends it in the bubble too, and calls CloseIdleConnections on the client's
// transport before that.
package memhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// URL is the address of every server: its transports connect to it wherever a URL points.
const URL = "http://memory.test"

// A Listener accepts connections that DialContext makes. It is a net.Listener.
type Listener struct {
	pending chan net.Conn
	closed  chan struct{}
	once    sync.Once
	opened  atomic.Int64
	open    atomic.Int64
}

// Listen returns a Listener.
func Listen() *Listener {
	return &Listener{pending: make(chan net.Conn), closed: make(chan struct{})}
}

// DialContext connects to the listener. Network and address do not matter. After Close it fails like a connection
// that is refused.
func (l *Listener) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.pending <- &conn{Conn: far, open: &l.open}:
		return near, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: l.Addr(), Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Addr: l.Addr(), Err: ctx.Err()}
	}
}

// Transport returns a new transport whose connections all go to the listener.
func (l *Listener) Transport() *http.Transport {
	return &http.Transport{DialContext: l.DialContext}
}

// Accept returns the server's end of the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.pending:
		c.(*conn).number = l.opened.Add(1)
		l.open.Add(1)
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and lets further dials fail. Connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address "memory".
func (l *Listener) Addr() net.Addr { return addr{} }

// Opened returns how many connections were accepted so far.
func (l *Listener) Opened() int { return int(l.opened.Load()) }

// Open returns how many connections the server has not closed.
func (l *Listener) Open() int { return int(l.open.Load()) }

type addr struct{}

func (addr) Network() string { return "memory" }
func (addr) String() string  { return "memory" }

type conn struct {
	net.Conn
	number int64 // of the connection, from one
	once   sync.Once
	open   *atomic.Int64
}

// RemoteAddr differs from connection to connection, as that of a client on a network does.
func (c *conn) RemoteAddr() net.Addr { return client(c.number) }

type client int64

func (client) Network() string  { return "memory" }
func (c client) String() string { return fmt.Sprintf("client:%d", int64(c)) }

func (c *conn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// A Server is an http.Server on a Listener. It speaks HTTP/1.1 and, to those who begin with it, cleartext HTTP/2.
type Server struct {
	*Listener
	server http.Server
	served sync.WaitGroup
}

// Serve starts a server. Stop ends it.
func Serve(h http.Handler) *Server {
	s := &Server{Listener: Listen(), server: http.Server{Handler: h, Protocols: new(http.Protocols)}}
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetUnencryptedHTTP2(true)
	s.served.Go(func() { s.server.Serve(s.Listener) })
	return s
}

// HTTP2 returns a new transport that speaks cleartext HTTP/2 to the server.
func (s *Server) HTTP2() *http.Transport {
	t := s.Transport()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// Stop waits for running requests and ends the server.
func (s *Server) Stop() {
	s.server.Shutdown(context.Background())
	s.served.Wait()
}

// A Peer is the server's end of one connection in the hands of a script.
type Peer struct {
	net.Conn
	r *bufio.Reader
}

// ReadRequest reads one request, its body too, and returns the request with its body gone. Nil means that the client
// has left.
func (p *Peer) ReadRequest() *http.Request {
	req, err := http.ReadRequest(p.r)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil
	}
	return req
}

// ReadByte reads a single byte.
func (p *Peer) ReadByte() (byte, error) { return p.r.ReadByte() }

// Say writes text as it is.
func (p *Peer) Say(text string) { io.WriteString(p.Conn, text) }

// A Script is a listener whose connections a function serves.
type Script struct {
	*Listener
	running sync.WaitGroup
}

// Play starts a Script: play is called for each connection, n counting them from 1, and the connection is closed when
// it returns. Stop ends it.
func Play(play func(n int, p *Peer)) *Script {
	s := &Script{Listener: Listen()}
	s.running.Go(func() {
		for n := 1; ; n++ {
			c, err := s.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() {
				defer c.Close()
				play(n, &Peer{Conn: c, r: bufio.NewReaderSize(c, 16)}) // hardly reads ahead of the script
			})
		}
	})
	return s
}

// Stop waits until the script has ended for each connection.
func (s *Script) Stop() {
	s.Close()
	s.running.Wait()
}
