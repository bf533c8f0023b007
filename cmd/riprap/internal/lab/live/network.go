package live

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// serve gives the service an address and workers. The caller ends ctx and then calls stop, which returns when all of it
// is over.
func (v *service) serve(ctx context.Context) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler:     v,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	var running sync.WaitGroup
	running.Go(func() { server.Serve(&listener{l, func() { v.hold(ctx) }}) }) // ends with stop
	for range max(v.Workers, 1) {
		running.Go(func() { v.run(ctx) })
	}
	return "http://" + l.Addr().String() + "/", func() {
		server.Close()
		v.mu.Lock()
		v.over = true
		v.mu.Unlock()
		v.more.Broadcast()
		running.Wait()
		v.handlers.Wait()
	}, nil
}

// hold returns at the end of the cut, if there is one now.
func (v *service) hold(ctx context.Context) {
	if v.cut.From <= v.tally.now() {
		v.tally.wait(ctx, v.cut.From+v.cut.For)
	}
}

// A listener makes connections whose hold keeps back what comes in. That a caller hangs up is kept back too, behind what
// it has sent.
type listener struct {
	net.Listener
	hold func()
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c, l.hold}, nil
}

type conn struct {
	net.Conn
	hold func()
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.hold()
	}
	return n, err
}

// A stamper writes on each request when it was sent and until when its caller waits, so that lateness can be measured,
// and a service can drop what is late.
type stamper struct {
	base  http.RoundTripper
	tally *tally
}

func (s *stamper) RoundTrip(req *http.Request) (*http.Response, error) {
	now, until := s.tally.now(), time.Duration(0)
	if d, ok := req.Context().Deadline(); ok {
		until = now + time.Duration(float64(time.Until(d))*s.tally.speed)
	}
	req = req.Clone(req.Context())
	stamp(req.Header, now, until)
	resp, err := s.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		sent, _ := stampOf(resp.Header)
		s.tally.late(sent)
	}
	return resp, err
}

const (
	sentHeader  = "Lab-Sent"
	untilHeader = "Lab-Until"
)

func stamp(h http.Header, sent, until time.Duration) {
	h.Set(sentHeader, strconv.FormatInt(int64(sent), 10))
	h.Set(untilHeader, strconv.FormatInt(int64(until), 10))
}

func stampOf(h http.Header) (sent, until time.Duration) {
	s, _ := strconv.ParseInt(h.Get(sentHeader), 10, 64)
	u, _ := strconv.ParseInt(h.Get(untilHeader), 10, 64)
	return time.Duration(s), time.Duration(u)
}
