package proxy

import (
	"slices"
	"sync"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

const (
	mostEvents   = 200 // are kept
	mostAttempts = 20  // of one request are kept: the first ones and the last ones
)

// What is notable of a request. The first that holds is it.
const (
	wasUnknown  = "unknown"  // nobody knows what the service did
	wasConflict = "conflict" // its key belongs to another request, or to one that is still running
	wasReplayed = "replayed" // the answer to an earlier request with its key was sent again
	wasRefused  = "refused"  // by the proxy, and the service did not get it
	wasBroken   = "broken"   // its answer ended before its end
	wasCanceled = "canceled" // the client left
	wasFailed   = "failed"
	wasRetried  = "retried" // and answered
)

var notableWords = newVocabulary(wasUnknown, wasConflict, wasReplayed, wasRefused, wasBroken, wasCanceled, wasFailed, wasRetried)

// notable says what is notable of a request; "" means that it went as it should, at the first attempt.
func (v *Visit) notable() string {
	switch v.Key {
	case idempotency.Suspended, idempotency.Unresolved, idempotency.Unrecorded:
		return wasUnknown
	case idempotency.InFlight, idempotency.Mismatched, idempotency.Fenced:
		return wasConflict
	case idempotency.Replayed:
		return wasReplayed
	case idempotency.Refused, idempotency.Unavailable, idempotency.NotCommitted:
		return wasRefused
	}
	switch {
	case v.Problem == unknown.Type:
		return wasUnknown
	case v.Problem != "" && len(v.Attempts) == 0:
		return wasRefused
	case v.Broken:
		return wasBroken
	case v.Status == 0, v.Reason == "canceled":
		return wasCanceled
	case v.Problem != "", v.Reason != "", v.Status >= 500:
		return wasFailed
	case len(v.Attempts) > 1:
		return wasRetried
	}
	return ""
}

// reached says whether the service got the request, also where neither its answer nor a problem of ours does.
func (v *Visit) reached() Reached {
	switch {
	case v.Reached != "":
		return v.Reached
	case len(v.Attempts) == 0:
		return ReachedNo
	}
	return ReachedUnknown
}

// An event is a request of which something is notable, as /state shows it. It holds no memory of the request's.
type event struct {
	ID       uint64    `json:"id"`   // grows by one
	Time     time.Time `json:"time"` // of the request's arrival
	What     string    `json:"what"`
	Service  string    `json:"service"`
	Route    string    `json:"route"`
	Method   string    `json:"method"`
	Status   int       `json:"status"` // 0: the client was sent none
	Problem  string    `json:"problem,omitempty"`
	Key      string    `json:"key,omitempty"`    // what became of its key
	Reached  string    `json:"reached"`          // whether the service got it
	Reason   string    `json:"reason,omitempty"` // why it was not tried again
	Took     float64   `json:"took_seconds"`
	Attempts []attempt `json:"attempts"`
	Omitted  int       `json:"attempts_omitted,omitempty"` // in the middle of them
}

// An attempt is one of an event.
type attempt struct {
	Begun   float64 `json:"begun_seconds"` // after the request's arrival
	Took    float64 `json:"took_seconds"`
	Outcome string  `json:"outcome"`                // a status, or how it failed
	Wait    float64 `json:"wait_seconds,omitempty"` // before the next one
	Asked   bool    `json:"asked,omitempty"`        // the service said how long to wait
}

// newEvent copies what is shown of a request.
func newEvent(v *Visit, p *place, what string) event {
	e := event{
		Time: v.Arrived, What: what, Service: p.labels[0], Route: p.labels[1], Method: methodWords.words[methodWords.find(v.Method)], Status: v.Status,
		Problem: problemWords.own(v.Problem), Reached: reachedWords.own(string(v.reached())), Reason: reasonWords.own(v.Reason),
		Took: v.Took.Seconds(), Attempts: make([]attempt, 0, min(len(v.Attempts), mostAttempts)),
	}
	if v.Key != 0 {
		e.Key = kindWords.words[kindOf(v.Key)]
	}
	list := v.Attempts
	if e.Omitted = max(len(list)-mostAttempts, 0); e.Omitted > 0 {
		list = slices.Concat(list[:mostAttempts/2], list[len(list)-mostAttempts/2:])
	}
	for i := range list {
		a := &list[i]
		e.Attempts = append(e.Attempts, attempt{
			Begun: a.Begun.Sub(v.Arrived).Seconds(), Took: a.Took.Seconds(), Outcome: outcomeWords[outcomeOf(a)],
			Wait: a.Wait.Seconds(), Asked: a.Asked,
		})
	}
	return e
}

// events are the last ones. The zero value is ready to use, by many goroutines at once.
type events struct {
	mu    sync.Mutex
	added uint64
	ring  [mostEvents]event
}

func (l *events) add(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added++
	e.ID = l.added
	l.ring[l.added%mostEvents] = e
}

// last returns the events, the newest first.
func (l *events) last() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]event, min(l.added, mostEvents))
	for i := range list {
		list[i] = l.ring[(l.added-uint64(i))%mostEvents]
	}
	return list
}
