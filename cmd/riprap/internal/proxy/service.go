package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

const (
	defaultInFlight  = 1024
	defaultSilence   = 30 * time.Second
	defaultMaxReplay = 64 << 10

	// A learned bound need not be tighter: it is to end what is hopeless, and a stall of some milliseconds of the machine is not.
	leastLearned = 100 * time.Millisecond

	defaultMinAttempt = 10 * time.Millisecond // riphttp's where nothing is observed
)

// A Service is the proxy in front of one service: an http.Handler. It may be used by many goroutines at once.
type Service struct {
	config      manifest.Proxy
	watch       Watch
	to          *url.URL
	silence     time.Duration // zero means none
	maxInFlight int64         // zero means no limit
	routes      *table[route]
	rest        *route                        // of what matches no other
	latencies   map[string][2]*riprap.Latency // of the routes, by name: of what may be repeated, and of the rest
	guard       *guard
	trust       trust
	transport   *riphttp.Transport
	handler     http.Handler    // within the deadline
	forward     http.Handler    // to the service
	keyed       [2]http.Handler // those that need a key, and those that may have one
	ours        map[string]bool // the fields whose meaning the proxy knows, in canonical form
	inFlight    atomic.Int64
	waiting     atomic.Int64
}

// A route is what requests are treated alike.
type route struct {
	pattern string // "" of what matches no other
	name    string // of its budget and bound
	policy  *riprap.Policy
	upload  *riprap.Policy // the same, for a body that takes as long as it takes
	once    *riprap.Policy // the same, without a bound that was learned
}

// NewService makes the handler that stands in front of a service. Keys may be nil if no pattern needs a key. An error is about
// the configuration.
func NewService(p manifest.Proxy, keys idempotency.Store, watch Watch) (*Service, error) {
	s := &Service{
		config:      p,
		watch:       watch,
		silence:     max(cmp.Or(p.Silence, defaultSilence), 0),
		maxInFlight: int64(max(cmp.Or(p.MaxInFlight, defaultInFlight), 0)),
		trust:       newTrust(p.Trust),
	}
	var err error
	if s.to, err = target(p.To); err != nil {
		return nil, err
	}
	if s.guard, err = newGuard(&p); err != nil {
		return nil, err
	}
	if err := s.newRoutes(); err != nil {
		return nil, err
	}
	scope, err := newScope(&p)
	if err != nil {
		return nil, err
	}
	roots, err := rootsOf(p.CA)
	if err != nil {
		return nil, err
	}
	scheme := s.to.Scheme
	if scheme == "h2c" {
		s.to.Scheme = "http"
	}
	connect := max(cmp.Or(p.ConnectTimeout, defaultConnectTimeout), 0)
	s.transport = &riphttp.Transport{
		Base: &upstream{
			Transport: newTransport(scheme, connect, 0, roots),
			uploads:   newTransport(scheme, connect, s.longest(), roots),
			mayRepeat: s.mayRepeat,
			http2:     scheme != "http",
		},
		Policy:      s.rest.policy,
		ReadTimeout: cmp.Or(p.Silence, defaultSilence),
		Destination: func(r *http.Request) string { return visitOf(r.Context()).route.name },
		Internal:    func(r *http.Request) bool { return r.Header.Get("Upgrade") == "" }, // a tunnel may last
		MaxReplay:   p.MaxReplay,
		Repeatable:  s.mayRepeat,
	}
	forward := &httputil.ReverseProxy{
		Rewrite:        s.rewrite,
		Transport:      s.transport,
		BufferPool:     buffers,
		ModifyResponse: answered,
		ErrorHandler:   s.failed,
		ErrorLog:       log.New(io.Discard, "", 0), // its lines hold addresses; what they tell is in the Visit
	}
	s.forward = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil // an answer without one gets none: net/http would guess
		forward.ServeHTTP(w, r)
	})
	s.ours = oursWith(&p)
	if !s.guard.exact.empty {
		if keys == nil {
			return nil, errors.New("there are patterns of requests with keys, and no store for the keys")
		}
		if err := s.keepKeys(keys, scope); err != nil {
			return nil, err
		}
	}
	s.handler = deadline.Middleware{
		Limit:   -1, // the policy bounds the time to the header, and a stream may live
		Trusted: func(r *http.Request) bool { return visitOf(r.Context()).trusted },
	}.Handler(http.HandlerFunc(s.serve))
	return s, nil
}

// keepKeys makes the handlers of requests that have keys.
func (s *Service) keepKeys(keys idempotency.Store, scope func(*http.Request) string) (err error) {
	defer func() {
		if wrong := recover(); wrong != nil { // which is how a Middleware refuses values that make no sense
			err = fmt.Errorf("%v", wrong)
		}
	}()
	for i, optional := range []bool{false, true} {
		s.keyed[i] = idempotency.Middleware{
			Store: keys, Scope: scope, Optional: optional, Methods: keyedMethods,
			Lease: s.config.Lease, Retention: s.config.Retention, MaxBody: s.config.MaxKeyedBody, MaxAnswer: s.config.MaxAnswer,
			Observe: s.observe,
		}.Handler(untilCut(patiently(s.forward)))
	}
	return nil
}

var keyedMethods = []string{"POST", "PATCH", "PUT", "DELETE"}

// target reads the address of a service.
func target(to string) (*url.URL, error) {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return nil, errors.New("to: it is no URL: want http://HOST:PORT") // the parser's error would repeat a password
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		return nil, fmt.Errorf("to: want http://, https:// or h2c:// before the host, got scheme %q", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("to: there is no host in it")
	case u.User != nil:
		return nil, errors.New("to: a user and password are not sent on: leave them out")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("to: want an address and perhaps a path, not a query")
	}
	return u, nil
}

// rootsOf reads the certificates that the service's is checked by; nil means the system's.
func rootsOf(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: %s holds no certificate in PEM form", file)
	}
	return &tls.Config{RootCAs: roots}, nil
}

// newRoutes makes the routes with their policies.
func (s *Service) newRoutes() error {
	s.routes, s.latencies = newTable[route](), map[string][2]*riprap.Latency{}
	s.rest = s.newRoute("", nil)
	for _, r := range s.config.Routes {
		if err := s.routes.add(r.Match, s.newRoute(r.Match, r.Policy)); err != nil {
			return fmt.Errorf("routes: %w", err)
		}
	}
	s.routes.seal()
	return nil
}

func (s *Service) newRoute(pattern string, own *riprap.Policy) *route {
	p := manifest.Effective(s.config.Policy)
	if own != nil {
		p = manifest.Effective(*own)
	}
	p.Trace = s.trace()
	p.Latency = &riprap.Latency{Min: leastLearned} // observed in any case, for operators
	if !s.config.Adaptive {
		p.Latency.Factor, p.MinAttempt = -1, cmp.Or(p.MinAttempt, defaultMinAttempt)
	}
	upload := p
	// How long a large body takes is up to the client, within what an intake allows. Then the service has as long for its
	// header as for an attempt: see upstream.
	upload.Timeout, upload.AttemptTimeout, upload.Latency = -1, -1, &riprap.Latency{Factor: -1}
	// A bound that was learned buys another attempt. Where there is none, it would make an unknown outcome of a hiccup.
	once := p
	once.Latency = &riprap.Latency{Factor: -1}
	name := s.config.Service
	if pattern != "" {
		name += " " + pattern
	}
	s.latencies[name] = [2]*riprap.Latency{p.Latency, once.Latency}
	return &route{pattern: pattern, name: name, policy: &p, upload: &upload, once: &once}
}

// longest is the longest bound of an attempt that a route has; zero means that one has none.
func (s *Service) longest() time.Duration {
	bound := s.rest.policy.AttemptTimeout
	for _, r := range s.config.Routes {
		own := manifest.Effective(s.config.Policy)
		if r.Policy != nil {
			own = manifest.Effective(*r.Policy)
		}
		if own.AttemptTimeout < 0 {
			return 0
		}
		bound = max(bound, own.AttemptTimeout)
	}
	return max(bound, 0)
}

// mayRepeat reports whether a request may reach the service more than once. A key alone does not allow it: the service may not
// know what it means.
func (s *Service) mayRepeat(r *http.Request) bool {
	for _, name := range overrides {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	switch r.Method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return s.config.UpstreamKeys && riphttp.IsRepeatable(r)
}

// ServeHTTP serves one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := &Visit{Service: s.config.Service, Method: methodOf(r), Arrived: time.Now(), service: s}
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w), visit: v, silence: s.silence, bodied: hasBody(r) && s.silence > 0}
	v.answer, v.trusted, v.mayRepeat = a, s.trust.includes(r), s.mayRepeat(r)
	v.crowded = s.inFlight.Add(1) > s.maxInFlight && s.maxInFlight > 0
	whole := false
	defer func() { // after a panic too
		s.inFlight.Add(-1)
		if v.intake != nil {
			v.intake.finish()
		}
		if v.Broken = a.begun && !whole; v.Broken {
			// A client that has seen nothing of the answer would take it for a connection that was closed before its request, and
			// many send that again.
			a.control.Flush()
		}
		v.end()
	}()
	s.handler.ServeHTTP(a, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
	whole = true
}

// serve serves a request within its deadline.
func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	v := visitOf(r.Context())
	if !s.admit(w, r, v) {
		return
	}
	ctx := r.Context()
	v.upload = s.isUpload(r, v)
	switch {
	case v.upload:
		ctx = riphttp.WithPolicy(ctx, v.route.upload)
	case s.config.Adaptive && !v.mayRepeat:
		ctx = riphttp.WithPolicy(ctx, v.route.once)
	case v.route != s.rest:
		ctx = riphttp.WithPolicy(ctx, v.route.policy)
	}
	if v.upload && v.intake != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		v.intake.watch(func() { cancel(errStalled) })
		if r.ProtoMajor == 1 { // or the answer would wait for the end of the body
			v.answer.duplex = v.answer.control.EnableFullDuplex() == nil
		}
	}
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	if v.intake != nil {
		r.Body = v.intake
	}
	switch {
	case v.guard == nil:
		s.forward.ServeHTTP(w, r)
	case v.guard.required:
		r.Pattern = v.guard.pattern // what operators see of the key
		s.keyed[0].ServeHTTP(w, r)
	default:
		r.Pattern = v.guard.pattern
		s.keyed[1].ServeHTTP(w, r)
	}
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// isUpload reports whether a request has a body that is sent on while it comes. Others are read first.
func (s *Service) isUpload(r *http.Request, v *Visit) bool {
	replayed := max(cmp.Or(s.config.MaxReplay, defaultMaxReplay), 0)
	return hasBody(r) && v.guard == nil && (r.ContentLength < 0 || r.ContentLength > replayed)
}

// observe takes in what became of a key.
func (s *Service) observe(ctx context.Context, e idempotency.Event) {
	if v := visitOf(ctx); v != nil {
		v.mu.Lock()
		v.Key = e.Kind
		v.mu.Unlock()
	}
	if s.watch.Keyed != nil {
		s.watch.Keyed(s.config.Service, e)
	}
}

// end tells what became of the request.
func (v *Visit) end() {
	v.mu.Lock()
	v.wait(false)
	v.Took = time.Since(v.Arrived)
	if v.answered {
		v.Reached = ReachedYes
	}
	if v.route != nil {
		v.Route = v.route.pattern
	}
	v.mu.Unlock()
	if v.service.watch.Ended != nil {
		v.service.watch.Ended(v)
	}
}

// CloseIdleConnections closes the connections to the service that nobody uses.
func (s *Service) CloseIdleConnections() { s.transport.CloseIdleConnections() }

// A Snapshot is what a Service knows of itself, for display.
type Snapshot struct {
	Service  string
	To       string // without user, password and query
	InFlight int64
	Waiting  int64 // of them, those that wait for their next attempt
	Routes   []riphttp.Snapshot
}

// Snapshot returns what the Service knows at the time now.
func (s *Service) Snapshot(now time.Time) Snapshot {
	routes := s.transport.Snapshots(now)
	for i := range routes {
		for _, latency := range s.latencies[routes[i].Name] {
			if known := latency.Snapshot(now); known.P50 > 0 {
				routes[i].Latency = known
				break
			}
		}
	}
	return Snapshot{s.config.Service, s.config.To, s.inFlight.Load(), s.waiting.Load(), routes}
}

// buffers are those of bodies on their way.
var buffers = &bufferPool{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}}

type bufferPool struct{ sync.Pool }

func (p *bufferPool) Get() []byte  { return *p.Pool.Get().(*[]byte) }
func (p *bufferPool) Put(b []byte) { p.Pool.Put(&b) }
