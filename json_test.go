package riprap_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestAPolicyReadsBackAsItWasWritten(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy riprap.Policy
		text   string
	}{
		{"the zero policy", riprap.Policy{}, `{}`},
		{"every figure", riprap.Policy{
			MaxAttempts: 3, Timeout: 90 * time.Second, AttemptTimeout: 800 * time.Millisecond, MinAttempt: 10 * time.Millisecond,
			MaxWait: time.Hour, Latency: &riprap.Latency{Factor: 2.5, Min: 20 * time.Millisecond},
			Backoff: riprap.Backoff{Base: 100 * time.Millisecond, Max: 20 * time.Second, Factor: 1.5, Jitter: riprap.Decorrelated},
			Budget:  &riprap.Budget{Ratio: 0.1, Reserve: 20, Window: time.Minute},
		}, `{"maxAttempts":3,"timeout":"1m30s","attemptTimeout":"800ms","minAttempt":"10ms",` +
			`"latency":{"factor":2.5,"min":"20ms"},"backoff":{"base":"100ms","max":"20s","factor":1.5,"jitter":"decorrelated"},"maxWait":"1h0m0s",` +
			`"budget":{"ratio":0.1,"reserve":20,"window":"1m0s"}}`},
		{"no limits", riprap.Policy{MaxAttempts: -1, Timeout: -1, AttemptTimeout: -time.Second, MaxWait: -1},
			`{"maxAttempts":-1,"timeout":"-1ns","attemptTimeout":"-1s","maxWait":"-1ns"}`},
		{"extremes", riprap.Policy{MaxAttempts: math.MinInt32, Timeout: math.MinInt64, MaxWait: math.MaxInt64},
			`{"maxAttempts":-2147483648,"timeout":"-2562047h47m16.854775808s","maxWait":"2562047h47m16.854775807s"}`},
		{"an unlimited budget", riprap.Policy{Budget: &riprap.Budget{Ratio: math.Inf(1)}}, `{"budget":{"ratio":"unlimited"}}`},
		{"a budget without a deposit or a reserve", riprap.Policy{Budget: &riprap.Budget{Ratio: -1, Reserve: -1}}, `{"budget":{"ratio":-1,"reserve":-1}}`},
		{"a budget by default", riprap.Policy{Budget: &riprap.Budget{}}, `{"budget":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := json.Marshal(tt.policy)
			if string(text) != tt.text || err != nil {
				t.Errorf("Marshal = %s, %v, want %s", text, err, tt.text)
			}
			var back riprap.Policy
			if err := json.Unmarshal([]byte(tt.text), &back); err != nil || !reflect.DeepEqual(back, tt.policy) {
				t.Errorf("Unmarshal(%s) = %+v, %v, want %+v", tt.text, back, err, tt.policy)
			}
		})
	}
}

func TestAPolicyInJSONHasOnlyFigures(t *testing.T) {
	p := riprap.Policy{
		Retryable: riprap.Transient, Trace: &riprap.Trace{}, Rand: func() float64 { return 0 },
		Budget: &riprap.Budget{Parent: &riprap.Budget{Reserve: 7}},
	}
	text, err := json.Marshal(p)
	if want := `{"budget":{}}`; string(text) != want || err != nil {
		t.Errorf("Marshal = %s, %v, want %s", text, err, want)
	}
}

func TestWhatIsNotInTheTextKeepsItsValue(t *testing.T) {
	budget := &riprap.Budget{Reserve: 7}
	given := riprap.Policy{
		MaxAttempts: 3, Timeout: time.Minute, MinAttempt: 5, MaxWait: time.Hour, Budget: budget,
		Backoff: riprap.Backoff{Base: time.Second, Max: time.Minute, Factor: 3, Jitter: riprap.Equal},
	}
	for _, tt := range []struct {
		text   string
		change func(*riprap.Policy)
	}{
		{`null`, func(*riprap.Policy) {}},
		{`{}`, func(*riprap.Policy) {}},
		{`{"timeout":null,"maxAttempts":null,"backoff":null,"budget":null,"maxWait":null}`, func(*riprap.Policy) {}},
		{`{"attemptTimeout":"1s"}`, func(p *riprap.Policy) { p.AttemptTimeout = time.Second }},
		{`{"maxAttempts":0,"timeout":"0"}`, func(p *riprap.Policy) { p.MaxAttempts, p.Timeout = 0, 0 }},
		{`{"backoff":{"jitter":"full"}}`, func(p *riprap.Policy) { p.Backoff.Jitter = riprap.Full }},
		{`{"budget":{"window":"1s"}}`, func(p *riprap.Policy) { p.Budget = &riprap.Budget{Window: time.Second} }},
		{`{"budget":{"ratio":null}}`, func(p *riprap.Policy) { p.Budget = &riprap.Budget{} }},
	} {
		got, want := given, given
		tt.change(&want)
		if err := json.Unmarshal([]byte(tt.text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Unmarshal(%s) = %+v, %v, want %+v", tt.text, got, err, want)
		}
		if budget.Reserve != 7 || budget.Window != 0 {
			t.Errorf("Unmarshal(%s) changed the budget that was there", tt.text)
		}
	}
}

func TestAPolicyThatIsWrongSaysWhereAndChangesNothing(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"maxAttemps":3}`, `unknown field "maxAttemps"`},
		{`{"backoff":{"basis":"1s"}}`, `unknown field "basis"`},
		{`{"budget":{"parent":{}}}`, `unknown field "parent"`},
		{`{"timeout":"5"}`, `missing unit in duration "5"`},
		{`{"timeout":"five seconds"}`, `invalid duration "five seconds"`},
		{`{"timeout":"9999999999h"}`, `invalid duration "9999999999h"`},
		{`{"timeout":5}`, `policy: timeout: want a duration as text, like "800ms", got number`},
		{`{"attemptTimeout":{}}`, `policy: attemptTimeout: want a duration as text, like "800ms", got object`},
		{`{"backoff":{"base":1}}`, `policy: backoff.base: want a duration as text, like "800ms", got number`},
		{`{"maxAttempts":"3"}`, `policy: maxAttempts: want int, got string`},
		{`{"maxAttempts":1.5}`, `policy: maxAttempts: want int, got number 1.5`},
		{`{"backoff":{"jitter":1}}`, `policy: backoff.jitter: want a name, got number`},
		{`{"backoff":[]}`, `policy: backoff: want an object, got array`},
		{`{"backoff":{"jitter":"half"}}`, `policy: jitter "half" is not full, equal, decorrelated or none`},
		{`{"backoff":{"factor":"2"}}`, `factor`},
		{`{"budget":{"ratio":"infinite"}}`, `a budget's ratio is a number or "unlimited"`},
		{`{"budget":{"ratio":1e999}}`, `a budget's ratio is a number or "unlimited"`},
		{`[]`, `policy: want an object, got array`},
		{`"1s"`, `policy: want an object, got string`},
	} {
		p := riprap.Policy{MaxAttempts: 7, Backoff: riprap.Backoff{Base: time.Second}}
		err := json.Unmarshal([]byte(tt.text), &p)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "riprap: policy: ") {
			t.Errorf("Unmarshal(%s) = %v, want an error of riprap's policy with %q in it", tt.text, err, tt.want)
		}
		if !reflect.DeepEqual(p, riprap.Policy{MaxAttempts: 7, Backoff: riprap.Backoff{Base: time.Second}}) {
			t.Errorf("Unmarshal(%s) fails and leaves %+v, want no change", tt.text, p)
		}
	}
}

func TestAPolicyWithoutAFormInJSONIsAnError(t *testing.T) {
	for name, p := range map[string]riprap.Policy{
		"an unknown jitter":  {Backoff: riprap.Backoff{Jitter: 99}},
		"an infinite factor": {Backoff: riprap.Backoff{Factor: math.Inf(1)}},
		"minus infinity":     {Budget: &riprap.Budget{Ratio: math.Inf(-1)}},
		"a ratio of NaN":     {Budget: &riprap.Budget{Ratio: math.NaN()}},
	} {
		if text, err := json.Marshal(p); err == nil {
			t.Errorf("%s: Marshal = %s, want an error", name, text)
		}
	}
}

func FuzzPolicyJSON(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `{"maxAttempts":3,"timeout":"1m30s","attemptTimeout":"-800ms","minAttempt":"1h2m3.000000004s"}`,
		`{"backoff":{"base":"1ns","max":"2562047h47m16.854775807s","factor":-0.0,"jitter":"equal"},"maxWait":"0"}`,
		`{"budget":{"ratio":"unlimited","reserve":-1,"window":"5m"}}`, `{"budget":{"ratio":5e-324}}`, `{"TIMEOUT":"1s"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, back riprap.Policy
		if json.Unmarshal(text, &p) != nil {
			return
		}
		once, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("Marshal of what Unmarshal(%s) gave: %v", text, err)
		}
		if err := json.Unmarshal(once, &back); err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("Unmarshal(%s) = %+v, %v, want %+v", once, back, err, p)
		}
		if twice, err := json.Marshal(back); err != nil || string(twice) != string(once) {
			t.Errorf("Marshal = %s, %v, want %s as before", twice, err, once)
		}
	})
}

func TestASnapshotReadsBackAsItWasWritten(t *testing.T) {
	s := riprap.LatencySnapshot{
		Count: 1200, P50: 12 * time.Millisecond, P95: 80 * time.Millisecond, P99: 121110528,
		TimedOut: 0.005, Bound: 363331584,
	}
	const want = `{"count":1200,"p50":"12ms","p95":"80ms","p99":"121.110528ms","timedOut":0.005,"bound":"363.331584ms"}`
	text, err := json.Marshal(s)
	if string(text) != want || err != nil {
		t.Errorf("Marshal = %s, %v, want %s", text, err, want)
	}
	var back riprap.LatencySnapshot
	if err := json.Unmarshal([]byte(want), &back); err != nil || back != s {
		t.Errorf("Unmarshal(%s) = %+v, %v, want %+v", want, back, err, s)
	}
}

func TestASnapshotThatCannotBeReadChangesNothing(t *testing.T) {
	for text, want := range map[string]string{
		`{"bound":"90ms","p50":12}`:   `p50: want a duration as text, like "800ms", got number`,
		`{"bound":"ninety"}`:          `time: invalid duration "ninety"`,
		`{"bound":"90ms","count":{}}`: `count: want int, got object`,
	} {
		s := riprap.LatencySnapshot{Bound: time.Second}
		err := json.Unmarshal([]byte(text), &s)
		if want := "riprap: snapshot of a latency: " + want; err == nil || err.Error() != want {
			t.Errorf("Unmarshal(%s) = %v, want %s", text, err, want)
		}
		if s != (riprap.LatencySnapshot{Bound: time.Second}) {
			t.Errorf("after Unmarshal(%s) the snapshot is %+v, want it as it was", text, s)
		}
	}
}
