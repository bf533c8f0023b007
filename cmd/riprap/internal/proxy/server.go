package proxy

import (
	"context"
	"crypto/tls"
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
	clientIdle = 2 * time.Minute  // for a connection without one
)

// A site is an address and what it is like there. Where two are equal but for the certificate, one server will do.
type site struct {
	service        string // "" of the admin listener
	listen         string
	tls            bool
	maxHeader      int
	maxConnections int // zero means no limit
}

// A server answers on one address.
type server struct {
	site
	listener    *net.TCPListener
	turn        *turn
	handler     atomic.Pointer[http.Handler]
	certificate atomic.Pointer[tls.Certificate]
	leaving     atomic.Bool // its connections are not to be used again
	http        http.Server
	served      chan error // how Serve ended
}

// newServer makes a server for a listener. It answers once it is started.
func newServer(s site, l *net.TCPListener, base context.Context, errorLog *log.Logger) *server {
	v := &server{site: s, listener: l, served: make(chan error, 1)}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.tls)
	protocols.SetUnencryptedHTTP2(!s.tls)
	v.http = http.Server{
		Handler:           http.HandlerFunc(v.serve),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       clientIdle,
		MaxHeaderBytes:    s.maxHeader,
		Protocols:         &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:      250,
			MaxReceiveBufferPerStream: 256 << 10,
			SendPingTimeout:           30 * time.Second, // of a client that says nothing, to find out whether it is there
			PingTimeout:               15 * time.Second,
		},
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    errorLog,
	}
	if s.tls {
		v.http.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return v.certificate.Load(), nil },
		}
	}
	return v
}

// start begins to answer. No other server may have a turn on the listener.
func (v *server) start() {
	v.listener.SetDeadline(time.Time{})
	v.turn = newTurn(v.listener, v.maxConnections)
	go func() {
		if v.tls {
			v.served <- v.http.ServeTLS(v.turn, "", "")
			return
		}
		v.served <- v.http.Serve(v.turn)
	}()
}

// serve gives a request to the handler of the moment.
func (v *server) serve(w http.ResponseWriter, r *http.Request) {
	if v.leaving.Load() && r.Header.Get("Upgrade") == "" {
		w.Header().Set("Connection", "close") // on HTTP/2 it becomes a GOAWAY
	}
	(*v.handler.Load()).ServeHTTP(w, r)
}

// answer sets what answers from now on.
func (v *server) answer(h http.Handler) { v.handler.Store(&h) }

// url is where the server is, for people.
func (v *server) url() string {
	scheme := "http://"
	if v.tls {
		scheme = "https://"
	}
	return scheme + v.listener.Addr().String()
}
