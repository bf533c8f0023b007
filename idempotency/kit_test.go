package idempotency_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// A book is a Transactor for tests, by the clock of the bubble. Before and after each step a test can let it fail or wait.
type book struct {
	before, after func(ctx context.Context, step string) error // nil error: go on

	mu      sync.Mutex
	pages   map[idempotency.ID]*page
	steps   []string
	owners  []idempotency.Owner
	effects int // committed
}

type page struct {
	fingerprint []byte
	ticket      idempotency.Ticket
	state       idempotency.State
	reexecute   bool
	begun       time.Time
	lease       time.Time
	answer      idempotency.Answer
	retention   time.Time
}

var errDown = errors.New("the store is down")

func fails(ctx context.Context, hook func(context.Context, string) error, step string) error {
	if hook == nil {
		return nil
	}
	return hook(ctx, step)
}

func (b *book) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Claimed, error) {
	var claimed idempotency.Claimed
	err := b.step(ctx, "claim", func() error {
		b.owners = append(b.owners, c.Owner)
		p, generation, now := b.pages[c.ID], int64(1), time.Now()
		verdict := idempotency.ClaimWon
		if p != nil {
			generation = p.ticket.Generation + 1
			dead := p.state == idempotency.StateInProgress && !now.Before(p.lease)
			switch {
			case p.state == idempotency.StateCompleted && !now.Before(p.retention):
			case !bytes.Equal(p.fingerprint, c.Fingerprint):
				claimed.Verdict = idempotency.ClaimMismatch
				return nil
			case p.state == idempotency.StateCompleted:
				claimed.Verdict, claimed.Answer = idempotency.ClaimReplay, p.answer
				return nil
			case dead && p.reexecute && c.Reexecute:
				verdict = idempotency.ClaimStolen
			case dead || p.state == idempotency.StateUnknown:
				claimed.Verdict = idempotency.ClaimUnknown
				return nil
			default:
				claimed = idempotency.Claimed{Verdict: idempotency.ClaimInFlight, Age: now.Sub(p.begun), Lease: p.lease.Sub(now)}
				return nil
			}
		}
		b.pages[c.ID] = &page{
			fingerprint: c.Fingerprint, ticket: c.Ticket(generation), state: idempotency.StateInProgress,
			reexecute: c.Reexecute, begun: now, lease: now.Add(c.Lease),
		}
		claimed = idempotency.Claimed{Verdict: verdict, Generation: generation}
		return nil
	})
	return claimed, err
}

func (b *book) step(ctx context.Context, name string, do func() error) error {
	b.mu.Lock()
	b.steps = append(b.steps, name)
	b.mu.Unlock()
	if err := fails(ctx, b.before, name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	err := do()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return fails(ctx, b.after, name)
}

// held returns the page of a ticket that holds its key.
func (b *book) held(t idempotency.Ticket) (*page, error) {
	if p := b.pages[t.ID]; p != nil && p.ticket == t && p.state == idempotency.StateInProgress {
		return p, nil
	}
	return nil, idempotency.ErrFenced
}

func (b *book) Renew(ctx context.Context, t idempotency.Ticket, lease time.Duration) error {
	return b.step(ctx, "renew", func() error {
		p, err := b.held(t)
		if err == nil {
			p.lease = time.Now().Add(lease)
		}
		return err
	})
}

func (b *book) Complete(ctx context.Context, t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	return b.step(ctx, "complete", func() error { return b.complete(t, a, retention) })
}

func (b *book) complete(t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	p, err := b.held(t)
	if err != nil {
		if p = b.pages[t.ID]; p != nil && p.ticket == t && p.state == idempotency.StateCompleted {
			return nil
		}
		return err
	}
	p.state, p.retention = idempotency.StateCompleted, time.Now().Add(retention)
	p.answer = idempotency.Answer{Status: a.Status, Header: a.Header.Clone(), Body: bytes.Clone(a.Body), Tombstone: a.Tombstone}
	return nil
}

func (b *book) Release(ctx context.Context, t idempotency.Ticket) error {
	return b.step(ctx, "release", func() error {
		_, err := b.held(t)
		if err == nil {
			delete(b.pages, t.ID)
		}
		return err
	})
}

func (b *book) Suspend(ctx context.Context, t idempotency.Ticket) error {
	return b.step(ctx, "suspend", func() error {
		p, err := b.held(t)
		if err == nil {
			p.state = idempotency.StateUnknown
		}
		return err
	})
}

// steal lets another run take every key over.
func (b *book) steal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pages {
		p.ticket.Generation++
		p.ticket.Owner = idempotency.Owner{1}
	}
}

// took returns how often a step was taken.
func (b *book) took(step string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.steps {
		if s == step {
			n++
		}
	}
	return n
}

type bookKey struct{}

type bookTx struct {
	*book
	ticket      idempotency.Ticket
	pending     int
	over, dirty bool // dirty: the handler ended it by itself
}

func (b *book) Transact(ctx context.Context, t idempotency.Ticket) (context.Context, idempotency.Transaction) {
	tx := &bookTx{book: b, ticket: t}
	return context.WithValue(ctx, bookKey{}, tx), tx
}

// effect is what a handler does that may happen once only: in its transaction, if it has one.
func (b *book) effect(ctx context.Context) {
	if tx, ok := ctx.Value(bookKey{}).(*bookTx); ok {
		tx.pending++
		return
	}
	b.mu.Lock()
	b.effects++
	b.mu.Unlock()
}

func (tx *bookTx) Renew(ctx context.Context, lease time.Duration) error {
	return tx.book.Renew(ctx, tx.ticket, lease)
}

func (tx *bookTx) Commit(ctx context.Context, a idempotency.Answer, retention time.Duration) error {
	return tx.step(ctx, "commit", func() error {
		err := tx.complete(tx.ticket, a, retention)
		if err == nil && !tx.over {
			tx.effects += tx.pending
			tx.over = true
		}
		return err
	})
}

func (tx *bookTx) Rollback() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.dirty {
		return errors.New("the handler committed by itself")
	}
	tx.pending = 0
	return nil
}

// A service is a handler behind a Middleware and a server in memory.
type service struct {
	t      *testing.T
	store  *book
	client *http.Client
	server *memhttp.Server

	mu     sync.Mutex
	events []idempotency.Event
	runs   int
}

// serve starts a service. Store, Scope and Observe are filled in where they are missing.
func serve(t *testing.T, m idempotency.Middleware, h http.HandlerFunc) *service {
	t.Helper()
	return serveInside(t, m, h, func(h http.Handler) http.Handler { return h })
}

func serveInside(t *testing.T, m idempotency.Middleware, h http.HandlerFunc, outside func(http.Handler) http.Handler) *service {
	t.Helper()
	s := &service{t: t}
	if m.Store == nil {
		m.Store = &book{pages: make(map[idempotency.ID]*page)}
	}
	s.store, _ = m.Store.(*book)
	if m.Scope == nil {
		m.Scope = idempotency.SingleTenant
	}
	m.Observe = func(_ context.Context, e idempotency.Event) {
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
	}
	s.server = memhttp.Serve(outside(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
		h(w, r)
	}))))
	s.client = &http.Client{Transport: s.server.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

func (s *service) stop() {
	s.client.CloseIdleConnections()
	s.server.Stop()
}

// An answer is a response with its body read.
type answer struct {
	*http.Response
	body string
	err  error
}

// problem returns the name of the problem that an answer stands for, "" for none.
func (a answer) problem() string {
	if a.Response == nil || a.Header.Get("Content-Type") != "application/problem+json" {
		return ""
	}
	_, name, _ := strings.Cut(a.member("type").(string), "#")
	return name
}

// member returns a member of a problem.
func (a answer) member(name string) any {
	var members map[string]any
	json.Unmarshal([]byte(a.body), &members)
	return members[name]
}

func (a answer) replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// post sends a request with this key.
func (s *service) post(key, body string) answer {
	s.t.Helper()
	return s.send(s.request("POST", "/charges", key, body))
}

func (s *service) request(method, path, key, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, memhttp.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.GetBody = nil // else net/http sends it again by itself
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

func (s *service) send(r *http.Request) (a answer) {
	a.Response, a.err = s.client.Do(r)
	if a.err != nil {
		a.Response = &http.Response{}
		return a
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	a.body, a.err = string(body), err
	return a
}

// ran returns how often the handler was called.
func (s *service) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// kinds returns what became of the requests, in order.
func (s *service) kinds() (kinds []idempotency.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (s *service) wantKinds(want ...idempotency.Kind) {
	s.t.Helper()
	if got := s.kinds(); !slices.Equal(got, want) {
		s.t.Errorf("events = %v, want %v", got, want)
	}
}

// wantProblem checks an answer of the middleware's own.
func (s *service) wantProblem(a answer, status int, name string) {
	s.t.Helper()
	if a.err != nil || a.StatusCode != status || a.problem() != name {
		s.t.Errorf("answer = %d %s, %v, want the problem %q with %d", a.StatusCode, a.body, a.err, name, status)
	}
}

// wantAnswer checks an answer of the handler, sent again or not.
func (s *service) wantAnswer(a answer, status int, body string, replayed bool) {
	s.t.Helper()
	if a.err != nil || a.StatusCode != status || a.body != body || a.replayed() != replayed {
		s.t.Errorf("answer = %d %q (replayed: %v), %v, want %d %q (replayed: %v)", a.StatusCode, a.body, a.replayed(), a.err, status, body, replayed)
	}
}

func (s *service) wantRuns(want int) {
	s.t.Helper()
	if got := s.ran(); got != want {
		s.t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// created is a handler that works.
func created(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusCreated)
	w.Write(append([]byte("did "), body...))
}

// bubble runs a test in fake time.
func bubble(t *testing.T, m idempotency.Middleware, h http.HandlerFunc, test func(s *service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, m, h)
		defer s.stop()
		test(s)
	})
}
