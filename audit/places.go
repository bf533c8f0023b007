package audit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

// places are the addresses at which the fault server listens.
type places struct {
	main       net.Listener
	other      net.Listener // another origin, for redirects; nil if there is none
	tls        net.Listener
	mainURL    string
	otherURL   string
	tlsURL     string
	handshakes *knocks // connections to tls
}

// loopback listens on this machine. The other origin differs in its host too, by which some clients judge alone.
func loopback() (*places, error) {
	p := new(places)
	var err error
	if p.main, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if p.tls, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		p.main.Close()
		return nil, err
	}
	// What localhost means differs: the first of its addresses, as the client will find it.
	if p.other, err = net.Listen("tcp", "localhost:0"); err != nil {
		p.other = nil
	} else {
		p.otherURL = fmt.Sprintf("http://localhost:%d", p.other.Addr().(*net.TCPAddr).Port)
	}
	p.mainURL = "http://" + p.main.Addr().String()
	p.tlsURL = "https://" + p.tls.Addr().String()
	return p, nil
}

// A server is the fault server of one audit.
type server struct {
	*places
	faults *flaky.Handler
	mu     sync.Mutex
	runs   map[string]*guest
	http   []*http.Server
	served sync.WaitGroup
}

// A guest is the client of one run, as the server knows it.
type guest struct {
	key     string // that it was given
	tookKey bool   // and that it sent
	left    int    // requests that it may send
	arrived func() // called at its first request
	enough  func() // called when it sent too many
}

func serve(p *places) (*server, error) {
	faults, err := flaky.New("404")
	if err != nil {
		return nil, err
	}
	certificate, err := untrusted()
	if err != nil {
		return nil, err
	}
	s := &server{places: p, faults: faults, runs: map[string]*guest{}}
	s.listen(p.main)
	if p.other != nil {
		s.listen(p.other)
	}
	p.handshakes = &knocks{Listener: p.tls}
	s.listen(tls.NewListener(p.handshakes, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	return s, nil
}

func (s *server) listen(l net.Listener) {
	h := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)} // failed handshakes are what is asked for
	s.http = append(s.http, h)
	s.served.Go(func() { h.Serve(l) })
}

func (s *server) stop() {
	for _, h := range s.http {
		h.Close()
	}
	s.served.Wait()
}

// expect gets ready for a run: the script that answers it, and its client.
func (s *server) expect(run, script string, g *guest) error {
	s.mu.Lock()
	s.runs[run] = g
	s.mu.Unlock()
	return s.faults.Run(run, script)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	g := s.runs[runOf(r)]
	enough := false
	if g != nil {
		g.left--
		enough = g.left == 0
		g.tookKey = g.tookKey || g.key != "" && r.Header.Get("Idempotency-Key") == g.key
	}
	s.mu.Unlock()
	if g != nil {
		g.arrived()
	}
	if enough {
		g.enough()
	}
	s.faults.ServeHTTP(w, r)
}

// tookKey reports whether the client of a run sent the key that it was given.
func (s *server) tookKey(g *guest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.tookKey
}

// knocks is a listener that notes when connections came.
type knocks struct {
	net.Listener
	mu    sync.Mutex
	times []time.Time
}

func (k *knocks) Accept() (net.Conn, error) {
	conn, err := k.Listener.Accept()
	if err == nil {
		k.mu.Lock()
		k.times = append(k.times, time.Now())
		k.mu.Unlock()
	}
	return conn, err
}

func (k *knocks) heard() []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.times)
}

// untrusted makes a certificate that no client has reason to trust.
func untrusted() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "nobody trusts this"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
