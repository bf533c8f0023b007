package riprap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
)

// A policyJSON is the JSON form of a Policy. Durations are text as time.Duration writes them.
type policyJSON struct {
	MaxAttempts    int          `json:"maxAttempts,omitzero"`
	Timeout        duration     `json:"timeout,omitzero"`
	AttemptTimeout duration     `json:"attemptTimeout,omitzero"`
	MinAttempt     duration     `json:"minAttempt,omitzero"`
	Latency        *latencyJSON `json:"latency,omitempty"`
	Backoff        backoffJSON  `json:"backoff,omitzero"`
	MaxWait        duration     `json:"maxWait,omitzero"`
	Budget         *budgetJSON  `json:"budget,omitempty"`
}

type latencyJSON struct {
	Factor float64  `json:"factor,omitzero"`
	Min    duration `json:"min,omitzero"`
}

type backoffJSON struct {
	Base   duration `json:"base,omitzero"`
	Max    duration `json:"max,omitzero"`
	Factor float64  `json:"factor,omitzero"`
	Jitter Jitter   `json:"jitter,omitzero"`
}

type budgetJSON struct {
	Ratio   ratio    `json:"ratio,omitzero"`
	Reserve int      `json:"reserve,omitzero"`
	Window  duration `json:"window,omitzero"`
}

// form returns the JSON form of all figures but those of the Latency and the Budget.
func (p *Policy) form() policyJSON {
	return policyJSON{
		MaxAttempts:    p.MaxAttempts,
		Timeout:        duration(p.Timeout),
		AttemptTimeout: duration(p.AttemptTimeout),
		MinAttempt:     duration(p.MinAttempt),
		MaxWait:        duration(p.MaxWait),
		Backoff: backoffJSON{
			Base: duration(p.Backoff.Base), Max: duration(p.Backoff.Max),
			Factor: p.Backoff.Factor, Jitter: p.Backoff.Jitter,
		},
	}
}

// MarshalJSON writes the policy's figures, durations as text like "800ms", zero fields left out. What is not a figure
// is not in it: Retryable, Trace, Rand, the Parent and the present state of the Budget, and what the Latency has seen.
func (p Policy) MarshalJSON() ([]byte, error) {
	form := p.form()
	if l := p.Latency; l != nil {
		form.Latency = &latencyJSON{Factor: l.Factor, Min: duration(l.Min)}
	}
	if b := p.Budget; b != nil {
		form.Budget = &budgetJSON{Ratio: ratio(b.Ratio), Reserve: b.Reserve, Window: duration(b.Window)}
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads what MarshalJSON writes. Fields that are not in the text keep their values, a "latency" and a
// "budget" are new ones, and null changes nothing. A field that no policy has is an error.
func (p *Policy) UnmarshalJSON(text []byte) error {
	form := p.form()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = wrongType(wrong)
		}
		return fmt.Errorf("riprap: policy: %w", err)
	}
	p.MaxAttempts = form.MaxAttempts
	p.Timeout, p.AttemptTimeout = time.Duration(form.Timeout), time.Duration(form.AttemptTimeout)
	p.MinAttempt, p.MaxWait = time.Duration(form.MinAttempt), time.Duration(form.MaxWait)
	p.Backoff = Backoff{
		Base: time.Duration(form.Backoff.Base), Max: time.Duration(form.Backoff.Max),
		Factor: form.Backoff.Factor, Jitter: form.Backoff.Jitter,
	}
	if l := form.Latency; l != nil {
		p.Latency = &Latency{Factor: l.Factor, Min: time.Duration(l.Min)}
	}
	if b := form.Budget; b != nil {
		p.Budget = &Budget{Ratio: float64(b.Ratio), Reserve: b.Reserve, Window: time.Duration(b.Window)}
	}
	return nil
}

type snapshotJSON struct {
	Count    int      `json:"count"`
	P50      duration `json:"p50"`
	P95      duration `json:"p95"`
	P99      duration `json:"p99"`
	TimedOut float64  `json:"timedOut"`
	Bound    duration `json:"bound"`
}

// MarshalJSON writes durations as text, as a Policy does.
func (s LatencySnapshot) MarshalJSON() ([]byte, error) {
	return json.Marshal(snapshotJSON{
		Count: s.Count, P50: duration(s.P50), P95: duration(s.P95), P99: duration(s.P99),
		TimedOut: s.TimedOut, Bound: duration(s.Bound),
	})
}

// UnmarshalJSON reads what MarshalJSON writes. An error leaves s as it was.
func (s *LatencySnapshot) UnmarshalJSON(text []byte) error {
	var form snapshotJSON
	if err := json.Unmarshal(text, &form); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = wrongType(wrong)
		}
		return fmt.Errorf("riprap: snapshot of a latency: %w", err)
	}
	*s = LatencySnapshot{
		Count: form.Count, P50: time.Duration(form.P50), P95: time.Duration(form.P95), P99: time.Duration(form.P99),
		TimedOut: form.TimedOut, Bound: time.Duration(form.Bound),
	}
	return nil
}

// wrongType says what is wrong in the words of the text: whoever wrote it does not know our types.
func wrongType(err *json.UnmarshalTypeError) error {
	where, want := "", err.Type.String()
	if err.Field != "" {
		where = err.Field + ": "
	}
	switch {
	case err.Type.Kind() == reflect.Struct:
		want = "an object"
	case err.Type == reflect.TypeFor[duration]():
		want = `a duration as text, like "800ms"`
	case err.Type == reflect.TypeFor[Jitter]():
		want = "a name"
	}
	return fmt.Errorf("%swant %s, got %s", where, want, err.Value)
}

// A duration is written as text.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

// A ratio may be infinite, for which JSON has no number.
type ratio float64

func (r ratio) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(r), 1) {
		return []byte(`"unlimited"`), nil
	}
	return json.Marshal(float64(r))
}

func (r *ratio) UnmarshalJSON(text []byte) error {
	if string(text) == `"unlimited"` {
		*r = ratio(math.Inf(1))
		return nil
	}
	if err := json.Unmarshal(text, (*float64)(r)); err != nil {
		return errors.New(`a budget's ratio is a number or "unlimited"`)
	}
	return nil
}
