package audit

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

// came is a run whose requests came at those times, each answered at once.
func came(at ...time.Duration) *run {
	r := &run{scenario: &scenario{name: "made up"}, call: Call{Method: get, Calls: 1}, began: time.Unix(0, 0)}
	for i, d := range at {
		t := r.began.Add(d)
		r.arrivals = append(r.arrivals, flaky.Arrival{Time: t, Ended: t, Method: post, Conn: fmt.Sprint(i), Whole: true, Hash: "h", Header: map[string][]string{}})
		r.took = d
	}
	return r
}

// every makes a run of n requests, one every d.
func every(d time.Duration, n int) *run {
	var at []time.Duration
	for i := range n {
		at = append(at, time.Duration(i)*d)
	}
	return came(at...)
}

// cut is a run that the audit ended after 33 seconds.
func cut(r *run) *run {
	r.cut, r.took = true, 33*time.Second
	return r
}

func calls(n int, r *run) *run {
	r.call.Calls = n
	return r
}

// with gives each request of a run the header.
func with(name, value string, r *run) *run {
	for _, a := range r.arrivals {
		a.Header[name] = []string{value}
	}
	return r
}

// left is a run whose last request was left by the client after so long.
func left(after time.Duration, r *run) *run {
	last := &r.arrivals[len(r.arrivals)-1]
	last.Ended, last.Left = last.Time.Add(after), true
	r.took = last.Ended.Sub(r.began)
	return r
}

func TestVerdictsBetweenPassAndFail(t *testing.T) {
	const ms = time.Millisecond
	again := came(0, time.Second)
	own := slices.Repeat([]*run{again}, spreadRuns)
	tests := map[string]struct {
		rule string
		runs map[string][]*run
		want Verdict
	}{
		"one wait cannot grow":                   {"backoff-grows", map[string][]*run{"503": slices.Repeat([]*run{again}, 32)}, NotApplicable},
		"few runs tell nothing of growth":        {"backoff-grows", map[string][]*run{"503": slices.Repeat([]*run{came(0, time.Second, 3*time.Second)}, 7)}, Inconclusive},
		"waits a fifth longer":                   {"backoff-grows", map[string][]*run{"503": slices.Repeat([]*run{came(0, time.Second, 2200*ms)}, 32)}, Inconclusive},
		"short waits that grow":                  {"backoff-grows", map[string][]*run{"503": slices.Repeat([]*run{came(0, 20*ms, 60*ms)}, 32)}, Inconclusive},
		"one wait is no cap":                     {"jitter-at-cap", map[string][]*run{"503": slices.Repeat([]*run{again}, 32)}, NotApplicable},
		"too much before patience ended":         {"amplification", map[string][]*run{"many": {cut(calls(100, every(ms, 160)))}, "503": {again}}, Fail},
		"not too much yet when patience ended":   {"amplification", map[string][]*run{"many": {cut(calls(100, every(ms, 120)))}, "503": {again}}, Inconclusive},
		"too few calls":                          {"amplification", map[string][]*run{"many": {calls(19, every(ms, 19))}, "503": {again}}, Inconclusive},
		"own waits as long as asked":             {"retry-after-seconds", map[string][]*run{"wait-seconds": {every(4*time.Second, 2)}, "503": {every(4*time.Second, 2)}}, Inconclusive},
		"a date in whole seconds":                {"retry-after-date", map[string][]*run{"wait-date": {every(2100*ms, 2)}, "503": {again}}, Pass},
		"before the second of the date":          {"retry-after-date", map[string][]*run{"wait-date": {every(1900*ms, 2)}, "503": {again}}, Fail},
		"stops at a zero":                        {"retry-after-zero", map[string][]*run{"wait-zero": {came(0)}, "503": {again}}, Pass},
		"never back with the header":             {"retry-after-not-faster", map[string][]*run{"wait-zero": {came(0), came(0)}, "503": own}, NotApplicable},
		"back with the header, and as slow":      {"retry-after-not-faster", map[string][]*run{"wait-zero": {again}, "wait-past": {came(0)}, "503": own}, Pass},
		"six waits and all of them shorter":      {"retry-after-not-faster", map[string][]*run{"wait-zero": slices.Repeat([]*run{every(700*ms, 2)}, 6), "503": own}, Fail},
		"five waits are too few":                 {"retry-after-not-faster", map[string][]*run{"wait-zero": slices.Repeat([]*run{every(700*ms, 2)}, 5), "503": own}, Inconclusive},
		"one wait of five not shorter":           {"retry-after-not-faster", map[string][]*run{"wait-zero": append(slices.Repeat([]*run{every(700*ms, 2)}, 4), again), "503": own}, Pass},
		"few waits without the header":           {"retry-after-not-faster", map[string][]*run{"wait-zero": slices.Repeat([]*run{every(700*ms, 2)}, 6), "503": own[:26]}, Inconclusive},
		"unclear first, shorter then":            {"retry-after-not-faster", map[string][]*run{"wait-seconds": {every(700*ms, 2)}, "wait-zero": slices.Repeat([]*run{every(700*ms, 2)}, 6), "503": own}, Fail},
		"waits too short to tell":                {"retry-after-zero", map[string][]*run{"wait-zero": {every(30*ms, 4)}, "503": {again}}, Inconclusive},
		"some attempts when patience ended":      {"bounded-attempts", map[string][]*run{"503": {cut(every(5*time.Second, 6))}}, Inconclusive},
		"too many attempts when patience ended":  {"bounded-attempts", map[string][]*run{"503": {cut(every(time.Second, 21))}}, Fail},
		"left some times":                        {"timeout-hang", map[string][]*run{"hang": {cut(every(5*time.Second, 6))}}, Inconclusive},
		"left and tried again for ever":          {"timeout-drip", map[string][]*run{"drip": {cut(every(time.Second, 21))}}, Fail},
		"a certificate that it takes":            {"tls-final", map[string][]*run{"tls": {came(0)}}, NotApplicable},
		"a key is sent once":                     {"key-same", map[string][]*run{"keyed-503": {came(0)}}, NotApplicable},
		"two keys on each send":                  {"key-same", map[string][]*run{"keyed-503": {twoKeys(every(time.Second, 2))}}, Fail},
		"one operation":                          {"key-new", map[string][]*run{"post-503": {with("Idempotency-Key", "#1", came(0))}}, Inconclusive},
		"a body is sent once":                    {"body-whole", map[string][]*run{"post-503": {came(0)}}, NotApplicable},
		"a POST that had not given up":           {"post-timeout", map[string][]*run{"post-hang": {cut(came(0))}}, Inconclusive},
		"some attempts share a connection":       {"connections-reused", map[string][]*run{"503": {every(time.Second, 2), oneConnection(every(time.Second, 2))}}, Inconclusive},
		"a redirect that it does not follow":     {"redirect-secrets", map[string][]*run{"redirect": {with("Authorization", "#1", came(0))}}, Pass},
		"neither credentials nor a key":          {"redirect-secrets", map[string][]*run{"redirect": {came(0)}}, NotApplicable},
		"a deadline later than patience":         {"deadline-shrinks", map[string][]*run{"hang": {with("Grpc-Timeout", "90S", cut(left(33*time.Second, came(0))))}}, Pass},
		"a limit for each attempt":               {"deadline-shrinks", map[string][]*run{"503": {deadlines("7998", "7999", "8000", "7997")}}, Pass},
		"a deadline that grows":                  {"deadline-shrinks", map[string][]*run{"503": {deadlines("7998", "8600")}}, Fail},
		"a deadline that nobody can read":        {"deadline-shrinks", map[string][]*run{"503": {deadlines("7998", "soon")}}, Fail},
		"two deadlines at once":                  {"deadline-shrinks", map[string][]*run{"503": {twoDeadlines(deadlines("7998", "7000"))}}, Fail},
		"a deadline a little later than it left": {"deadline-shrinks", map[string][]*run{"hang": {with("Grpc-Timeout", "8S", left(5001*ms, came(0)))}}, Pass},
		"a deadline that is later than that":     {"deadline-shrinks", map[string][]*run{"hang": {with("Grpc-Timeout", "8S", left(4999*ms, came(0)))}}, Fail},
		"a deadline a little longer":             {"deadline-shrinks", map[string][]*run{"503": {deadlines("8000", "8450")}}, Pass},
		"a deadline longer than that":            {"deadline-shrinks", map[string][]*run{"503": {deadlines("8000", "8451")}}, Fail},
		"a deadline later than it stays":         {"deadline-shrinks", map[string][]*run{"hang": {with("Grpc-Timeout", "90S", left(33*time.Second, came(0)))}}, Fail},
		"a deadline, and the answer still to be": {"deadline-shrinks", map[string][]*run{"hang": {unfinished(with("Grpc-Timeout", "90S", left(9*time.Second, came(0))))}}, Fail},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := &observed{runs: tt.runs, patience: defaultPatience}
			i := slices.IndexFunc(rules, func(r rule) bool { return r.ID == tt.rule })
			if f := rules[i].find(o); f.Verdict != tt.want {
				t.Errorf("%s: %v, want %s", name, f, tt.want)
			}
		})
	}
}

func TestAClientThatIsNotFasterIsToldWhereItCameBack(t *testing.T) {
	again := came(0, time.Second)
	o := &observed{runs: map[string][]*run{"wait-zero": {again, came(0)}, "wait-past": {again}, "wait-day": {came(0)}, "503": slices.Repeat([]*run{again}, spreadRuns)}}
	want := "without the header its first wait was 1s or longer, and with it no shorter, in 2 scenarios in which it came back"
	if got := notFaster(o, nil); got.verdict != Pass || got.seen != want {
		t.Errorf("got %+v, want pass: %s", got, want)
	}
}

func TestTheChanceThatSomeWaitsAreAllShorterThanOthers(t *testing.T) {
	for _, tt := range []struct {
		k, n int
		want float64
	}{{0, 32, 1}, {1, 1, 1. / 2}, {2, 2, 1. / 6}, {5, 32, 1. / 435_897}, {6, 32, 1. / 2_760_681}} {
		if got := allBelow(tt.k, tt.n); math.Abs(got/tt.want-1) > 1e-9 {
			t.Errorf("%d below %d: got %g, want %g", tt.k, tt.n, got, tt.want)
		}
	}
}

func TestABusyMachineMakesWaitsInconclusive(t *testing.T) {
	always := lateness{{to: time.Unix(1<<40, 0), by: time.Minute}}
	hang := with(http.CanonicalHeaderKey("grpc-timeout"), "90S", left(9*time.Second, came(0)))
	for id, runs := range map[string]map[string][]*run{
		"backoff-grows":    {"503": slices.Repeat([]*run{came(0, time.Second, 3*time.Second)}, 32)},
		"retry-after-zero": {"wait-zero": {every(time.Second, 3)}, "503": {every(time.Second, 3)}},
		"deadline-shrinks": {"hang": {hang}},
	} {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.ID == id })
		if f := rules[i].find(&observed{runs: runs, patience: defaultPatience, late: always}); f.Verdict != Inconclusive {
			t.Errorf("on a busy machine: %v, want inconclusive", f)
		}
	}
}

// oneConnection puts all requests of a run on one connection.
func oneConnection(r *run) *run {
	for i := range r.arrivals {
		r.arrivals[i].Conn = "one"
	}
	return r
}

// deadlines is a run that sends them one after the other.
func deadlines(milliseconds ...string) *run {
	r := every(time.Second, len(milliseconds))
	for i, ms := range milliseconds {
		r.arrivals[i].Header["X-Request-Timeout-Ms"] = []string{ms}
	}
	return r
}

// twoDeadlines is a run whose last request carries its deadline twice.
func twoDeadlines(r *run) *run {
	header := r.arrivals[len(r.arrivals)-1].Header
	header["X-Request-Timeout-Ms"] = slices.Repeat(header["X-Request-Timeout-Ms"], 2)
	return r
}

// twoKeys gives each request of a run the same two keys.
func twoKeys(r *run) *run {
	for _, a := range r.arrivals {
		a.Header["Idempotency-Key"] = []string{"#1", "#2"}
	}
	return r
}

// unfinished is a run whose last answer the server has not given up yet.
func unfinished(r *run) *run {
	last := &r.arrivals[len(r.arrivals)-1]
	last.Ended, last.Left = time.Time{}, false
	return r
}
