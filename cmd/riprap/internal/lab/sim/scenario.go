package sim

import (
	"math/rand/v2"
	"time"
)

// A Scenario is one thing that happens to a service and to those who call it. It is plain data: copy one and change a
// field.
type Scenario struct {
	Name  string
	About string // in a sentence

	Arrivals Arrivals
	Network  Spread        // one way; zero means no time
	Timeout  time.Duration // the longest wait of a caller for one attempt; zero means for ever

	// Services are called in a row: the first by the clients, and each of the others by the one before, under the same
	// policy. There is at least one.
	Services []Service

	Triggers []Trigger
	Length   time.Duration // of the simulated time; zero means until nothing more happens
	Step     time.Duration // of the series; zero means a second; doubled until the series has 2000 steps at most

	// Processes is the number of processes that the calls come from, at each hop. Each has its own budget. Zero means one,
	// or one for each client.
	Processes int
}

// Arrivals say when calls are made.
type Arrivals struct {
	Rate float64 // open: so many calls a second, at random, whatever becomes of them (a Poisson process)

	// Clients is the number of those who make one call after another, each after a pause: closed arrivals. It is used if
	// Rate is zero. A pause of less than a millisecond counts as one: clients of a service that fails at once would
	// otherwise call for ever in the same instant.
	Clients int
	Pause   Spread
	Once    bool // each client makes a single call, all at the same instant
}

// A ServiceKind is a model of a service.
type ServiceKind string

const (
	Queue ServiceKind = "queue" // workers, and a queue before them
	Crowd ServiceKind = "crowd" // all at once, the more the slower
	Row   ServiceKind = "row"   // one row of a table, changed by whoever has seen its latest version
	Coin  ServiceKind = "coin"  // fails at random, whatever the load
	Relay ServiceKind = "relay" // calls the next service and says what that said
)

// A Service takes attempts and answers them.
type Service struct {
	Kind ServiceKind

	// Of a Queue.
	Workers int     // zero means one
	Work    Spread  // time that a worker needs for an attempt
	Hangs   float64 // share of the attempts that keep their worker until the caller leaves

	// Of a Crowd: an attempt that comes while n others are at work takes Base + (n+1)·Each.
	Base, Each time.Duration

	// Of a Coin: the chance of an attempt to fail.
	Fails float64

	Admission
}

// An Admission says whom a service works for. The zero Admission works for all, in the order in which they came, and
// never hears of a caller that has left.
type Admission struct {
	// Of a Queue.
	Room   int           // the most attempts that may wait, and others are refused; zero means any number, negative none
	LIFO   bool          // the youngest is served first
	Drop   bool          // attempts whose callers have no more than Margin left are dropped when their turn has come
	Margin time.Duration // zero means that only callers that have left are dropped

	// Of a Queue or a Crowd: the work for a caller that leaves is not begun, and in a Crowd it ends.
	Cancels bool
}

// A TriggerKind is what a trigger does.
type TriggerKind string

const (
	Down  TriggerKind = "down"  // attempts fail at once
	Cut   TriggerKind = "cut"   // the network holds what is sent to the service, and delivers all of it at the end
	Slow  TriggerKind = "slow"  // work takes Factor times as long
	Spike TriggerKind = "spike" // Factor times as many calls are made, and none if it is zero
	Ramp  TriggerKind = "ramp"  // as a spike, that rises to Factor in the middle and falls again
	Lost  TriggerKind = "lost"  // the share Factor of the answers is lost after the work was done
)

// A Trigger is what goes wrong for a while. It concerns the last service, and Spike and Ramp the arrivals.
type Trigger struct {
	Kind      TriggerKind
	From, For time.Duration
	Factor    float64
}

func (t Trigger) until() time.Duration { return t.From + t.For }

// on reports whether the trigger is on at an instant.
func (t Trigger) on(now time.Duration) bool { return t.From <= now && now < t.until() }

// A Spread says how a time is drawn. The zero Spread is always zero.
type Spread struct {
	Kind SpreadKind
	Mean time.Duration
	SD   time.Duration // of Normal
}

// A SpreadKind is a kind of Spread.
type SpreadKind int

const (
	Fixed       SpreadKind = iota // always the mean
	Exponential                   // memoryless
	Normal                        // the absolute value, so that it is never negative
)

// Draw draws a time.
func (s *Spread) Draw(r *rand.Rand) time.Duration {
	switch s.Kind {
	case Exponential:
		return time.Duration(r.ExpFloat64() * float64(s.Mean))
	case Normal:
		return (s.Mean + time.Duration(r.NormFloat64()*float64(s.SD))).Abs()
	}
	return s.Mean
}

// Capacity is the number of attempts a second that the last service can serve, or 0 if it has no limit.
func (s *Scenario) Capacity() float64 {
	last := s.Services[len(s.Services)-1]
	if last.Kind != Queue || last.Work.Mean <= 0 {
		return 0
	}
	return float64(max(last.Workers, 1)) / last.Work.Mean.Seconds()
}

func (s *Scenario) processes() int {
	switch {
	case s.Processes > 0:
		return s.Processes
	case s.open():
		return 1
	}
	return max(s.Arrivals.Clients, 1)
}

// Fault is the time from the beginning of the first trigger to the end of the last. Both are zero if there is none.
func (s *Scenario) Fault() (from, until time.Duration) {
	for i, t := range s.Triggers {
		if i == 0 {
			from = t.From
		}
		from, until = min(from, t.From), max(until, t.until())
	}
	return from, until
}
