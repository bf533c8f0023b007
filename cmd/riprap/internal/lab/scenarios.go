package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/rival"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// A study is a scenario with those who run in it and what to say about them.
type study struct {
	sim.Scenario
	seeds      int // simulations of each candidate, unless asked otherwise
	candidates []sim.Candidate
	columns    []figure // of its tables
	figure     string   // that a picture of bars or lines shows
	bars       bool     // a picture is one of bars, and not of the first seed over time
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

// studies is what the lab knows. A new scenario is one more entry, and a test of what it shows.
var studies = []study{
	{
		Scenario: sim.Scenario{
			Name:     "contention",
			About:    "clients that all want to change the same row at once, and try until they have",
			Arrivals: sim.Arrivals{Clients: 100, Once: true},
			Network:  sim.Spread{Kind: sim.Normal, Mean: 10 * ms, SD: 2 * ms},
			Services: []sim.Service{{Kind: sim.Row}},
			Step:     100 * ms,
		},
		seeds:      100,
		candidates: contenders,
		columns:    columns("attempts", "completion_seconds", "answered"),
		figure:     "attempts",
	},
	{
		Scenario: sim.Scenario{
			Name:     "outage",
			About:    "a queue that serves 300/s, and a network that holds all for ten seconds and then delivers it",
			Arrivals: sim.Arrivals{Rate: 280},
			Timeout:  sec,
			Services: []sim.Service{{Kind: sim.Queue, Work: sim.Spread{Kind: sim.Exponential, Mean: sec / 300}}},
			Triggers: []sim.Trigger{{Kind: sim.Cut, From: 60 * sec, For: 10 * sec}},
			Length:   600 * sec,
		},
		seeds:      8,
		candidates: outageCandidates,
		columns:    storm,
		figure:     "recovered",
	},
	{
		Scenario:   crowded("collapse", "a service that is the slower the more it does, and five seconds with twice the calls", sim.Spike, 5*sec),
		seeds:      200,
		candidates: collapseCandidates,
		columns:    storm,
		figure:     "recovered",
	},
	{
		Scenario:   crowded("ramp", "the same service, and calls that rise to twice as many and fall again", sim.Ramp, 50*sec),
		seeds:      200,
		candidates: collapseCandidates,
		columns:    storm,
		figure:     "recovered",
	},
	{
		Scenario: sim.Scenario{
			Name:      "flaky",
			About:     "a service whose attempts fail at random, whatever the load",
			Arrivals:  sim.Arrivals{Rate: 1000},
			Network:   sim.Spread{Kind: sim.Exponential, Mean: 10 * ms},
			Services:  []sim.Service{{Kind: sim.Coin, Fails: 0.1}},
			Length:    20 * sec,
			Processes: 100,
		},
		seeds:      10,
		candidates: flakyCandidates,
		columns:    columns("answered", "attempts_per_call"),
		figure:     "answered",
		bars:       true,
	},
	{
		Scenario: sim.Scenario{
			Name:     "layers",
			About:    "client, A, B and C, each of which retries, and C down for a minute",
			Arrivals: sim.Arrivals{Rate: 100},
			Timeout:  10 * sec,
			Services: []sim.Service{{Kind: sim.Relay}, {Kind: sim.Relay},
				{Kind: sim.Queue, Workers: 20, Work: sim.Spread{Kind: sim.Exponential, Mean: 100 * ms}}},
			Triggers: []sim.Trigger{{Kind: sim.Down, From: 60 * sec, For: 60 * sec}},
			Length:   240 * sec,
		},
		seeds:      20,
		candidates: layersCandidates,
		columns:    slices.Concat(columns("attempts_per_call_in_fault"), storm),
		figure:     "attempts_per_call_in_fault",
		bars:       true,
	},
	{
		Scenario: sim.Scenario{
			Name:     "threads",
			About:    "a server of 1000 threads without a queue, and one request in twenty that never ends",
			Arrivals: sim.Arrivals{Rate: 1000},
			Timeout:  100 * sec,
			Services: []sim.Service{{Kind: sim.Queue, Workers: 1000, Work: sim.Spread{Mean: 100 * ms}, Hangs: 0.05,
				Admission: sim.Admission{Room: -1}}},
			Length: 611 * sec, // the threads that hang are freed together every 102 s: six times
		},
		seeds:      4,
		candidates: threadsCandidates,
		columns:    columns("admitted", "answered", "attempts_per_call"),
		figure:     "admitted",
		bars:       true,
	},
}

// storm is the columns of a scenario in which the service may never recover.
var storm = columns("recovered", "recovery_seconds", "overshoot", "attempts_per_call", "wasted", "lost")

func columns(names ...string) []figure {
	out := make([]figure, len(names))
	for i, name := range names {
		f, err := findFigure(name)
		if err != nil || f.head == "" {
			panic("no column " + name)
		}
		out[i] = f
	}
	return out
}

// crowded is a service that does everything at once, with 40 calls a second and a trigger that doubles them.
func crowded(name, about string, kind sim.TriggerKind, length time.Duration) sim.Scenario {
	from := 25*sec - length
	if kind == sim.Ramp {
		from = 25*sec - length/2
	}
	return sim.Scenario{
		Name:     name,
		About:    about,
		Arrivals: sim.Arrivals{Rate: 40},
		Network:  sim.Spread{Kind: sim.Exponential, Mean: 100 * ms},
		Timeout:  3 * sec,
		Services: []sim.Service{{Kind: sim.Crowd, Base: sec, Each: 10 * ms}},
		Triggers: []sim.Trigger{{Kind: kind, From: from, For: length, Factor: 2}},
		Length:   200 * sec,
	}
}

// policy returns one of so many attempts with the waits of a Backoff.
func policy(attempts int, b riprap.Backoff) riprap.Policy {
	return riprap.Policy{MaxAttempts: attempts, Backoff: b}
}

// atOnce is what a loop without a wait does. A wait of riprap's is never zero: this is a nanosecond.
var atOnce = riprap.Backoff{Base: 1, Max: 1}

// ours is riprap as it comes: the zero Policy, and a Budget.
var ours = sim.Candidate{Name: "riprap", About: "the default policy: 4 attempts, full jitter from 500 ms, budget", Budget: &sim.Budget{}}

// one never tries again.
var one = sim.Candidate{Name: "no-retries", About: "one attempt", Policy: policy(1, atOnce)}

// naive tries again at once.
func naive(attempts int, name string) sim.Candidate {
	about := fmt.Sprintf("%d attempts, each at once after the one before", attempts)
	if attempts < 0 {
		about = "again at once, until it has succeeded"
	}
	return sim.Candidate{Name: name, About: about, Policy: policy(attempts, atOnce)}
}

// limited is the naive loop with what another library limits its retries by.
func limited(name, about string, attempts int, r func() sim.Rival) sim.Candidate {
	return sim.Candidate{Name: name, About: about, Policy: policy(attempts, atOnce), Rival: r}
}

// served is the naive loop with another way to serve.
func served(name, about string, attempts int, a sim.Admission) sim.Candidate {
	return sim.Candidate{Name: name, About: about, Policy: policy(attempts, atOnce), Admission: &a}
}

var contenders = func() []sim.Candidate {
	backoff := func(name, about string, base time.Duration, j riprap.Jitter) sim.Candidate {
		return sim.Candidate{Name: name, About: about, Policy: policy(-1, riprap.Backoff{Base: base, Max: 2 * sec, Jitter: j})}
	}
	clipped := backoff("clipped", "decorrelated jitter as first published, clipped at 2 s", 5*ms, riprap.Decorrelated)
	clipped.Rival = func() sim.Rival { return &rival.Clipped{Base: 5 * ms, Max: 2 * sec} }
	added := backoff("added", "exponential, up to 10 ms added, then clipped at 2 s", 10*ms, riprap.None)
	added.Rival = func() sim.Rival { return &rival.Added{Spread: 10 * ms, Max: 2 * sec} }
	return []sim.Candidate{
		naive(-1, "none"),
		backoff("exponential", "10 ms, 20 ms … 2 s, without jitter", 10*ms, riprap.None),
		backoff("equal", "equal jitter below 10 ms, 20 ms … 2 s", 10*ms, riprap.Equal),
		backoff("full", "full jitter below 10 ms, 20 ms … 2 s", 10*ms, riprap.Full),
		backoff("decorrelated", "riprap's decorrelated jitter, 5 ms to 2 s", 5*ms, riprap.Decorrelated),
		clipped,
		added,
		ours,
	}
}()

func successBucket(ratio, size float64) func() sim.Rival {
	return func() sim.Rival { return &rival.Bucket{PerSuccess: ratio, Size: size, Tokens: size} }
}

func callBucket(ratio, size float64) func() sim.Rival {
	return func() sim.Rival { return &rival.Bucket{PerCall: ratio, Size: size, Tokens: size} }
}

// margin lets a service drop an attempt of which nobody will see the answer.
var margin = sim.Admission{Drop: true, Margin: 20 * ms}

var outageCandidates = []sim.Candidate{
	one,
	naive(2, "at-once-2"),
	naive(4, "at-once"),
	{Name: "jitter-100ms", About: "4 attempts, full jitter from 100 ms to 20 s, no budget", Policy: policy(4, riprap.Backoff{Base: 100 * ms, Max: 20 * sec})},
	{Name: "jitter-1s", About: "4 attempts, full jitter from 1 s to 20 s, no budget", Policy: policy(4, riprap.Backoff{Base: sec, Max: 20 * sec})},
	ours,
	{Name: "riprap-deadline", About: "the default policy, and the service drops what is late", Budget: &sim.Budget{}, Admission: &margin},
	limited("success-bucket", "4 attempts, at once, 0.2 of a retry for each success, 100 at most", 4, successBucket(0.2, 100)),
	limited("aws-quota", "4 attempts, at once, the quota of the AWS SDKs", 4, func() sim.Rival { return rival.NewQuota() }),
	limited("grpc-throttle", "4 attempts, at once, gRPC's throttling with 100 tokens and 0.1", 4, func() sim.Rival { return rival.NewThrottle(100, 0.1) }),
	limited("call-bucket-10", "4 attempts, at once, 0.1 of a retry for each call, 100 at most", 4, callBucket(0.1, 100)),
	limited("call-bucket-20", "4 attempts, at once, 0.2 of a retry for each call, 100 at most", 4, callBucket(0.2, 100)),
	limited("finagle", "4 attempts, at once, Finagle's budget: a fifth of the calls, and 10/s", 4, func() sim.Rival { return rival.NewSliding() }),
	limited("periodic", "4 attempts, at once, 60 retries a minute for each process, counted by the clock", 4, func() sim.Rival { return &rival.Periodic{} }),
	limited("circuit-breaker", "4 attempts, at once, six failures in a row refuse all for a minute", 4, func() sim.Rival { return &rival.Circuit{} }),
	limited("sre-throttle", "4 attempts, at once, the client throttles itself, K = 2", 4, func() sim.Rival { return &rival.Adaptive{} }),
	limited("sre-window", "4 attempts, at once, the client throttles itself over exactly two minutes, K = 2", 4, func() sim.Rival { return &rival.Adaptive{Hard: true} }),
	served("drop-2", "2 attempts, at once, the service drops what is too late", 2, sim.Admission{Drop: true}),
	served("drop", "4 attempts, at once, the service drops what is too late", 4, sim.Admission{Drop: true}),
	served("drop-margin", "4 attempts, at once, the service drops what would be too late in 20 ms", 4, margin),
	served("room-150", "4 attempts, at once, 150 places in the queue, half a second", 4, sim.Admission{Room: 150}),
	served("room-600", "4 attempts, at once, 600 places in the queue, two seconds", 4, sim.Admission{Room: 600}),
	served("lifo", "4 attempts, at once, the youngest is served first", 4, sim.Admission{LIFO: true}),
}

var collapseCandidates = []sim.Candidate{
	one,
	naive(3, "at-once"),
	{Name: "jitter-20s", About: "3 attempts, full jitter below 20 s, then below 40 s", Policy: policy(3, riprap.Backoff{Base: 20 * sec, Max: 40 * sec})},
	{Name: "jitter-1s", About: "3 attempts, full jitter below 1 s, then below 2 s", Policy: policy(3, riprap.Backoff{Base: sec, Max: 8 * sec})},
	{Name: "jitter-2s", About: "3 attempts, full jitter below 2 s, then below 4 s", Policy: policy(3, riprap.Backoff{Base: 2 * sec, Max: 8 * sec})},
	ours,
	limited("success-bucket", "3 attempts, at once, 0.1 of a retry for each success, 10 at most", 3, successBucket(0.1, 10)),
	limited("call-bucket-20", "3 attempts, at once, 0.2 of a retry for each call, 100 at most", 3, callBucket(0.2, 100)),
	served("cancels", "3 attempts, at once, the service ends the work of callers that have left", 3, sim.Admission{Cancels: true}),
}

var flakyCandidates = []sim.Candidate{
	one,
	naive(4, "at-once"),
	ours,
	limited("call-bucket-10", "at once, any number, 0.1 of a retry for each call, 5 at most", -1, callBucket(0.1, 5)),
	limited("circuit-breaker", "4 attempts, at once, six failures in a row refuse all for a minute", 4, func() sim.Rival { return &rival.Circuit{} }),
	limited("breaker-10", "4 attempts, at once, while there were fewer failures than a tenth of the calls", 4, func() sim.Rival { return &rival.Breaker{Share: 0.1} }),
}

var layersCandidates = []sim.Candidate{
	one,
	naive(3, "at-once-3"),
	naive(4, "at-once"),
	{Name: "jitter", About: "4 attempts, riprap's waits, no budget"},
	ours,
	limited("call-bucket-10", "4 attempts, at once, 0.1 of a retry for each call, 100 at most", 4, callBucket(0.1, 100)),
}

var threadsCandidates = []sim.Candidate{
	{Name: "100s", About: "one attempt, for 100 s", Policy: policy(1, atOnce)},
	{Name: "10s", About: "one attempt, for 10 s", Policy: riprap.Policy{MaxAttempts: 1, AttemptTimeout: 10 * sec}},
	{Name: "1s", About: "one attempt, for 1 s", Policy: riprap.Policy{MaxAttempts: 1, AttemptTimeout: sec}},
	{Name: "riprap-1s", About: "the default policy, 1 s an attempt", Policy: riprap.Policy{AttemptTimeout: sec}, Budget: &sim.Budget{}},
	{Name: "riprap-100s", About: "the default policy, 100 s an attempt", Budget: &sim.Budget{}},
}
