package audit

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/riprap-go/riprap/flaky"
	"github.com/riprap-go/riprap/internal/selfsigned"
)

// places are the addresses at which the fault server listens.
type places struct {
	main     net.Listener
	other    net.Listener // another origin, for redirects; nil if there is none
	tls      net.Listener // whose certificate nobody trusts
	mainURL  string
	otherURL string
	tlsURL   string
}

// loopback listens on this machine. The other origin differs in its host too, by which some clients judge alone.
func loopback() (*places, error) {
	p := new(places)
	var err error
	if p.main, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if p.tls, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		p.close()
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

// close ends what listens.
func (p *places) close() {
	for _, l := range []net.Listener{p.main, p.other, p.tls} {
		if l != nil {
			l.Close()
		}
	}
}

// A server is the fault server of one audit.
type server struct {
	*places
	faults *flaky.Handler
	dials  *timedListener // tls
	http   []*http.Server
	served sync.WaitGroup

	mu      sync.Mutex
	callers map[string]*caller // by run
}

// A caller is the client of one run, as the server knows it.
type caller struct {
	key     string // that it was given
	sentKey bool   // it sent that one
	calls   int    // that it makes
	sent    int    // requests so far
	settled func() // called when it waits for something, or sent enough to be known for one that never does
	tooMany func() // called when it sent more than there is to learn from
	silence *time.Timer
}

// came notes a request. Its owner locks it.
func (c *caller) came() {
	c.sent++
	switch {
	case c.sent > unbounded*c.calls:
		c.settled()
	case c.silence == nil:
		c.silence = time.AfterFunc(tellable, c.settled)
	default:
		c.silence.Reset(tellable)
	}
	if c.sent == tooMany*c.calls {
		c.tooMany()
	}
}

func serve(p *places) (*server, error) {
	faults, err := flaky.New("404")
	if err != nil {
		return nil, err
	}
	certificate, err := selfsigned.Certificate(time.Now())
	if err != nil {
		return nil, err
	}
	s := &server{places: p, faults: faults, dials: &timedListener{Listener: p.tls}, callers: map[string]*caller{}}
	s.listen(p.main)
	if p.other != nil {
		s.listen(p.other)
	}
	s.listen(tls.NewListener(s.dials, &tls.Config{Certificates: []tls.Certificate{certificate}}))
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
func (s *server) expect(run, script string, c *caller) error {
	s.mu.Lock()
	s.callers[run] = c
	s.mu.Unlock()
	return s.faults.Run(run, script)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	s.faults.ServeHTTP(w, r)
}

// note counts a request as one of its run's.
func (s *server) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.callers[runOf(r)]; c != nil {
		c.came()
		c.sentKey = c.sentKey || c.key != "" && r.Header.Get("Idempotency-Key") == c.key
	}
}

// sentKey reports whether the client of a run sent the key that it was given.
func (s *server) sentKey(c *caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.sentKey
}

// A timedListener notes when connections came.
type timedListener struct {
	net.Listener
	mu    sync.Mutex
	times []time.Time
}

func (l *timedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.times = append(l.times, time.Now())
		l.mu.Unlock()
	}
	return conn, err
}

func (l *timedListener) accepted() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.times)
}
