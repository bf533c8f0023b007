package demo

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A scenario is everything that both sides have in common, as data: who calls how often, what the service can do,
// when it fails, and the figures of the retries that the two sides share.
type scenario struct {
	Callers int           // users of the calling program; each calls at its own pace and never waits for its calls before the next
	Every   time.Duration // from one call of a caller to its next, on average
	Length  time.Duration // of one side

	Load  float64       // share of the service's capacity that the calls use, were every one sent once
	Queue time.Duration // work that may wait in the service; what comes on top is turned away with a 503

	Attempts       int           // most sends of a call, the first included
	AttemptTimeout time.Duration // bounds one of them
	Patience       time.Duration // how long a caller waits for its call, retries included
	Backoff        time.Duration // before the first retry; doubled before each further one

	Faults []fault // in the order in which they begin
}

// A fault is a span of the run in which the service does not do its work.
type fault struct {
	Kind  kind
	From  time.Duration // since the start of the side
	For   time.Duration
	Hangs time.Duration // outage: how long it hangs with its connections open before its process is gone
	Asks  time.Duration // throttle: the Retry-After of its 429, in whole seconds
}

func (f fault) until() time.Duration { return f.From + f.For }

type kind string

const (
	outage   kind = "outage"   // the process hangs, dies with its connections and its queue, and comes back on the same address
	throttle kind = "throttle" // every request is answered 429 with a Retry-After
)

// standard is the scenario that the demo runs. Its figures are those of the best known example of a storm that feeds
// itself (Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021): a service that can do 300 requests
// a second, asked for 280 of them, callers that give up an attempt after a second. A queue longer than that second
// holds only requests whose callers have gone, so the work is done for nobody, everyone retries, and the queue stays.
// Here:
//
//   - Calls use 90 % of the capacity. Once each call is sent three times within a caller's patience (after 0, 1.5 and
//     3.5 s), that is 270 %: enough to keep the queue full for good, and little enough work for two slow cores.
//     Capacity follows the number of callers, so the share is the same for every -callers.
//   - 1.8 s of outage leave 1.8 s of calls waiting for their retry. They return within a second or so on top of the
//     usual calls, and the queue passes the attempt's second. Measured with the naive loop, two seeds each: outages of
//     0.7 and 0.9 s are overcome, 1.1 s and more never. The 429s do not decide it: with the outage alone the naive loop
//     stays down too, with the 429s alone it recovers.
//   - The queue holds 3 s of work, as queues that nobody thought about do. Bounded at 0.5 or 0.8 s, less than an
//     attempt may take, it lets the naive loop recover as well: measured too.
//   - 4 attempts, doubling from half a second, are usual figures of tutorials and of clients' defaults, and riprap's
//     own.
//   - 2 s before the first fault fill riprap's retry budget as ordinary operation does; 3 s after it show whether the
//     service recovered before the next fault begins, and 3.5 s after the second one whether it stays so.
//
// With these figures the service recovered with riprap and never with the naive loop in each of 24 runs with as many
// seeds, three at a time on two cores that other programs kept busy, in 6 with -callers 100 and 600, and in 6 with
// GOMAXPROCS=1.
func standard(callers int) scenario {
	return scenario{
		Callers:        callers,
		Every:          time.Second * 5 / 3, // 300 callers: 180 calls a second on a capacity of 200
		Length:         11 * time.Second,
		Load:           0.9,
		Queue:          3 * time.Second,
		Attempts:       4,
		AttemptTimeout: time.Second,
		Patience:       4 * time.Second,
		Backoff:        500 * time.Millisecond,
		Faults: []fault{
			{Kind: outage, From: 2000 * time.Millisecond, For: 1800 * time.Millisecond, Hangs: 600 * time.Millisecond},
			{Kind: throttle, From: 7000 * time.Millisecond, For: 500 * time.Millisecond, Asks: time.Second},
		},
	}
}

// rate is the number of calls made per second.
func (s scenario) rate() float64 { return float64(s.Callers) / s.Every.Seconds() }

// capacity is the number of requests that the service can answer per second.
func (s scenario) capacity() float64 { return s.rate() / s.Load }

// work is the time that the service needs for one request.
func (s scenario) work() time.Duration {
	return time.Duration(float64(time.Second) / s.capacity()).Round(time.Microsecond)
}

// waiting is the number of requests that the service's queue holds.
func (s scenario) waiting() int { return int(math.Round(s.Queue.Seconds() * s.capacity())) }

// arrivals says when the calls are made, all callers taken together, in order. Each caller begins somewhere in its
// first period and lets between 0.7 and 1.3 periods pass between calls, whatever became of the earlier ones: real users
// do not slow down because a service of which they know nothing does. The same seed gives the same times, so both sides
// get the same traffic.
func (s scenario) arrivals(seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	var times []time.Duration
	for range s.Callers {
		period := float64(s.Every)
		at := period * random.Float64()
		for at < float64(s.Length) {
			times = append(times, time.Duration(at))
			at += period * (0.7 + 0.6*random.Float64())
		}
	}
	slices.Sort(times)
	return times
}
