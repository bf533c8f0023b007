package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

// parsed is a file that must be read without an error.
func parsed(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("riprap.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse of\n%s\n%v", text, err)
	}
	return f
}

func TestAFileIsReadIntoAChain(t *testing.T) {
	const text = `# services in the order of the file
maxCalls: 12
services:
  gateway:
    limit: 10s
    calls:
      - to: payments
        p99: 1.2s
        idempotent: true
        keyed: false
        policy:
          maxAttempts: 3
          timeout: 7s
          attemptTimeout: "2s"
          minAttempt: 20ms
          latency: {factor: 2.5, min: 5ms}
          backoff: {base: 100ms, max: 1s, factor: 1.5, jitter: equal}
          maxWait: 1m30s
          budget: {ratio: 0.1, reserve: 20, window: 30s}
      - {to: database, keyed: true}
  payments: {limit: 4s, lease: 1m, retention: 24h}
  database:
`
	want := chain.Chain{MaxCalls: 12, Services: []chain.Service{
		{Name: "gateway", Limit: 10 * time.Second, Calls: []chain.Call{
			{To: "payments", P99: 1200 * time.Millisecond, Idempotent: true, Policy: riprap.Policy{
				MaxAttempts: 3, Timeout: 7 * time.Second, AttemptTimeout: 2 * time.Second, MinAttempt: 20 * time.Millisecond,
				Latency: &riprap.Latency{Factor: 2.5, Min: 5 * time.Millisecond},
				Backoff: riprap.Backoff{Base: 100 * time.Millisecond, Max: time.Second, Factor: 1.5, Jitter: riprap.Equal},
				MaxWait: 90 * time.Second, Budget: &riprap.Budget{Ratio: 0.1, Reserve: 20, Window: 30 * time.Second},
			}},
			{To: "database", Keyed: true},
		}},
		{Name: "payments", Limit: 4 * time.Second, Lease: time.Minute, Retention: 24 * time.Hour},
		{Name: "database"},
	}}
	if got := parsed(t, text).Chain; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestNoneIsNoLimit(t *testing.T) {
	f := parsed(t, `
maxCalls: none
services:
  a:
    limit: none
    calls:
      - to: b
        policy: {maxAttempts: none, timeout: none, attemptTimeout: none, minAttempt: none, maxWait: none, latency: {factor: none, min: none}, budget: {ratio: none, reserve: none}}
      - {to: b, policy: {budget: none}}
      - {to: b, policy: {budget: {ratio: unlimited}}}
      - {to: b, policy: {budget: {}}}
`)
	s := f.Chain.Services[0]
	p := s.Calls[0].Policy
	for name, got := range map[string]bool{
		"maxCalls": f.Chain.MaxCalls < 0, "maxAttempts": p.MaxAttempts < 0, "timeout": p.Timeout < 0, "attemptTimeout": p.AttemptTimeout < 0,
		"minAttempt": p.MinAttempt < 0, "maxWait": p.MaxWait < 0, "ratio": p.Budget.Ratio < 0, "reserve": p.Budget.Reserve < 0,
		"latency": p.Latency.Factor < 0 && p.Latency.Min < 0,
	} {
		if !got {
			t.Errorf("%s: none is not below zero", name)
		}
	}
	if s.Limit != 0 {
		t.Errorf("limit: none is %v, want 0, which is none for a service", s.Limit)
	}
	if b := s.Calls[1].Policy.Budget; b != nil {
		t.Errorf("budget: none is %+v, want none", b)
	}
	if b := s.Calls[2].Policy.Budget; b == nil || !math.IsInf(b.Ratio, 1) {
		t.Errorf("ratio: unlimited is %+v, want an infinite ratio", b)
	}
	if b := s.Calls[3].Policy.Budget; b == nil || b.Ratio != 0 {
		t.Errorf("budget: {} is %+v, want the default one", b)
	}
}

// fill sets every exported field below v that is a figure, to one that differs from its zero value.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(int64(1500 * time.Millisecond))
		return
	case riprap.Jitter:
		v.SetInt(int64(riprap.Decorrelated))
		return
	case *riprap.Trace, riprap.LatencySnapshot: // no figures of a policy
		return
	}
	switch v.Kind() {
	case reflect.Int:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Parent" {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	}
}

func TestAPolicyHasTheKeysOfItsJSONForm(t *testing.T) {
	var p riprap.Policy
	fill(reflect.ValueOf(&p).Elem())
	want, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(want), ":"); n < 16 {
		t.Fatalf("the JSON form has %d keys, want all of a policy with all figures: %s", n, want)
	}
	f := parsed(t, "services: {a: {calls: [{to: b, policy: "+string(want)+"}]}}")
	got, err := json.Marshal(f.Chain.Services[0].Calls[0].Policy)
	if err != nil || string(got) != string(want) {
		t.Errorf("the policy\n%s\nis read as\n%s (%v)", want, got, err)
	}
}

func TestAPolicyCanBeShared(t *testing.T) {
	f := parsed(t, `
x-policies:
  once: &once {maxAttempts: 1, timeout: 2s}
  wide: &wide {timeout: 9s, maxWait: 3s}
services:
  a: &a
    limit: 5s
    calls:
      - {to: c, policy: *once}
      - to: c
        policy:
          <<: *once
          timeout: 3s
      - {to: c, policy: {<<: [*once, *wide]}}
  b: *a
  c:
    <<: *a
    limit: 1s
`)
	var got []string
	for _, s := range f.Chain.Services {
		for _, c := range s.Calls {
			p := c.Policy
			got = append(got, fmt.Sprint(s.Name, " ", s.Limit, " ", p.MaxAttempts, " ", p.Timeout, " ", p.MaxWait))
		}
	}
	want := []string{
		"a 5s 1 2s 0s", "a 5s 1 3s 0s", "a 5s 1 2s 3s",
		"b 5s 1 2s 0s", "b 5s 1 3s 0s", "b 5s 1 2s 3s",
		"c 1s 1 2s 0s", "c 1s 1 3s 0s", "c 1s 1 2s 3s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFigureIsFoundWhereItIsWritten(t *testing.T) {
	f := parsed(t, `x-shared: &shared
  jitter: none # é
services:
  a.b:
    limit: &limit 5s
    calls:
      - idempotent: true
        to: "c"
        policy: {timeout: 3s, backoff: {<<: *shared, base: 1s}}
      - to: c
  c: {limit: *limit}
`)
	tests := []struct {
		path   string
		line   int
		column int
		marked string
	}{
		{"services/a.b/limit", 5, 19, "5s"},
		{"services/a.b/calls/0/policy/timeout", 9, 27, "3s"},
		{"services/a.b/calls/0/policy/backoff/base", 9, 60, "1s"},
		{"services/a.b/calls/0/policy/backoff/jitter", 2, 11, "none"}, // in the anchor
		{"services/a.b/calls/0/policy/budget", 9, 9, "policy"},        // left out
		{"services/a.b/calls/0/to", 8, 13, `"c"`},
		{"services/a.b/calls/0", 8, 13, `"c"`},
		{"services/a.b/calls/1/policy/timeout", 10, 13, "c"},
		{"services/c/limit", 5, 19, "5s"}, // where the alias leads
		{"services/c/lease", 11, 3, "c"},
		{"services/nobody/limit", 3, 1, "services"},
		{"maxCalls", 1, 1, "x"},
	}
	for _, tt := range tests {
		got := f.Place(strings.Split(tt.path, "/")...)
		excerpt := f.Excerpt(got, 80)
		if got.Line != tt.line || got.Column != tt.column || marked(excerpt) != tt.marked {
			t.Errorf("%s: got %d:%d and %q, want %d:%d and %q in\n%s", tt.path, got.Line, got.Column, marked(excerpt),
				tt.line, tt.column, tt.marked, excerpt)
		}
	}
}

// marked is the text above the marks of an excerpt.
func marked(excerpt string) string {
	line, marks, _ := strings.Cut(excerpt, "\n")
	marks = strings.TrimRight(marks, "\n")
	from := strings.Index(marks, "^")
	if from < 0 || len(marks) > len([]rune(line)) {
		return ""
	}
	return string([]rune(line)[from:len(marks)])
}
