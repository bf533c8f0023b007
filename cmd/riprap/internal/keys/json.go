package keys

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// format is that of the documents; it grows when a field changes its meaning.
const format = 1

// A keyJSON is a key for programs.
type keyJSON struct {
	ID         string      `json:"id"`
	State      string      `json:"state"` // in_progress, completed, unknown
	Stuck      bool        `json:"stuck"` // somebody has to resolve it
	Operation  string      `json:"operation"`
	Reexecute  bool        `json:"reexecute"`
	Owner      string      `json:"owner"`
	Generation int64       `json:"generation"`
	Begun      time.Time   `json:"begun"`
	Lease      *float64    `json:"lease_left_seconds,omitempty"` // of one in progress; zero or less: it is over
	Retention  float64     `json:"retention_left_seconds"`       // the same
	Answer     *answerJSON `json:"answer,omitempty"`             // of a completed one
}

type answerJSON struct {
	Status int  `json:"status"`
	Kept   bool `json:"kept"` // false: header and body were not

	// Only show looks at these.
	HeaderNames []string `json:"header_names,omitempty"`
	BodyBytes   *int     `json:"body_bytes,omitempty"`
}

var states = map[idempotency.State]string{
	idempotency.StateInProgress: "in_progress", idempotency.StateCompleted: "completed", idempotency.StateUnknown: "unknown",
}

func document(r *idempotency.Record) keyJSON {
	k := keyJSON{
		ID: r.ID.String(), State: states[r.State], Stuck: stuck(r), Operation: r.Operation, Reexecute: r.Reexecute,
		Owner: owner(r), Generation: r.Generation, Begun: r.Begun, Retention: seconds(r.Retention),
	}
	if r.State == idempotency.StateInProgress {
		k.Lease = new(seconds(r.Lease))
	}
	if r.Answer != nil {
		k.Answer = &answerJSON{Status: r.Answer.Status, Kept: !r.Answer.Tombstone}
	}
	return k
}

// detailed is a key with what only show knows of its answer.
func detailed(r *idempotency.Record) keyJSON {
	k := document(r)
	if r.Answer != nil && !r.Answer.Tombstone {
		k.Answer.HeaderNames = slices.Sorted(maps.Keys(r.Answer.Header))
		k.Answer.BodyBytes = new(len(r.Answer.Body))
	}
	return k
}

func marshal(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e3) / 1e3 }
