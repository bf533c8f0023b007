// Package audit asks of any client how it tries again: does it wait, are its waits spread, does it heed Retry-After, does it
// stop, does it repeat what it must not? It runs the client against a server that fails on purpose, once for each scenario and
// all side by side, and judges what arrives there:
//
//	a := audit.Audit{Client: audit.HTTP(newClient)}
//	report, err := a.Run(ctx)
//
// Nothing is asked of the client but to make the calls that it is given: what it is written in does not matter. What is judged
// is what the server saw: times, headers and hashes of bodies.
//
// A [Verdict] is one of four. What a client has no occasion to do wrong is not applicable, and what cannot be told, on a machine
// too busy or within the patience given, is inconclusive and never a guess. Waits are judged by their ratios and by how they
// are spread over many runs; the page docs/decisions/audit.md states the tests.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	defaultPatience = 30 * time.Second
	defaultCalls    = 100
	mostPatience    = 1000 * time.Hour // of a patience: with a tenth on top it is a duration still
)

// A Call is what a client is asked to do.
type Call struct {
	Method string // GET or POST
	URL    string // http or https, on loopback
	Body   string // for a POST; sent as it is
	Key    string // to be sent as Idempotency-Key, if the client takes keys; empty: it gets none
	Token  string // to be sent as "Authorization: Bearer …", if the client takes credentials
	Calls  int    // how many such calls to make at once, as one program does; one or more
}

// A Client makes a call as the code under audit does, retries and all, and returns when it is over. It is called many times at
// once, and each time is to be like a program of its own: with connections, budgets and random numbers of its own. When ctx
// ends it must return; that is how the audit ends a client without a timeout.
//
// Its error matters little: what counts is what the server saw. An error that is errors.ErrUnsupported says that the client
// cannot make such a call, and rules that need one are not applicable.
type Client func(ctx context.Context, c Call) error

// An Audit says what to audit and how. Only Client is required.
type Audit struct {
	// Client is who is audited.
	Client Client

	// Patience is how long a run may take before it is ended. A client without a timeout uses up all of it, and a
	// tenth more for a timeout that is just as long. Zero or less means 30 seconds, more than 1000 hours is 1000 hours.
	Patience time.Duration

	// Calls is how many calls at once show what retries add up to in an outage. Zero or less means 100; fewer than
	// 20 cannot tell.
	Calls int

	// Rules are the ids of those to judge. None means all. Scenarios that no rule asks for are not run.
	Rules []string

	// Claims are the ids of rules that the client claims to keep to. It changes the verdict of "x-should-retry" alone, which
	// is not applicable to a client that does not claim it. None means no claims.
	Claims []string

	// Progress, if set, is told how many runs are over, of how many: at the start, then after each. It is called by one
	// goroutine at a time, and runs wait for it.
	Progress func(done, total int)

	listen func() (*places, error) // nil means loopback
}

// A Report is what an audit found.
type Report struct {
	Started  time.Time     // when the audit began
	Elapsed  time.Duration // what the audit took
	Slowest  time.Duration // what its longest run took
	Findings []Finding     // one for each rule that was judged, in the order of Rules
}

// A Finding is what an audit says of one rule.
type Finding struct {
	Rule
	Verdict  Verdict  // whether the client keeps to it
	Seen     string   // what decided it, in a sentence
	Evidence []string // the requests, a line each or several in one: times, headers, hashes; may be empty
}

// A Verdict says whether a client keeps to a rule.
type Verdict string

// The verdicts.
const (
	Pass          Verdict = "pass"
	Fail          Verdict = "fail"
	Inconclusive  Verdict = "inconclusive"   // cannot be told
	NotApplicable Verdict = "not applicable" // no occasion to break the rule
)

// Run audits the client. It returns an error, and no report, if that is not possible: a rule does not exist, the client cannot
// even make a call that is answered at once, or ctx ended, whose cause the error is then. A client that breaks rules is no error.
//
// An Audit may be run more than once. Audits at the same time disturb each other's waits, and more of their verdicts are
// inconclusive.
func (a *Audit) Run(ctx context.Context) (*Report, error) {
	if a.Client == nil {
		return nil, errors.New("audit: no client to audit")
	}
	selected, err := choose(a.Rules)
	if err != nil {
		return nil, err
	}
	if _, err := choose(a.Claims); err != nil {
		return nil, err
	}
	s, err := a.start()
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	defer s.stop()

	report := &Report{Started: time.Now()}
	if err := s.preflight(ctx); err != nil {
		return nil, err
	}
	seen, err := s.runAll(ctx, scenariosFor(selected))
	if err != nil {
		return nil, err
	}
	seen.claims = a.Claims
	for _, r := range selected {
		report.Findings = append(report.Findings, r.find(seen))
	}
	report.Slowest = seen.slowest()
	report.Elapsed = time.Since(report.Started)
	return report, nil
}

// String returns the finding in a line, and in more of them the evidence, and of a failure what to change.
func (f Finding) String() string {
	line := fmt.Sprintf("%s: %s: %s", f.ID, f.Verdict, f.Seen)
	if len(f.Evidence) > 0 {
		line += "\n\t" + strings.Join(f.Evidence, "\n\t")
	}
	if f.Verdict == Fail && f.Fix != "" {
		line += "\n\tfix: " + f.Fix
	}
	return line
}

func (a *Audit) patience() time.Duration {
	return min(cmp.Or(max(a.Patience, 0), defaultPatience), mostPatience)
}

func (a *Audit) calls() int { return cmp.Or(max(a.Calls, 0), defaultCalls) }
