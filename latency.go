package riprap

import (
	"cmp"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultFactor = 3
	defaultMin    = 10 * time.Millisecond

	usual = 0.99 // the quantile that the bound follows
	armed = 200  // samples in the window: of fewer, the hundredth is chance

	// More timeouts than lost say that the service has become slow, and the bound does nothing but harm. It is back when
	// there are no more than regained: then the p99 is a time that was seen, and not one that was cut off.
	lost     = 2 * (1 - usual)
	regained = 1 - usual

	// In one refresh the bound moves by no more: a few odd samples must not throw it off.
	stepUp   = 1.5
	stepDown = 1.25

	refreshTime  = time.Second
	slotTime     = 10 * time.Second
	latencySlots = 6 // in the window
)

// A Latency observes how long a service takes and bounds each attempt by what is usual: Factor times the latency that
// 99 of 100 attempts keep to (the p99), over the last minute. It is armed once there are 200 samples in the window; until
// then, and for services that are called less often, the Policy's AttemptTimeout holds, which is also the ceiling.
//
// An attempt that ran into its bound is a sample too, of at least that long, so that the bound widens with a service that
// becomes slower; when more than 2 % of the attempts run into it, there is no bound but AttemptTimeout until no more than
// 1 % do. Errors are no samples: a service that fails at once is not a fast one. About once a second the bound moves, by no
// more than half of itself up or a fifth down. An idle minute forgets everything.
//
// What shares a Latency should take about the same time. A rare slow route behind a frequent fast one would be cut off
// each time, and being rare would never widen the bound: give it a Latency of its own.
//
// The zero Latency is ready to use; its fields must not change once it is in use. It may be used by many goroutines at
// once. Recording waits for nothing. It holds at most 48 KiB of samples.
type Latency struct {
	// Factor times the p99 is the bound. Zero means three; two to three is sensible, and less than one is one. Negative
	// means that there is no bound: the Latency only observes.
	Factor float64

	// Min is the least bound. Zero means ten milliseconds, negative means none. AttemptTimeout is stronger.
	Min time.Duration

	// Start is what is known beforehand, such as the Snapshot of the process before: its bound is in force from the first
	// attempt, for a minute at most, until there are samples enough. Two timeouts refute it, if they are more than 2 %. Zero means
	// that nothing is known.
	Start LatencySnapshot

	current atomic.Pointer[histogram] // which samples go to
	learned atomic.Int64              // the bound, before Min and ceiling; zero means none
	median  atomic.Int64              // zero while not armed
	due     atomic.Int64              // the instant of the next refresh

	mu      sync.Mutex
	slots   [latencySlots]*histogram // by number; nil means no samples
	newest  int64                    // the number of the slot that current is or will be in
	begun   int64                    // the instant of the first refresh
	hot     bool                     // the bound is that of Start
	refuted bool                     // the bound was, by timeouts
}

// A LatencySnapshot is what a [Latency] knows, for display and for the start of another one.
type LatencySnapshot struct {
	Count         int           // attempts in the window, those that timed out included
	P50, P95, P99 time.Duration // of them, within one percent above ten microseconds; zero without any
	TimedOut      float64       // the share that timed out
	Bound         time.Duration // in force for attempts, as far as AttemptTimeout allows; zero means none
}

// bound returns what bounds an attempt that begins at the time now: what was learned, at most the ceiling. A ceiling of zero
// or less means none. The result is zero if there is no bound at all.
func (l *Latency) bound(now time.Time, ceiling time.Duration) time.Duration {
	t := instant(now)
	if due := l.due.Load(); t >= due && l.due.CompareAndSwap(due, t+int64(refreshTime)) {
		l.refresh(t)
	}
	learned := l.inForce()
	switch {
	case ceiling <= 0:
		return learned
	case learned == 0:
		return ceiling
	default:
		return min(learned, ceiling)
	}
}

// inForce returns the bound that was learned, at least Min, and zero if there is none.
func (l *Latency) inForce() time.Duration {
	if b := l.learned.Load(); b > 0 && !(l.Factor < 0) {
		return max(time.Duration(b), cmp.Or(l.Min, defaultMin))
	}
	return 0
}

// P50 returns the median of the window as of the last refresh: the time in which an attempt has an even chance. It is zero
// while the Latency is not armed.
func (l *Latency) P50() time.Duration { return time.Duration(l.median.Load()) }

// record adds an attempt that succeeded and took so long.
func (l *Latency) record(took time.Duration) {
	h := l.current.Load()
	if h == nil {
		h = l.first()
	}
	h.counts[bucket(took)].Add(1)
}

// recordTimeout adds an attempt that ran into its bound after so long. One that was given less than the median says nothing
// and is not counted.
func (l *Latency) recordTimeout(after time.Duration) {
	if after < l.P50() {
		return
	}
	h := l.current.Load()
	if h == nil {
		h = l.first()
	}
	h.counts[bucket(after)].Add(1)
	h.timedOut.Add(1)
	if l.learned.Load() == 0 {
		return
	}
	// Not at the next refresh: until then every attempt would be cut off.
	l.mu.Lock()
	defer l.mu.Unlock()
	if count, timedOut := l.count(); tooMany(timedOut, count, lost) {
		l.refuted = true
		l.learned.Store(0)
	}
}

// tooMany reports whether more than a share of the attempts, and more than one, ran into the bound.
func tooMany(timedOut, count int, share float64) bool {
	return float64(timedOut) > max(share*float64(count), 1)
}

// Snapshot returns what is known at the time now.
func (l *Latency) Snapshot(now time.Time) LatencySnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate(instant(now))
	count, timedOut := l.count()
	s := LatencySnapshot{Count: count, Bound: l.inForce()}
	if count > 0 {
		s.P50, s.P95, s.P99 = l.quantile(0.5, count), l.quantile(0.95, count), l.quantile(usual, count)
		s.TimedOut = float64(timedOut) / float64(count)
	}
	return s
}

// first makes the slot for the first sample after a while without any.
func (l *Latency) first() *histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.current.Load()
	if h == nil {
		h = new(histogram)
		l.slots[l.newest%latencySlots] = h
		l.current.Store(h)
	}
	return h
}

// rotate forgets what is older than the window. An attempt that ends just now may still go to the slot before.
func (l *Latency) rotate(t int64) {
	number := t / int64(slotTime)
	if number <= l.newest {
		return
	}
	for n := max(l.newest+1, number-latencySlots+1); n <= number; n++ {
		l.slots[n%latencySlots] = nil
	}
	l.newest = number
	l.current.Store(nil)
}

// refresh moves the bound to what the window says at the instant t.
func (l *Latency) refresh(t int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate(t)
	if l.begun == 0 {
		l.begun = t
		l.hot = l.Start.Bound > 0
		l.learned.Store(int64(max(l.Start.Bound, 0)))
		l.median.Store(int64(max(l.Start.P50, 0)))
		return
	}
	count, timedOut := l.count()
	if count < armed {
		if l.hot = l.hot && !l.refuted && t-l.begun < latencySlots*int64(slotTime); !l.hot {
			l.median.Store(0)
			l.learned.Store(0)
			l.refuted = false
		}
		return
	}
	l.hot = false
	l.median.Store(int64(l.quantile(0.5, count)))
	share := lost
	if l.refuted {
		share = regained
	}
	if l.refuted = tooMany(timedOut, count, share); l.refuted {
		l.learned.Store(0)
		return
	}
	bound := float64(l.quantile(usual, count)) * l.factor()
	if now := float64(l.learned.Load()); now > 0 {
		bound = min(max(bound, now/stepDown), now*stepUp)
	}
	l.learned.Store(int64(min(max(bound, 1), math.MaxInt64/2)))
}

func (l *Latency) factor() float64 {
	if f := cmp.Or(l.Factor, defaultFactor); f > 1 {
		return f
	}
	return 1 // also for NaN
}

// count returns how many samples the window has, and how many of them timed out.
func (l *Latency) count() (count, timedOut int) {
	for _, h := range l.slots {
		if h == nil {
			continue
		}
		for i := range h.counts {
			count += int(h.counts[i].Load())
		}
		timedOut += int(h.timedOut.Load())
	}
	return count, timedOut
}

// quantile returns the sample of rank q·count, rounded up, to within half a bucket.
func (l *Latency) quantile(q float64, count int) time.Duration {
	rank := int(math.Ceil(q * float64(count)))
	for i := range buckets {
		for _, h := range l.slots {
			if h != nil {
				rank -= int(h.counts[i].Load())
			}
		}
		if rank <= 0 {
			return middle(i)
		}
	}
	return middle(buckets - 1)
}

// A histogram counts samples in buckets whose width grows with the value: 64 for each doubling, so that the middle of one
// is within 0.8 % of what it stands for. The idea is that of HdrHistogram (Gil Tene).
type histogram struct {
	counts   [buckets]atomic.Uint32
	timedOut atomic.Uint32
}

const (
	unitBits   = 7                           // the narrowest are 128 ns wide
	octaveBits = 6                           // buckets for each doubling
	octaves    = 26                          // doublings
	buckets    = (octaves + 2) << octaveBits // the last one begins at 18 minutes and takes all that is longer
)

// bucket returns the index of the bucket for a duration.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0)) >> unitBits
	octave := max(bits.Len64(v)-octaveBits-1, 0)
	return min(octave<<octaveBits+int(v>>octave), buckets-1)
}

// middle returns the middle of a bucket.
func middle(i int) time.Duration {
	octave := max(i>>octaveBits-1, 0)
	from := uint64(i-octave<<octaveBits) << octave
	return time.Duration((from<<1 + 1<<octave) << unitBits >> 1)
}
