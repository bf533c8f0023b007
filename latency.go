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

	usual = 99  // the percentile that the bound follows
	armed = 200 // samples in the window: of fewer, the hundredth is chance

	// More timeouts than lost say that the service has become slow, and the bound does nothing but harm. It is back when
	// there are no more than regained: then the p99 is a time that was seen, and not one that was cut off.
	lost     = 2 * regained
	regained = (100 - usual) / 100.0

	// So many timeouts in a row say that the service has changed. Where callers wait for the end of a call before the next,
	// a slow service gets fewer of them, and its share of the window would grow too slowly.
	streak = 10

	// In one refresh the bound moves by no more: a few odd samples must not throw it off.
	stepUp   = 1.5
	stepDown = 1.25

	refreshTime  = time.Second
	slotTime     = 10 * time.Second
	latencySlots = 6 // in the window
	windowTime   = latencySlots * slotTime
)

// A Latency observes how long a service takes and bounds each attempt by what is usual: Factor times the latency that
// 99 of 100 attempts keep to (the p99), over the last minute. It is armed once there are 200 samples in the window; until
// then, and for services that are called less often, the Policy's AttemptTimeout holds, which is also the ceiling.
//
// An attempt that ran into its bound is a sample too, of at least that long, so that the bound widens with a service that
// becomes slower. When more than 2 % of the attempts run into it, there is no bound but AttemptTimeout until no more than
// 1 % do. Ten in a row forget what was before. Errors are no samples: a service that fails at once is not a fast one. About
// once a second the bound moves, by no more than half of itself up or a fifth down. An idle minute forgets everything.
//
// What shares a Latency should take about the same time. A rare slow route behind a frequent fast one would be cut off
// each time, and being rare would never widen the bound: give it a Latency of its own.
//
// The zero Latency is ready to use; its fields must not change once it is in use. It may be used by many goroutines at
// once. Recording takes no lock, but for the first attempt in ten seconds and for one that timed out. It holds at most 48 KiB
// of samples.
type Latency struct {
	// Factor times the p99 is the bound. Zero means three; two to three is sensible, and less than one is one. Negative
	// means that there is no bound: the Latency only observes.
	Factor float64

	// Min is the least bound. Zero means ten milliseconds, negative means none. AttemptTimeout is stronger.
	Min time.Duration

	// Start is what is known beforehand, such as the Snapshot of the process before. Only its Bound and P50 count: they are
	// in force from the first attempt, for a minute at most, until there are samples enough. Two timeouts refute them, if
	// they are more than 2 %. Zero means that nothing is known.
	Start LatencySnapshot

	current atomic.Pointer[histogram] // which samples go to
	learned atomic.Int64              // the bound, at least Min; zero means none
	median  atomic.Int64              // zero while not armed
	inRow   atomic.Int64              // timeouts since the last success, while there is a bound
	due     atomic.Int64              // the instant of the next refresh

	mu      sync.Mutex
	slots   window
	newest  int64 // the number of the slot that current is or will be in
	begun   int64 // the instant of the first refresh
	hot     bool  // the bound is that of Start
	refuted bool  // the bound was, by timeouts
}

// A LatencySnapshot is what a [Latency] knows, for display and for the start of another one.
type LatencySnapshot struct {
	Count         int           // attempts in the window, those that timed out included
	P50, P95, P99 time.Duration // of them, within one percent above ten microseconds; zero without any
	TimedOut      float64       // the share that timed out, from zero to one
	Bound         time.Duration // in force for attempts, as far as AttemptTimeout allows; zero means none
}

// bound returns what bounds an attempt that begins at the time now: what was learned, at most the ceiling. A ceiling of zero
// or less means none. The result is zero if there is no bound at all.
func (l *Latency) bound(now time.Time, ceiling time.Duration) time.Duration {
	t := instant(now)
	due := l.due.Load()
	back := t < due-int64(refreshTime+windowTime) // the clock was: no caller is that slow to tell the time it was asked at
	if (t >= due || back) && l.due.CompareAndSwap(due, t+int64(refreshTime)) {
		l.refresh(t)
	}
	learned := time.Duration(l.learned.Load())
	switch {
	case ceiling <= 0:
		return learned
	case learned == 0:
		return ceiling
	default:
		return min(learned, ceiling)
	}
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
	if l.inRow.Load() != 0 {
		l.inRow.Store(0)
	}
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
	changed := l.inRow.Add(1) >= streak
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen := l.slots.samples(); !changed && !seen.tooMany(lost) {
		return
	}
	l.refuted = true
	l.learned.Store(0)
	l.inRow.Store(0)
	if changed {
		l.slots = window{}
		l.current.Store(nil)
		l.median.Store(0)
	}
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

// Snapshot returns what is known at the time now. It changes nothing.
func (l *Latency) Snapshot(now time.Time) LatencySnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := instant(now)
	w := l.slots
	w.forget(l.newest, t/int64(slotTime))
	seen := w.samples()
	s := LatencySnapshot{Count: seen.count, Bound: time.Duration(l.learned.Load())}
	if t >= l.due.Load() {
		s.Bound = l.judge(t, &seen).bound
	}
	if seen.count > 0 {
		s.P50, s.P95, s.P99 = seen.quantile(50), seen.quantile(95), seen.quantile(usual)
		s.TimedOut = float64(seen.timedOut) / float64(seen.count)
	}
	return s
}

// refresh moves the window to the instant t and the bound to what the window says.
func (l *Latency) refresh(t int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// An attempt that ends just now may still go to the slot before.
	switch number := t / int64(slotTime); {
	case l.begun == 0: // others may have told of attempts before the first refresh was through
		early := l.slots[0]
		l.slots = window{}
		l.slots[number%latencySlots] = early
		l.newest = number
	case number > l.newest:
		l.slots.forget(l.newest, number)
		l.newest = number
		l.current.Store(nil)
	case number <= l.newest-latencySlots: // set back: what is in the window would not grow old until the clock is there again
		l.slots = window{}
		l.newest = number
		l.current.Store(nil)
		l.begun = t
	}
	seen := l.slots.samples()
	v := l.judge(t, &seen)
	l.hot, l.refuted = v.hot, v.refuted
	l.median.Store(int64(v.median))
	l.learned.Store(int64(v.bound))
	if l.begun == 0 {
		l.begun = t
	}
}

// A verdict is what a refresh comes to.
type verdict struct {
	bound, median time.Duration // zero means none
	hot, refuted  bool
}

// judge decides what holds from the instant t on, after what was seen in the window.
func (l *Latency) judge(t int64, seen *samples) (v verdict) {
	if l.begun == 0 {
		if l.Start.Bound > 0 && !(l.Factor < 0) {
			v.hot = true
			v.bound = max(l.Start.Bound, l.least())
			v.median = min(max(l.Start.P50, 0), v.bound)
		}
		return v
	}
	learned := time.Duration(l.learned.Load())
	if seen.count < armed {
		if l.hot && !l.refuted && t-l.begun < int64(windowTime) {
			return verdict{bound: learned, median: l.P50(), hot: true}
		}
		return v
	}
	v.median = seen.quantile(50)
	share := lost
	if l.refuted {
		share = regained
	}
	if v.refuted = seen.tooMany(share); v.refuted || l.Factor < 0 {
		return v
	}
	bound := float64(seen.quantile(usual)) * l.factor()
	if now := float64(learned); now > 0 && !l.hot {
		bound = min(max(bound, now/stepDown), now*stepUp)
	}
	v.bound = max(time.Duration(min(bound, math.MaxInt64/2)), l.least())
	return v
}

func (l *Latency) factor() float64 {
	if f := cmp.Or(l.Factor, defaultFactor); f > 1 {
		return f
	}
	return 1 // also for NaN
}

// least returns what no bound is below.
func (l *Latency) least() time.Duration { return max(cmp.Or(l.Min, defaultMin), 1) }

// A window is the samples of the last minute: the slot of number n at n%latencySlots, nil if it has none.
type window [latencySlots]*histogram

// forget drops what is older than the window that ends with the slot of the number given, of which newest was the last.
func (w *window) forget(newest, number int64) {
	for n := max(newest+1, number-latencySlots+1); n <= number; n++ {
		w[n%latencySlots] = nil
	}
}

// samples adds up the slots.
func (w *window) samples() (s samples) {
	for _, h := range w {
		if h == nil {
			continue
		}
		for i := range h.counts {
			n := h.counts[i].Load()
			s.counts[i] += n
			s.count += int(n)
		}
		s.timedOut += int(h.timedOut.Load())
	}
	return s
}

// samples are how many attempts took how long.
type samples struct {
	counts          [buckets]uint32
	count, timedOut int
}

// tooMany reports whether more than a share of the attempts, and more than one, ran into the bound.
func (s *samples) tooMany(share float64) bool {
	return float64(s.timedOut) > max(share*float64(s.count), 1)
}

// quantile returns, to within half a bucket, the sample that so many percent do not exceed.
func (s *samples) quantile(percent int) time.Duration {
	rank := (uint64(s.count)*uint64(percent) + 99) / 100
	for i, n := range s.counts {
		if rank <= uint64(n) {
			return middle(i)
		}
		rank -= uint64(n)
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
func bucket(d time.Duration) uint {
	v := uint64(max(d, 0)) >> unitBits
	octave := uint(bits.Len64(v|1<<octaveBits)) - octaveBits - 1
	return min(octave<<octaveBits+uint(v>>(octave&63)), buckets-1) // the mask spares a check
}

// middle returns the middle of a bucket.
func middle(i int) time.Duration {
	octave := max(i>>octaveBits-1, 0)
	from := uint64(i-octave<<octaveBits) << octave
	return time.Duration((from<<1 + 1<<octave) << unitBits >> 1)
}
