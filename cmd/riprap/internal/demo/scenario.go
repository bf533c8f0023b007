package demo

import (
	"cmp"
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
	Later time.Duration // slow: by how much an answer comes later than the charge
	Asks  time.Duration // throttle: the Retry-After of its 429, in whole seconds
}

func (f fault) until() time.Duration { return f.From + f.For }

type kind string

const (
	outage   kind = "outage"   // the process hangs, dies with its connections and its queue, and comes back on the same address
	slow     kind = "slow"     // it charges as ever, and answers late
	loss     kind = "loss"     // it charges as ever, and its connections break instead of an answer
	throttle kind = "throttle" // every request is answered 429 with a Retry-After
)

// standard is the scenario that the demo runs. Its figures are those of the best known example of a storm that feeds
// itself (Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021): a service that can do 300 requests
// a second, asked for 280 of them, callers that give up an attempt after a second. A queue longer than that second
// holds only requests whose callers have gone, so the work is done for nobody, everyone retries, and the queue stays.
// Here:
//
//   - Clicks use 90 % of the capacity of payments. Once each click is sent three times within a shopper's patience (after 0, 1.5
//     and 3.5 s), that is 270 %: enough to keep the queue full for good, and little enough work for two slow cores.
//     Capacity follows the number of callers, so the share is the same for every -callers.
//   - A click is up to four HTTP requests one after another, and the naive layers cut a connection with each attempt that they
//     give up. On two cores that other programs kept busy, three demos at a time were up to 1.5 s late with 180 clicks a
//     second, and at most 0.3 s with 100.
//   - 1.8 s of outage leave 1.8 s of clicks waiting for their retry. They return within a second or so on top of the
//     usual ones, and the queue passes the attempt's second. Measured with the naive loops, two seeds each: outages of
//     0.5 to 1.1 s are overcome, 1.4 s and more never. The other faults do not decide it: with the outage alone the naive
//     side stays down too, with each of the others alone it recovers. But they charge twice: the slow answers nearly every
//     click that meets them, the lost ones each.
//   - The queue holds 3 s of work, as queues that nobody thought about do. Bounded at 0.5 or 0.8 s, less than an
//     attempt may take, it lets the naive loops answer half of the clicks at the end instead of none: measured too.
//   - 4 attempts, doubling from half a second, are usual figures of tutorials and of clients' defaults, and riprap's
//     own. That all layers have the same, and an attempt of a second each, is usual too.
//   - Slow answers are later than an attempt may take, by little: the next attempt finds the answer if the first left a key, and
//     charges again if it did not.
//   - 2 s before the first fault fill riprap's retry budgets as ordinary operation does; 2.6 s after it show whether payments
//     recovered before the next fault begins, and 3.5 s after the last one whether it stays so.
//
// With these figures payments recovered with riprap and never with the naive loops in each of 27 runs with as many seeds,
// three at a time on two cores that other programs kept busy: 18 as it comes, 3 each with -callers 100, with 600, and with
// GOMAXPROCS=1. With the last two together it recovered in 3 of 7 runs, and in 3 of 6 while load generators took both cores
// and calls were up to 12 s late; in the others the demo said that the machine was too busy. Nobody was charged twice with riprap
// in any of these, nor charged and told "failed".
func standard(callers int) scenario {
	return scenario{
		Callers:        callers,
		Every:          3 * time.Second, // 300 callers: 100 clicks a second on a capacity of 111
		Length:         14 * time.Second,
		Load:           0.9,
		Queue:          3 * time.Second,
		Attempts:       4,
		AttemptTimeout: time.Second,
		Patience:       4 * time.Second,
		Backoff:        500 * time.Millisecond,
		Faults: []fault{
			{Kind: outage, From: 2000 * time.Millisecond, For: 1800 * time.Millisecond, Hangs: 600 * time.Millisecond},
			{Kind: slow, From: 6400 * time.Millisecond, For: 600 * time.Millisecond, Later: 1200 * time.Millisecond},
			{Kind: loss, From: 8400 * time.Millisecond, For: 400 * time.Millisecond},
			{Kind: throttle, From: 10000 * time.Millisecond, For: 500 * time.Millisecond, Asks: time.Second},
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

// A click is one purchase of one shopper.
type click struct {
	At      time.Duration
	Shopper int
}

// arrivals says who clicks when, in order. Each shopper begins somewhere in its first period and lets between 0.7 and 1.3
// periods pass between clicks, whatever became of the earlier ones: real users do not slow down because a service of which
// they know nothing does. The same seed gives the same clicks, so both sides get the same traffic.
func (s scenario) arrivals(seed uint64) []click {
	random := rand.New(rand.NewPCG(seed, 0))
	var clicks []click
	for shopper := range s.Callers {
		period := float64(s.Every)
		at := period * random.Float64()
		for at < float64(s.Length) {
			clicks = append(clicks, click{time.Duration(at), shopper})
			at += period * (0.7 + 0.6*random.Float64())
		}
	}
	slices.SortFunc(clicks, func(a, b click) int { return cmp.Compare(a.At, b.At) })
	return clicks
}
