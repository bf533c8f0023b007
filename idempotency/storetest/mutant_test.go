package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// mutants are the ways in which the model can be broken, each with the checks that must see it.
var mutants = []struct {
	bug    string
	seenBy []string
}{
	{"nothing is won", []string{"a new key is won"}},
	{"a generation is zero", []string{"a new key is won"}},
	{"held keys are won", []string{"a key that is held is in flight", "a live lease holds the key after the retention", "a renewed lease is live again"}},
	{"Renew begins the run anew", []string{"the age of a run counts from its claim and not from its renewal"}},
	{"IDs are cut", []string{"keys know nothing of each other"}},
	{"fingerprints are cut", []string{"fingerprints of 1 to 64 bytes are compared to the last bit"}},
	{"a key has no fingerprint", []string{
		"fingerprints of 1 to 64 bytes are compared to the last bit", "a mismatch never steals", "another request is a mismatch, whatever the state",
		"one of many requests at once wins a key, and the others are mismatches", "a tombstone has a status and nothing else",
	}},
	{"an operation has 100 bytes", []string{"an operation may have 255 bytes"}},
	{"a mismatch is looked for too late", []string{"another request is a mismatch, whatever the state"}},
	{"a mismatch is looked for before the retention", []string{
		"a key whose retention is over is new, for another request too", "a run that is dead and may run again leaves a new key after its retention",
		"a retention ends by itself",
	}},
	{"a mismatch steals", []string{"a mismatch never steals"}},
	{"answers are kept for ever", []string{
		"a key whose retention is over is new, for another request too", "a retention ends by itself", "an answer is gone with its retention",
		"one of many claims at once wins a key whose retention is over", "an answer of an operator is kept for its retention",
	}},
	{"a dead run is never over", []string{
		"a run that is dead and may run again leaves a new key after its retention", "many reapers and claims at once lose nothing",
		"the shortest lease and retention are over",
	}},
	{"a run that must not run again is over", []string{
		"a run that must not run again is unknown for ever", "the reaper deletes what nobody needs, and never what is live or unknown",
	}},
	{"a retention ends a live lease", []string{
		"a live lease holds the key after the retention", "the reaper deletes what nobody needs, and never what is live or unknown",
	}},
	{"a lease is for ever", []string{"a lease that is over is stolen only if both claims say so", "a lease ends by itself", "a renewal counts from when it is made"}},
	{"nothing is stolen", []string{
		"a lease that is over is stolen only if both claims say so", "a run that was overtaken is fenced off", "one of many claims at once steals a key",
	}},
	{"everything is stolen", []string{"a lease that is over is stolen only if both claims say so", "a claim that is not won changes nothing"}},
	{"the thief decides", []string{"a lease that is over is stolen only if both claims say so", "a claim that is not won changes nothing"}},
	{"the robbed one decides", []string{"a lease that is over is stolen only if both claims say so"}},
	{"a theft keeps the generation", []string{"a lease that is over is stolen only if both claims say so"}},
	{"whoever asks holds the key", []string{
		"a claim that is not won changes nothing", "a mismatch never steals", "a run that must not run again is unknown for ever",
	}},

	{"there is no fence", []string{
		"a run that was overtaken is fenced off", "a release does not make an old ticket good again", "owner and generation fence together",
		"a key whose retention is over is new, for another request too", "a key resolved without an answer is free",
		"a run that ends and a claim that steals do not both succeed",
	}},
	{"the generation fences alone", []string{"a release does not make an old ticket good again", "owner and generation fence together"}},
	{"the owner fences alone", []string{"owner and generation fence together"}},
	{"a lease that is over is not held", []string{
		"a run whose lease is over holds the key until somebody takes it", "a mismatch never steals", "a fault at any step is cured by asking again",
	}},
	{"Complete after Suspend", []string{"a suspended key is unknown until it is resolved"}},
	{"Complete again is fenced", []string{"to complete again is no error and changes nothing", "a fault at any step is cured by asking again"}},
	{"Complete again overwrites", []string{"to complete again is no error and changes nothing"}},
	{"Complete does nothing", []string{"a completed key replays its answer and is held by nobody"}},
	{"Renew after Complete", []string{"a completed key replays its answer and is held by nobody"}},
	{"Release after Complete", []string{"a completed key replays its answer and is held by nobody"}},
	{"Suspend after Complete", []string{"a completed key replays its answer and is held by nobody"}},
	{"Renew after Suspend", []string{"a suspended key is unknown until it is resolved"}},
	{"Release after Suspend", []string{"a suspended key is unknown until it is resolved"}},
	{"Release does nothing", []string{"a released key is new", "a release does not make an old ticket good again", "Show knows no key that is not there"}},
	{"Release again is no error", []string{"a released key is new"}},
	{"Suspend does nothing", []string{"a suspended key is unknown until it is resolved"}},
	{"Suspend again is fenced", []string{"a suspended key is unknown until it is resolved", "a fault at any step is cured by asking again"}},
	{"a suspended key is free after its retention", []string{"a suspended key is unknown until it is resolved"}},
	{"Renew does nothing", []string{"a renewed lease is live again", "a renewal counts from when it is made"}},
	{"Renew adds to the lease", []string{"a renewed lease is live again", "a renewal counts from when it is made"}},
	{"Renew keeps the longer lease", []string{"a renewed lease is live again", "a renewal counts from when it is made"}},
	{"Renew cuts the retention", []string{"a renewed lease is live again", "a renewal keeps the record for as long as the lease"}},
	{"Renew leaves the retention", []string{"a renewal keeps the record for as long as the lease"}},
	{"an answer has the retention of its claim", []string{"the retention of an answer counts from Complete", "a retention ends by itself"}},
	{"no duration is for ever", []string{"a lease or retention of zero is over"}},
	{"the longest duration overflows", []string{"the longest lease and retention are never over"}},
	{"the shortest duration overflows", []string{"the shortest lease and retention are over"}},

	{"bodies are UTF-8", []string{"an answer is replayed to the byte", "a large answer is replayed to the byte", "a key resolved with an answer replays it"}},
	{"bodies end with the last byte that is not zero", []string{"an answer is replayed to the byte"}},
	{"bodies are JSON", []string{"an answer is replayed to the byte"}},
	{"bodies are cut", []string{"a large answer is replayed to the byte"}},
	{"header values are UTF-8", []string{"an answer is replayed to the byte", "Show has the answer, and List its status alone"}},
	{"header values are cut", []string{"an answer is replayed to the byte"}},
	{"a field has one value", []string{"an answer is replayed to the byte"}},
	{"empty fields are left out", []string{"an answer is replayed to the byte"}},
	{"names are made canonical", []string{"an answer is replayed to the byte"}},
	{"a status is one of HTTP's", []string{"an answer is replayed to the byte"}},
	{"tombstones are answers", []string{"a tombstone has a status and nothing else"}},
	{"tombstones have no status", []string{"a tombstone has a status and nothing else"}},
	{"an old answer shines through", []string{"an answer is gone with its retention"}},
	{"a fingerprint is shared", []string{"what is kept does not change with what was given"}},
	{"an answer is shared on its way in", []string{"what is kept does not change with what was given"}},
	{"an answer is shared on its way out", []string{"what is kept does not change with what was given"}},

	{"looks up, then creates", []string{
		"one of many claims at once wins a new key", "one of a thousand claims at once wins a new key", "one of many operations holds its key, others come and go",
		"one of many requests at once wins a key, and the others are mismatches",
	}},
	{"looks up, then steals", []string{
		"one of many claims at once steals a key", "one of many claims at once wins a key whose retention is over",
		"a run that ends and a claim that steals do not both succeed",
	}},
	{"the reaper looks up, then deletes", []string{"many reapers and claims at once lose nothing"}},
	{"Resolve looks up, then changes", []string{"a key that is resolved and completed at once has one end"}},
	{"contexts are ignored", []string{"a context that ended before gives an error and changes nothing", "operators change nothing with an ended context"}},
	{"Claim looks at the context too late", []string{"a context that ended before gives an error and changes nothing"}},
	{"Complete looks at the context too late", []string{"a context that ended before gives an error and changes nothing"}},
	{"Release looks at the context too late", []string{"a context that ended before gives an error and changes nothing"}},
	{"Suspend looks at the context too late", []string{"a context that ended before gives an error and changes nothing"}},
	{"a cancelled claim has no owner", []string{"a claim that is cancelled midway is made or not made"}},
	{"a cancelled completion has no answer", []string{"a completion that is cancelled midway is done or not done"}},

	{"List has no order", []string{"List has each record once, page by page"}},
	{"List knows no limit", []string{"List has each record once, page by page"}},
	{"List without a limit has 50", []string{"List has each record once, page by page"}},
	{"List skips a record between pages", []string{"List has each record once, page by page", "List finds what is stuck"}},
	{"List has the last record again", []string{"List has each record once, page by page"}},
	{"List has whole answers", []string{"Show has the answer, and List its status alone"}},
	{"everything is stuck", []string{"List finds what is stuck", "what is live or completed is not to be resolved"}},
	{"what runs again is stuck", []string{"List finds what is stuck"}},
	{"nothing is stuck but what is marked", []string{
		"List finds what is stuck", "a key resolved with an answer replays it", "a key resolved without an answer is free",
	}},
	{"a live key is stuck after its retention", []string{"List finds what is stuck", "what is live or completed is not to be resolved"}},
	{"records have no operation", []string{"records say what is known"}},
	{"records have no beginning", []string{"records say what is known"}},
	{"records have no lease", []string{"records say what is known"}},
	{"records have no retention", []string{"records say what is known"}},
	{"Show finds everything", []string{"Show knows no key that is not there"}},
	{"Show has no body", []string{"Show has the answer, and List its status alone"}},
	{"Resolve does nothing", []string{"a key resolved with an answer replays it", "a key resolved without an answer is free"}},
	{"Resolve without an answer marks the key", []string{"a key resolved without an answer is free"}},
	{"Resolve leaves the ticket good", []string{"a key resolved with an answer replays it"}},
	{"Resolve ends a live run", []string{"what is live or completed is not to be resolved"}},
	{"Resolve of no key is no error", []string{"what is live or completed is not to be resolved"}},
	{"Resolve keeps an answer for ever", []string{"an answer of an operator is kept for its retention"}},
	{"the reaper deletes what is unknown", []string{"the reaper deletes what nobody needs, and never what is live or unknown"}},
	{"the reaper deletes what may have had effects", []string{"the reaper deletes what nobody needs, and never what is live or unknown"}},
	{"the reaper deletes what is live", []string{"the reaper deletes what nobody needs, and never what is live or unknown"}},
	{"the reaper deletes what can be stolen", []string{"the reaper deletes what nobody needs, and never what is live or unknown"}},
	{"the reaper deletes nothing", []string{
		"the reaper deletes what nobody needs, and never what is live or unknown", "the reaper deletes no more than it is told",
	}},
	{"the reaper knows no limit", []string{"the reaper deletes no more than it is told"}},
}

func TestAPlainStorePassesTheSuite(t *testing.T) {
	Run(t, func(testing.TB) idempotency.Store { return newModel("") })
}

func newModel(bug string) *model { return &model{bug: bug, records: map[idempotency.ID]*row{}} }

func TestBrokenStoresDoNotPass(t *testing.T) {
	impatient(t)
	all := slices.Concat(checks(), operatorChecks())
	proven := map[string]bool{}
	for _, m := range mutants {
		t.Run(m.bug, func(t *testing.T) {
			for _, name := range m.seenBy {
				proven[name] = true
				i := slices.IndexFunc(all, func(c check) bool { return c.name == name })
				if i < 0 {
					t.Errorf("there is no check %q", name)
					continue
				}
				failed := fails(t, func(t testing.TB) {
					store := newModel(m.bug)
					s := &trial{TB: t, store: store}
					if c := all[i]; c.operate != nil {
						c.operate(s, store)
					} else {
						c.run(s)
					}
				})
				if !failed {
					t.Errorf("%q does not see it", name)
				}
			}
		})
	}
	for _, c := range all {
		if !proven[c.name] {
			t.Errorf("no store is broken in a way that %q has to see", c.name)
		}
	}
}

// impatient lets checks that wait in vain end soon.
func impatient(t *testing.T) {
	patience = 200 * time.Millisecond
	t.Cleanup(func() { patience = 10 * time.Second })
}

// fails reports whether a check fails. It is tried some times, since a store may break only in a race.
func fails(t *testing.T, run func(testing.TB)) bool {
	for range 50 {
		p := &probe{TB: t}
		p.try(run)
		if p.Failed() {
			return true
		}
	}
	return false
}

// A probe is a testing.TB whose failures are looked for.
type probe struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// try runs a check and its cleanups.
func (p *probe) try(run func(testing.TB)) {
	ctx, cancel := context.WithCancel(p.TB.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(&probeWithContext{p, ctx})
	}()
	<-done
	cancel()
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}

type probeWithContext struct {
	*probe
	ctx context.Context
}

func (p *probeWithContext) Context() context.Context { return p.ctx }

func (p *probe) Helper()          {}
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *probe) Error(args ...any) { p.fail(fmt.Sprint(args...)) }

func (p *probe) Errorf(format string, args ...any) { p.fail(fmt.Sprintf(format, args...)) }

func (p *probe) Fatal(args ...any) {
	p.fail(fmt.Sprint(args...))
	runtime.Goexit()
}

func (p *probe) Fatalf(format string, args ...any) {
	p.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (p *probe) fail(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, text)
}

func (p *probe) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.failures) > 0
}
