package audit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

func TestRunSaysWhatItCannotDo(t *testing.T) {
	silent := func(context.Context, Call) error { return nil }
	broken := func(context.Context, Call) error { return errors.New("exec: no such program") }
	tests := map[string]struct {
		audit Audit
		want  string
	}{
		"no client":                   {Audit{}, "audit: no client to audit"},
		"a rule that does not exist":  {Audit{Client: silent, Rules: []string{"jitters"}}, `audit: no rule "jitters"; there are: retries-503, `},
		"a claim that does not exist": {Audit{Client: silent, Claims: []string{"speed"}}, `audit: no rule "speed"; there are: `},
		"a client that does nothing":  {Audit{Client: silent}, "audit: the client sent nothing to the address that it was given, and reported no error"},
		"a client that cannot start":  {Audit{Client: broken}, "audit: the client sent nothing when asked for a GET: exec: no such program"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			report, err := tt.audit.Run(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || report != nil {
				t.Errorf("Run() = %v, %v, want no report and an error that begins %q", report, err, tt.want)
			}
		})
	}
}

func TestRunSaysThatTheClientHangsWhenAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		stuck := func(ctx context.Context, c Call) error {
			faultless(m)(ctx, c)
			<-ctx.Done()
			return ctx.Err()
		}
		a := Audit{Client: stuck, Patience: 10 * time.Second, listen: m.places}
		_, err := a.Run(t.Context())
		if want := "audit: a GET that was answered at once was not over after 10s"; err == nil || err.Error() != want {
			t.Errorf("Run() = %v, want %s", err, want)
		}
	})
}

func TestRunEndsWhenItsCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("enough"))
		defer cancel()
		began := time.Now()
		a := Audit{Client: faultless(m), listen: m.places}
		report, err := a.Run(ctx)
		if report != nil || err == nil || err.Error() != "enough" {
			t.Errorf("Run() = %v, %v, want no report and the cause", report, err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Run() took %v, want 5s", took)
		}
	}) // which fails if anything of the audit is left behind
}

func TestProgressCountsUpToTheLastRun(t *testing.T) {
	var told []int
	var total int
	auditIn(t, Audit{Rules: []string{"final-status"}, Progress: func(done, of int) {
		told = append(told, done)
		total = of
	}}, faultless)
	if total != 7 || len(told) != 8 {
		t.Fatalf("progress told %v of %d, want 0 to 7 of 7", told, total)
	}
	for i, done := range told {
		if done != i {
			t.Errorf("progress told %v, want 0 to 7", told)
		}
	}
}

func TestScenariosThatNoRuleAsksForAreNotRun(t *testing.T) {
	var runs atomic.Int64
	auditIn(t, Audit{Rules: []string{"retries-429", "post-reset"}}, func(m *memory) Client {
		client := faultless(m)
		return func(ctx context.Context, c Call) error {
			runs.Add(1)
			return client(ctx, c)
		}
	})
	if got := runs.Load(); got != 4 { // one to see that the client works, one 429, two resets
		t.Errorf("the client ran %d times, want 4", got)
	}
}

func TestEveryRuleSaysWhyAndWhatToChange(t *testing.T) {
	known := map[string]bool{}
	for i := range scenarios {
		known[scenarios[i].name] = true
	}
	asked := map[string]bool{}
	for _, r := range rules {
		if r.ID == "" || r.Title == "" || r.Why == "" || r.Source == "" || r.Fix == "" || len(r.scenarios) == 0 {
			t.Errorf("rule %q: a text or its scenarios are missing: %+v", r.ID, r.Rule)
		}
		for _, name := range slices.Concat(r.scenarios, r.beside) {
			if asked[name] = true; !known[name] {
				t.Errorf("rule %s asks for scenario %q, which does not exist", r.ID, name)
			}
		}
	}
	for name := range known {
		if !asked[name] {
			t.Errorf("no rule asks for scenario %s", name)
		}
	}
}

func TestAFailureSaysWhatToChange(t *testing.T) {
	f := Finding{Rule: Rule{ID: "jitter", Fix: "draw each wait"}, Verdict: Fail, Seen: "all the same", Evidence: []string{"GET: 0s"}}
	if got, want := f.String(), "jitter: fail: all the same\n\tGET: 0s\n\tfix: draw each wait"; got != want {
		t.Errorf("a failure: got %q, want %q", got, want)
	}
	f.Verdict = Pass
	if got, want := f.String(), "jitter: pass: all the same\n\tGET: 0s"; got != want {
		t.Errorf("what is fine: got %q, want %q", got, want)
	}
}

func TestCallsOfOneProcessThatAreMadeOneByOneAreFoundOut(t *testing.T) {
	many := &run{call: Call{Calls: 100}, cut: true, arrivals: make([]flaky.Arrival, 76)}
	alone := &run{call: Call{Calls: 1}, arrivals: make([]flaky.Arrival, 4)}
	o := &observed{runs: map[string][]*run{"many": {many}, "503": {alone}}}
	if got := amplifies(o, []*run{many}); got.verdict != Inconclusive || !strings.Contains(got.seen, "made at once") {
		t.Errorf("76 requests of 100 calls: got %+v, want inconclusive and what to do", got)
	}
	many.arrivals = make([]flaky.Arrival, 101)
	if got := amplifies(o, []*run{many}); got.verdict != Inconclusive || strings.Contains(got.seen, "made at once") {
		t.Errorf("101 requests of 100 calls: got %+v, want inconclusive for want of time", got)
	}
}

func TestAClientOnRealSocketsIsJudgedTheSame(t *testing.T) {
	a := Audit{
		Client: HTTP(func() *http.Client { return &http.Client{Transport: &http.Transport{}} }),
		Rules:  []string{"retries-503", "retries-reset", "final-status", "post-503", "post-reset", "tls-final", "redirect-secrets"},
	}
	report, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := report.verdicts()
	for id, want := range map[string]Verdict{
		"retries-503": Fail, "retries-reset": Fail, "final-status": Pass, "post-503": Pass, "post-reset": Pass, "tls-final": Pass,
		"redirect-secrets": Fail, // net/http takes an Idempotency-Key along to another host
	} {
		if got[id] != want {
			t.Errorf("net/http: %v, want %s", report.finding(t, id), want)
		}
	}
}
