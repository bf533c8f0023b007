package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	defaultMaxHeader      = 64 << 10
	defaultMaxConnections = 10_000

	headerTime = 10 * time.Second // for the header of a request, and for a handshake
	clientIdle = 2 * time.Minute  // for a connection without a request
)

// A site is an address and what it is like there. Where two are equal but for the certificate, one server will do.
type site struct {
	service        string // "" of the admin listener
	listen         string
	tls            bool
	maxHeader      int
	maxConnections int           // zero means no limit
	silence        time.Duration // longest time that a client takes nothing; zero means no limit
}

// address tells sites apart that are not on one address.
func (s site) address() string {
	if _, port, _ := net.SplitHostPort(s.listen); port == "0" { // each has a port of its own
		return s.listen + " " + s.service
	}
	return s.listen
}

// A server answers on one address.
type server struct {
	site
	listener    *net.TCPListener
	turn        *turn
	handler     atomic.Pointer[http.Handler]
	certificate atomic.Pointer[tls.Certificate]
	leaving     atomic.Bool  // its connections are not to be used again
	underWay    atomic.Int64 // requests, those included whose connection was taken over or whose client has left
	http        http.Server
	served      chan struct{} // closed when it takes no connections any more
	cut         context.CancelCauseFunc
}

// newServer makes a server for a listener. It answers once it is started.
func newServer(s site, l *net.TCPListener, errorLog *log.Logger) *server {
	v := &server{site: s, listener: l, turn: newTurn(l, s.maxConnections), served: make(chan struct{})}
	base, cut := context.WithCancelCause(context.Background())
	v.cut = cut
	base = context.WithValue(base, baseKey{}, base)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.tls)
	protocols.SetUnencryptedHTTP2(!s.tls)
	v.http = http.Server{
		Handler:           v,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       clientIdle,
		MaxHeaderBytes:    s.maxHeader,
		Protocols:         &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:      250,
			MaxReceiveBufferPerStream: 256 << 10,
			SendPingTimeout:           30 * time.Second, // of a client that says nothing, to find out whether it is there
			PingTimeout:               15 * time.Second,
			WriteByteTimeout:          s.silence,
		},
		BaseContext:                  func(net.Listener) context.Context { return base },
		DisableGeneralOptionsHandler: true, // OPTIONS * is the service's to answer
		ErrorLog:                     errorLog,
	}
	if s.tls {
		v.http.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return v.certificate.Load(), nil },
		}
	}
	return v
}

// start begins to answer. No other server may have its turn on the listener. Broken gets the error of a listener that takes no
// connections any more, though its turn is not over.
func (v *server) start(broken chan<- error) {
	v.listener.SetDeadline(time.Time{})
	go func() {
		defer close(v.served)
		serve := v.http.Serve
		if v.tls {
			serve = func(l net.Listener) error { return v.http.ServeTLS(l, "", "") }
		}
		err := serve(v.turn)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
			return
		}
		select {
		case broken <- fmt.Errorf("no more connections on %s: %w", v.listen, err):
		default: // another one was the first
		}
	}()
}

// answer sets what answers from now on. Requests that are under way go on as they are.
func (v *server) answer(h http.Handler) { v.handler.Store(&h) }

// ServeHTTP gives a request to the handler of the moment.
func (v *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.underWay.Add(1)
	defer v.underWay.Add(-1) // after a panic too
	if v.leaving.Load() && r.Header.Get("Upgrade") == "" {
		w.Header().Set("Connection", "close") // on HTTP/2 it becomes a GOAWAY
	}
	(*v.handler.Load()).ServeHTTP(w, r)
}

// url is where the server is, for people.
func (v *server) url() string {
	scheme := "http://"
	if v.tls {
		scheme = "https://"
	}
	return scheme + v.listener.Addr().String()
}
