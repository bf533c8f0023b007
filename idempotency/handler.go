package idempotency

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	keyField         = "Idempotency-Key"
	replayedField    = "Idempotent-Replayed"
	retentionField   = "Idempotency-Retention"
	shouldRetryField = "X-Should-Retry"
)

// SingleTenant is a Scope for services that have one tenant only: everybody who may send a request may see the answer to
// every other one.
func SingleTenant(*http.Request) string { return "single tenant" }

// A handler is a Middleware with its defaults filled in.
type handler struct {
	Middleware
	next       http.Handler
	transactor Transactor   // nil unless Transactional
	published  string       // the retention in seconds
	kept       []string     // the response fields that are kept, in their canonical form
	waiting    atomic.Int64 // requests that wait for the answer of another
}

// Handler returns a handler that lets next serve each keyed request once. Authentication and rate limits belong outside of
// it, so that their answers are not kept, and so do the recovery from panics, compression and a deadline.Middleware.
// It panics if Store or Scope is missing, if Transactional is set and the Store is no Transactor or FailOpen is set too, and
// on values that make no sense.
func (m Middleware) Handler(next http.Handler) http.Handler {
	h := &handler{Middleware: m, next: next}
	h.check()
	if h.Transactional {
		h.transactor = h.Store.(Transactor)
		h.Reexecute = true
	}
	if h.Methods == nil {
		h.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	h.Lease = cmp.Or(h.Lease, time.Minute)
	h.Retention = cmp.Or(h.Retention, 24*time.Hour)
	h.MaxRun = cmp.Or(h.MaxRun, 5*time.Minute)
	h.MaxWaiting = cmp.Or(h.MaxWaiting, 100)
	h.MaxBody = cmp.Or(h.MaxBody, 1<<20)
	h.MaxAnswer = cmp.Or(h.MaxAnswer, 1<<20)
	if h.Operation == nil {
		h.Operation = operation
	}
	if h.Observe == nil {
		h.Observe = Log(nil)
	}
	h.published = strconv.FormatInt(int64(h.Retention/time.Second), 10)
	h.kept = slices.Concat(describing, m.KeepHeaders)
	for i, name := range h.kept {
		h.kept[i] = textproto.CanonicalMIMEHeaderKey(name)
	}
	return h
}

// check panics on a Middleware that cannot work.
func (h *handler) check() {
	_, transactor := h.Store.(Transactor)
	for _, fault := range []struct {
		found bool
		text  string
	}{
		{h.next == nil, "no handler"},
		{h.Store == nil, "a Middleware needs a Store"},
		{h.Scope == nil, "a Middleware needs a Scope: a key of one caller must not show the answer of another; who has one tenant only says SingleTenant"},
		{h.Transactional && h.Store != nil && !transactor, fmt.Sprintf("Transactional needs a Store that is a Transactor, %T is none", h.Store)},
		{h.Transactional && h.FailOpen, "a Transactional handler has no transaction while the store cannot be asked: FailOpen does not go with it"},
		{h.Lease != 0 && h.Lease < time.Millisecond, fmt.Sprintf("a Lease of %v is too short", h.Lease)},
		{h.Retention != 0 && h.Retention < time.Second, fmt.Sprintf("a Retention of %v is too short, it is published in seconds", h.Retention)},
		{h.Wait < 0, fmt.Sprintf("Wait is %v", h.Wait)},
		{h.MaxWaiting < 0, fmt.Sprintf("MaxWaiting is %d", h.MaxWaiting)},
		{h.MaxBody < 0, fmt.Sprintf("MaxBody is %d", h.MaxBody)},
		{h.MismatchStatus != 0 && (h.MismatchStatus < 400 || h.MismatchStatus > 499), fmt.Sprintf("MismatchStatus is %d, it must be one of 400 to 499", h.MismatchStatus)},
		{h.MaxAnswer < 0, fmt.Sprintf("MaxAnswer is %d", h.MaxAnswer)},
	} {
		if fault.found {
			panic("idempotency: " + fault.text)
		}
	}
	for _, name := range h.KeepHeaders {
		if !Replayable(name) {
			panic("idempotency: the field " + name + " is of one answer only, it cannot be kept")
		}
	}
}

// operation names what a request asks for. The path says it all, but for the host that a pattern may have; the pattern itself is
// left out, since a deploy that renames a wildcard must not make every key new.
func operation(r *http.Request) string {
	_, pattern, found := strings.Cut(r.Pattern, " ")
	if !found {
		pattern = r.Pattern
	}
	host, _, _ := strings.Cut(pattern, "/")
	return r.Method + " " + host + asked(r, (*url.URL).EscapedPath)
}

// asked returns a part of the URL as the client sent it, and as outer handlers have left it if they changed it. Neither tells
// all: behind two http.StripPrefix the rest of the path may be the same, and a gateway may make many paths of one.
func asked(r *http.Request, part func(*url.URL) string) string {
	left := part(r.URL)
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil { // of a request that no server has read
		return left
	}
	if sent := part(u); sent != left {
		return sent + " " + left // no space is in either
	}
	return left
}

// label is what operators see of a request: no path, since that may name a customer.
func label(r *http.Request) string {
	s := r.Pattern
	if !strings.HasPrefix(s, r.Method+" ") {
		s = strings.TrimSuffix(r.Method+" "+s, " ")
	}
	return strings.ToValidUTF8(s[:min(len(s), 255)], "")
}

// ServeHTTP is the Middleware's part up to the claim.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(h.Methods, r.Method) {
		h.next.ServeHTTP(w, r)
		return
	}
	q := &request{handler: h, w: w, r: r, label: label(r), detached: context.WithoutCancel(r.Context())}
	keys := r.Header[keyField]
	if len(keys) == 0 {
		if h.Optional {
			h.next.ServeHTTP(w, r)
			return
		}
		q.refuse(keyMissing, "Requests like this one need a header field Idempotency-Key: a value that is new for each operation, and the same when it is sent again.", nil)
		return
	}
	key, err := parseKey(keys)
	if err == nil && h.QuotedOnly && !strings.HasPrefix(strings.Trim(keys[0], " "), `"`) {
		err = errKeyBare
	}
	if err == nil && h.CheckKey != nil {
		err = h.CheckKey(key)
	}
	if err != nil {
		q.refuse(keyInvalid, err.Error(), nil)
		return
	}
	w.Header().Set(retentionField, h.published)
	body, ok := q.read()
	if !ok {
		return
	}
	scope := h.Scope(q.look(body))
	if scope == "" {
		q.refuse(scopeMissing, "A key belongs to whoever is asking, and this request does not say who that is.", nil)
		return
	}
	q.id = NewID(scope, h.Operation(q.look(body)), key)
	if outer, ok := r.Context().Value(runKey{}).(*run); ok && outer.id == q.id {
		// A Middleware within another one: the run is protected, and would wait for itself.
		h.next.ServeHTTP(w, q.look(body))
		return
	}
	q.serve(body)
}

// A request is one with a key.
type request struct {
	*handler
	w        http.ResponseWriter
	r        *http.Request
	label    string
	detached context.Context // for the store and Observe: it has the request's values and no end
	id       ID              // zero as long as it is not known
}

// observe tells what became of the request.
func (q *request) observe(kind Kind, status int, err error) {
	q.Observe(q.detached, Event{Kind: kind, ID: q.id, Operation: q.label, Status: status, Err: err})
}

// refuse answers with a problem.
func (q *request) refuse(p problem, detail string, err error) {
	q.observe(p.kind, p.Status, err)
	p.write(q.w, detail)
}

// serve claims the key and does what the verdict asks for.
func (q *request) serve(body []byte) {
	c := Claim{
		ID:          q.id,
		Fingerprint: fingerprint(&q.Middleware, q.look(body), body),
		Operation:   q.label,
		Lease:       q.Lease,
		Retention:   q.Retention,
		Reexecute:   q.Reexecute,
	}
	claimed, err := q.claim(&c)
	switch {
	case errors.Is(err, errOver):
		p := storeUnavailable
		p.kind = Refused // it is not about the store
		q.refuse(p, "This request was over before it was begun. It was not run.", nil)
		return
	case errors.Is(err, ErrFull):
		q.refuse(storeFull, "There is no room for further keys at the moment.", err)
		return
	case err != nil && q.FailOpen:
		q.observe(Unavailable, 0, err)
		run := &run{request: q} // there are child keys at least
		q.next.ServeHTTP(q.w, withBody(q.r.WithContext(context.WithValue(q.r.Context(), runKey{}, run)), body))
		return
	case err != nil:
		q.forget(c)
		q.refuse(storeUnavailable, "It cannot be found out whether this request was run already, so it was not run.", err)
		return
	}
	switch claimed.Verdict {
	case ClaimWon, ClaimStolen:
		q.run(c.Ticket(claimed.Generation), body)
	case ClaimReplay:
		q.replay(claimed.Answer)
	case ClaimInFlight:
		p := inFlight
		p.retryAfter = comeBack(claimed)
		q.refuse(p, "The first request with this key is still running.", nil)
	case ClaimMismatch:
		p := keyReused
		p.Status = cmp.Or(q.MismatchStatus, p.Status)
		p.final = true // a 409 would look like a run that is still going on
		q.refuse(p, "This key came with another request before. What that one asked for may have been done.", nil)
	case ClaimUnknown:
		q.refuse(outcomeUnknown, "A request with this key was begun, and nobody knows how far it came. Somebody has to find out.", nil)
	}
}

// comeBack says when to ask again: what has lasted for so long probably lasts as long again, but not longer than its lease.
func comeBack(c Claimed) time.Duration {
	return min(max(c.Age, time.Second), 30*time.Second, max(c.Lease, 0)+time.Second)
}

const (
	claimTime = 5 * time.Second // for one claim
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// claim asks for the key, and again for as long as the request may wait for another one. In between it holds nothing.
func (q *request) claim(c *Claim) (Claimed, error) {
	claimed, err := q.claimOnce(c)
	if q.Wait == 0 || err != nil || claimed.Verdict != ClaimInFlight {
		return claimed, err
	}
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > int64(q.MaxWaiting) {
		return claimed, nil
	}
	over := time.NewTimer(q.Wait)
	defer over.Stop()
	for pause := firstPoll; err == nil && claimed.Verdict == ClaimInFlight; pause = min(2*pause, lastPoll) {
		select {
		case <-q.r.Context().Done():
			return claimed, nil
		case <-over.C:
			return q.claimOnce(c)
		case <-time.After(jittered(pause)):
			claimed, err = q.claimOnce(c)
		}
	}
	return claimed, err
}

// errOver: the client has left, or an outer handler has given up.
var errOver = errors.New("idempotency: the request was over before it was begun")

// claimOnce is detached from the request: a claim that is cancelled on its way may have taken the key all the same.
func (q *request) claimOnce(c *Claim) (Claimed, error) {
	if q.r.Context().Err() != nil {
		return Claimed{}, errOver
	}
	rand.Read(c.Owner[:])
	ctx, cancel := context.WithTimeout(q.detached, claimTime)
	defer cancel()
	claimed, err := q.Store.Claim(ctx, *c)
	if err == nil && (claimed.Verdict < ClaimWon || claimed.Verdict > ClaimUnknown) {
		err = fmt.Errorf("idempotency: the store answered a claim with %v", claimed.Verdict)
	}
	return claimed, err
}

// forget undoes a claim that failed in a way which does not say whether it took the key: nothing ran under it. If it did, it
// most likely was the first one. One that cannot be undone ends with its lease.
func (q *request) forget(c Claim) {
	ctx, cancel := context.WithTimeout(q.detached, time.Second)
	defer cancel()
	q.Store.Release(ctx, c.Ticket(1))
}

// replay sends an answer again.
func (q *request) replay(a Answer) {
	if q.MayReplay != nil && !q.MayReplay(q.r) {
		q.refuse(replayRefused, "This request was run already. Its answer is not for whoever is asking now.", nil)
		return
	}
	q.w.Header().Set(replayedField, "true")
	if a.Tombstone {
		p := answerNotKept
		p.FirstStatus = a.Status
		q.refuse(p, "This request was run already, and its answer was not kept.", nil)
		return
	}
	q.observe(Replayed, a.Status, nil)
	h := q.w.Header()
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // no guess, if the answer had none
	}
	encoded := h["Content-Encoding"] != nil // by an outer handler: what goes out has another length
	for name, values := range a.Header {
		h[name] = values
	}
	if bodyAllowed(a.Status) && !encoded {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	q.w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		q.w.Write(a.Body)
	}
}
