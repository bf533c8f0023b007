package proxy

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// problems is where the types of problems are explained.
const problems = "https://github.com/riprap-go/riprap/blob/main/docs/proxy.md#"

// A problem is an answer of the proxy's own (RFC 9457). Its type says where it is explained; reached tells a program whether
// the service got the request.
type problem struct {
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Status   int     `json:"status"`
	Detail   string  `json:"detail"`
	Reached  Reached `json:"reached"`
	Attempts int     `json:"attempts"` // how often it was sent or begun to be sent

	busy  bool // Retry-After
	final bool // X-Should-Retry: false
	close bool // the connection cannot be used again
}

var (
	busy          = problem{Type: "busy", Title: "Too many requests under way", Status: 503, busy: true}
	tunnel        = problem{Type: "no-tunnel", Title: "CONNECT is not supported", Status: 501, final: true, close: true}
	loop          = problem{Type: "loop", Title: "Request goes round in circles", Status: 508, final: true}
	ambiguous     = problem{Type: "ambiguous", Title: "Request may mean another one", Status: 400, final: true}
	bodyTooLarge  = problem{Type: "body-too-large", Title: "Body is too large", Status: 413, final: true, close: true}
	bodyTooSlow   = problem{Type: "body-too-slow", Title: "Body came too slowly", Status: 408, close: true}
	bodyBroken    = problem{Type: "body-broken", Title: "Body could not be read", Status: 400, close: true}
	unreachable   = problem{Type: "unreachable", Title: "Service cannot be reached", Status: 502}
	noAnswer      = problem{Type: "no-answer", Title: "Service gave no answer", Status: 502}
	timedOut      = problem{Type: "timeout", Title: "Service did not answer in time", Status: 504}
	unknown       = problem{Type: "outcome-unknown", Title: "Outcome is unknown", Status: 502, final: true}
	unknownInTime = problem{Type: "outcome-unknown", Title: "Outcome is unknown", Status: 504, final: true}
)

// answer sends a problem, with a word on the case at hand.
func (v *Visit) refuse(w http.ResponseWriter, p problem, reached Reached, detail string) {
	v.mu.Lock()
	v.Problem, v.Reached = p.Type, reached
	p.Attempts = len(v.Attempts)
	v.mu.Unlock()
	p.Type, p.Detail, p.Reached = problems+p.Type, detail, reached
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.busy { // not the same for all who are told to come back
		h.Set("Retry-After", strconv.Itoa(1+rand.IntN(5)))
	}
	if p.final {
		h.Set("X-Should-Retry", "false")
	}
	if p.close {
		h.Set("Connection", "close")
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n')) // a shell is grateful
}
