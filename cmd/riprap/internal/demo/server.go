package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// A server serves a handler on an address of its own on loopback.
type server struct {
	addr    string
	server  *http.Server
	serving sync.WaitGroup // the accept loop
	conns   sync.WaitGroup // those that were accepted, with the handlers that run on them
}

// serve starts a server on addr, where port 0 is any that is free. The caller ends it with close.
func serve(ctx context.Context, addr string, h http.Handler) (*server, error) {
	l, err := listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String()}
	s.server = &http.Server{
		Handler:  h,
		ErrorLog: log.New(io.Discard, "", 0), // connections break here, that is the point
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed:
				s.conns.Done()
			}
		},
	}
	s.serving.Go(func() { s.server.Serve(l) })
	return s, nil
}

// listen insists for two seconds: while a service is down its port is free for any other program that asks for one.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err == nil {
			return l, nil
		}
		if sleep(ctx, 5*time.Millisecond) != nil {
			return nil, fmt.Errorf("a service could not listen: %w", err)
		}
	}
}

func (s *server) url() string { return "http://" + s.addr }

// cut closes the listener and every connection; who connects is refused from now on.
func (s *server) cut() { s.server.Close() }

// close does the same and waits until no handler runs any more. They must have a reason to end.
func (s *server) close() {
	s.cut()
	s.serving.Wait()
	s.conns.Wait()
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
