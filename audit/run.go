package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

// A session is one audit while it is going on.
type session struct {
	*Audit
	server *server
	gate   chan struct{} // holds the clients that have been started and have not waited for anything yet
	noise  *noise
}

func (a *Audit) start() (*session, error) {
	listen := a.listen
	if listen == nil {
		listen = loopback
	}
	p, err := listen()
	if err != nil {
		return nil, err
	}
	server, err := serve(p)
	if err != nil {
		p.close()
		return nil, err
	}
	steps := toil
	if a.listen != nil {
		steps = 0 // in fake time work takes none
	}
	// To start a program costs more than to run it, and one that never waits needs a processor all the time: many at once
	// would delay each other, and the delays pass for waits.
	return &session{Audit: a, server: server, gate: make(chan struct{}, runtime.GOMAXPROCS(0)), noise: listenForNoise(steps)}, nil
}

func (s *session) stop() {
	s.noise.stop()
	s.server.stop()
}

// A run is one run of the client, and what the server saw of it.
type run struct {
	scenario   *scenario
	call       Call
	began      time.Time     // when the first request came, or the client was started if none did
	took       time.Duration // from then until the client was done
	cut        bool          // the client was not done when patience ended, or when it had sent too many requests
	err        error         // the client's, or why it was not run
	arrivals   []flaky.Arrival
	redirected []flaky.Arrival // at the other origin
	sentKey    bool            // it sent the key that it was given
	dials      []time.Time     // when connections came to the address that nobody trusts
}

// preflight makes sure that the client can do what is asked of it: a GET that is answered at once must arrive.
func (s *session) preflight(ctx context.Context) error {
	r := s.do(ctx, &scenario{name: "ok", method: get, script: "200 body=ok"})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(r.arrivals) == 0 && r.err != nil:
		return fmt.Errorf("audit: the client sent nothing when asked for a GET: %w", r.err)
	case len(r.arrivals) == 0:
		return errors.New("audit: the client sent nothing to the address that it was given, and reported no error")
	case r.cut:
		return fmt.Errorf("audit: a GET that was answered at once was not over after %v", s.patience())
	}
	return nil
}

// runAll runs the scenarios side by side.
func (s *session) runAll(ctx context.Context, list []*scenario) (*observed, error) {
	var (
		mu   sync.Mutex
		done int
		all  sync.WaitGroup
	)
	total := 0
	for _, sc := range list {
		total += sc.runs
	}
	tell := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		done += n
		if s.Progress != nil {
			s.Progress(done, total)
		}
	}
	tell(0)
	o := &observed{runs: map[string][]*run{}, patience: s.patience()}
	for _, sc := range list {
		runs := make([]*run, sc.runs)
		o.runs[sc.name] = runs
		for i := range runs {
			select {
			case s.gate <- struct{}{}: // in order
			case <-ctx.Done():
			}
			all.Go(func() {
				runs[i] = s.do(ctx, sc)
				tell(1)
			})
		}
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.late = s.noise.heard()
	return o, nil
}

// tooMany requests of one call end its run: there is nothing more to learn, and they keep the machine from the others.
const tooMany = 10 * unbounded

// redirected follows a run's id in the id of what arrives at the other origin.
const redirected = "-redirected"

// do runs the client once.
func (s *session) do(ctx context.Context, sc *scenario) *run {
	id := sc.name + "-" + strings.ToLower(rand.Text()[:10])
	r := &run{scenario: sc, call: s.call(sc, id)}
	started := sync.OnceFunc(s.pass)
	defer started()
	script := sc.script
	if strings.Contains(script, "%s") {
		if s.server.other == nil {
			r.err = fmt.Errorf("%w: localhost has no address here", errors.ErrUnsupported)
			return r
		}
		// What was dropped at the first hop may come back at the next one, or when the target fails.
		target := s.server.otherURL + "/~" + id + redirected + "/"
		if r.err = s.server.faults.Run(id+redirected, fmt.Sprintf(script, target+"further")+", 503, 200"); r.err != nil {
			return r
		}
		script = fmt.Sprintf(script, target+"landed")
	}
	// A timeout of just the patience is one that it has patience for.
	runCtx, cancel := context.WithTimeout(ctx, s.patience()+s.patience()/10)
	defer cancel()
	c := &caller{key: r.call.Key, calls: r.call.Calls, settled: started, tooMany: cancel}
	if r.err = s.server.expect(id, script, c); r.err != nil {
		return r
	}
	r.began = time.Now()
	r.err = s.Client(runCtx, r.call)
	r.cut = runCtx.Err() != nil
	r.arrivals = s.server.faults.Arrivals(id)
	if len(r.arrivals) > 0 { // to start a program is no part of its call
		r.began = r.arrivals[0].Time
	}
	r.took = time.Since(r.began)
	r.redirected = s.server.faults.Arrivals(id + redirected)
	r.sentKey = s.server.sentKey(c)
	if sc.tls {
		r.dials = s.server.dials.accepted()
	}
	return r
}

// pass lets the next client start.
func (s *session) pass() {
	select {
	case <-s.gate:
	default:
	}
}

func (s *session) call(sc *scenario, id string) Call {
	c := Call{Method: sc.method, URL: s.server.mainURL + "/~" + id + "/items", Calls: 1}
	if sc.tls {
		c.URL = s.server.tlsURL + "/~" + id + "/items"
	}
	if sc.method == http.MethodPost {
		c.Body = payload
	}
	if sc.keyed {
		c.Key = "key-" + strings.ToLower(rand.Text()[:20])
	}
	if sc.token {
		c.Token = "token-" + strings.ToLower(rand.Text()[:20])
	}
	if sc.many {
		c.Calls = s.calls()
	}
	return c
}

// payload is larger than the buffers through which it goes, and has no two parts alike: a body that is cut or sent
// from the middle has another hash. It is safe in a shell.
var payload = func() string {
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "%04d:", i)
	}
	return b.String()
}()

// runOf returns the run to which a request belongs, empty if to none.
func runOf(r *http.Request) string {
	rest, found := strings.CutPrefix(r.URL.Path, "/~")
	if !found {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}
