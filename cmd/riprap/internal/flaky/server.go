package flaky

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/riprap-go/riprap/internal/selfsigned"
)

// A server is the handler on a socket.
type server struct {
	http.Server
	listener *net.TCPListener
}

// listen makes a server, which the caller closes. It speaks HTTP/1.1 and HTTP/2, the latter also without TLS.
func listen(ctx context.Context, f *flags, h http.Handler, stderr io.Writer) (*server, error) {
	s := &server{}
	s.Handler = h
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	s.ErrorLog = log.New(io.Discard, "", 0)
	if f.verbose {
		s.ErrorLog.SetOutput(stderr) // handshakes that failed
	}
	if f.tls {
		certificate, err := selfsigned.Certificate(time.Now(), f.host)
		if err != nil {
			return nil, err
		}
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(f.host, f.port))
	if err != nil {
		return nil, err
	}
	s.listener = l.(*net.TCPListener) // what "tcp" is
	return s, nil
}

// addr is where the server listens.
func (s *server) addr() *net.TCPAddr { return s.listener.Addr().(*net.TCPAddr) }

func (s *server) loopback() bool { return s.addr().IP.IsLoopback() }

// url is the base URL, for clients on this machine.
func (s *server) url() string {
	at := *s.addr()
	if at.IP.IsUnspecified() {
		at.IP = net.IPv4(127, 0, 0, 1)
	}
	if s.TLSConfig != nil {
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// serve serves until ctx is done.
func (s *server) serve(ctx context.Context) error {
	s.BaseContext = func(net.Listener) context.Context { return ctx } // whoever hangs goes with it
	served := make(chan error, 1)
	go func() {
		if s.TLSConfig != nil {
			served <- s.ServeTLS(s.listener, "", "")
			return
		}
		served <- s.Serve(s.listener)
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		s.Close()
		<-served
		return nil
	}
}

// Close also closes a listener on which nothing was served.
func (s *server) Close() error {
	s.listener.Close()
	return s.Server.Close()
}
