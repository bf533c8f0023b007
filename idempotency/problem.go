package idempotency

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

const problems = "https://github.com/riprap-go/riprap/blob/main/docs/idempotency.md#"

// A problem is an answer of the Middleware's own (RFC 9457). Its type says where it is explained; the two booleans are for
// programs.
type problem struct {
	Type         string `json:"type"`
	Title        string `json:"title"`
	Status       int    `json:"status"`
	Detail       string `json:"detail"`
	RetrySameKey bool   `json:"retry_same_key"` // sending the same again can help, and has no effect twice
	SafeNewKey   bool   `json:"safe_new_key"`   // nothing can have run under this key: with a new one nothing happens twice
	FirstStatus  int    `json:"first_status,omitempty"`

	kind       Kind
	retryAfter time.Duration // zero: nothing is said
	final      bool          // X-Should-Retry: false
}

var (
	keyMissing     = problem{Type: "key-missing", Title: "Idempotency-Key is missing", Status: 400, SafeNewKey: true, kind: Refused}
	keyInvalid     = problem{Type: "key-invalid", Title: "Idempotency-Key is not valid", Status: 400, SafeNewKey: true, kind: Refused}
	scopeMissing   = problem{Type: "scope-missing", Title: "Nobody owns the key", Status: 400, RetrySameKey: true, kind: Refused}
	bodyUnreadable = problem{Type: "body-unreadable", Title: "Body could not be read", Status: 400, RetrySameKey: true, kind: Refused}
	bodyTooLarge   = problem{Type: "body-too-large", Title: "Body is too large", Status: 413, SafeNewKey: true, kind: Refused}

	keyReused      = problem{Type: "key-reused", Title: "Idempotency-Key was used for another request", Status: 422, kind: Mismatched}
	inFlight       = problem{Type: "in-flight", Title: "Request is still running", Status: 409, RetrySameKey: true, kind: InFlight}
	outcomeUnknown = problem{Type: "outcome-unknown", Title: "Outcome is unknown", Status: 409, kind: Unresolved, final: true}
	answerNotKept  = problem{Type: "answer-not-kept", Title: "Answer was not kept", Status: 409, kind: Replayed, final: true}
	replayRefused  = problem{Type: "replay-refused", Title: "Answer may not be replayed", Status: 403, kind: Refused}

	storeUnavailable = problem{Type: "store-unavailable", Title: "Keys cannot be looked up", Status: 503, RetrySameKey: true, kind: Unavailable, retryAfter: 5 * time.Second}
	storeFull        = problem{Type: "store-full", Title: "No room for further keys", Status: 503, RetrySameKey: true, kind: Unavailable, retryAfter: 5 * time.Second}
	notCommitted     = problem{Type: "not-committed", Title: "Nothing was written", Status: 503, RetrySameKey: true, kind: NotCommitted, retryAfter: time.Second}
	commitUnknown    = problem{Type: "commit-unknown", Title: "Commit was not confirmed", Status: 503, RetrySameKey: true, kind: Unrecorded, retryAfter: time.Second}
	takenOver        = problem{Type: "taken-over", Title: "Key was taken over", Status: 409, RetrySameKey: true, kind: Fenced, retryAfter: time.Second}
)

// write sends the problem, with a word on the case at hand.
func (p problem) write(w http.ResponseWriter, detail string) {
	p.Type = problems + p.Type
	p.Detail = detail
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.retryAfter+time.Second-1)/time.Second), 10))
	}
	if p.final {
		h.Set(shouldRetryField, "false")
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n')) // a shell is grateful
}
