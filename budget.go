package riprap

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"
)

// A Budget limits the share of retries over all calls to a service. Each call whose first attempt succeeds deposits a
// fraction of a retry, and each retry withdraws a whole one, so that a healthy service has room for retries and a
// failing one soon sees nearly none, however many clients call it. Retries never deposit.
//
// The zero Budget is ready to use, and so is a Budget with some of its fields set; they must not change once it is in
// use. A Budget may be used by many goroutines at once. Deposits and withdrawals are lock-free and wait for nothing.
type Budget struct {
	// Ratio is what the first attempt of a call deposits when it succeeds, in retries. Zero means 0.2, one retry for
	// five such calls. Negative means nothing; positive infinity makes the budget unlimited.
	Ratio float64

	// Reserve is how many retries do not expire. It is full at the start, so that a young or quiet client can retry,
	// deposits fill it before anything else, and an hour of silence fills it up: time in which no retry is denied. Zero
	// means ten, negative means none.
	Reserve int

	// Window is how long a deposit above the reserve lasts. Zero or less means ten seconds; the least is ten
	// milliseconds.
	Window time.Duration

	// Parent is a budget above this one, for example one for a whole process. Both get the deposits, and both must
	// allow a retry. A budget with more than three above it, or with itself among them, denies every retry.
	Parent *Budget

	// Every call writes to the fraction, and every fifth to what follows. Lines of the cache of their own keep that from
	// slowing down the reading of the fields above and of each other on many processors.
	_        [64]byte
	fraction atomic.Uint64 // the sum of all deposits, in units; each retry that it completes is handed on
	_        [64]byte
	reserve  atomic.Int64         // the instant at which the reserve would have been empty; zero means that it is full
	slots    [slots]atomic.Uint64 // whole retries by time: the slot's number above, their count in the low bits
}

const (
	slots  = 10      // of a window
	levels = 4       // of budgets above each other
	unit   = 1 << 32 // of a fraction of a retry

	slotBits = 24 // for the count of retries in a slot
	slotMask = 1<<slotBits - 1

	refill = time.Hour // of an empty reserve, in silence
)

// A hold is a granted retry: where each level took it from, so that it can go back there.
type hold struct {
	levels int
	from   [levels]int64 // a slot's number, or one of the constants below
}

const (
	fromReserve   = -1
	fromUnlimited = -2
)

// instant counts nanoseconds on a scale of our own that is never zero or negative. Within a process it follows the
// monotonic clock, so that a step of the wall clock neither empties a budget nor fills it. A simulation may be set in
// any age: far from the process's own, time is counted in cycles of 34 years. The ends are far enough from those of an
// int64 that a window or an hour more or less does not overflow.
func instant(now time.Time) int64 {
	const far, age = 1 << 61, 1 << 30 * time.Second
	since := now.Sub(processStart)
	if since.Abs() > far {
		since = time.Duration(now.Unix())%(age/time.Second)*time.Second + time.Duration(now.Nanosecond())
	}
	return instantAfter(since)
}

// instantNow is instant(time.Now()), without a look at the wall clock.
func instantNow() int64 { return instantAfter(time.Since(processStart)) }

func instantAfter(since time.Duration) int64 { return 1<<62 + int64(since) }

var processStart = time.Now()

// Left returns how many retries could be granted at the time now, for display: as many as the scarcest of the budget
// and those above it has. It is math.MaxInt if they are all unlimited or b is nil.
func (b *Budget) Left(now time.Time) int {
	left := math.MaxInt
	for t, level := instant(now), 0; b != nil; b, level = b.Parent, level+1 {
		if level == levels {
			return 0
		}
		if !b.unlimited() {
			left = min(left, b.inReserve(t)+b.inWindow(t))
		}
	}
	return left
}

// deposit credits a call whose first attempt succeeded at the instant t.
func (b *Budget) deposit(t int64) {
	for level := 0; b != nil && level < levels; b, level = b.Parent, level+1 {
		b.add(t)
	}
}

// withdraw takes a retry from the budget and each one above it, or from none of them.
func (b *Budget) withdraw(now time.Time, h *hold) bool {
	if b == nil {
		return true
	}
	t := instant(now)
	for level := b; level != nil; level = level.Parent {
		from, ok := int64(0), h.levels < levels
		if ok {
			from, ok = level.take(t)
		}
		if !ok {
			b.giveBack(h)
			return false
		}
		h.from[h.levels] = from
		h.levels++
	}
	return true
}

// giveBack returns a retry that was not made to where it came from. If that slot has expired, so has the retry, and if
// deposits have filled the reserve meanwhile, there is no room for it.
func (b *Budget) giveBack(h *hold) {
	for _, from := range h.from[:h.levels] {
		switch from {
		case fromUnlimited:
		case fromReserve:
			for old := b.reserve.Load(); old != 0 && !b.reserve.CompareAndSwap(old, old-b.refillTime()); {
				old = b.reserve.Load()
			}
		default:
			slot := &b.slots[from%slots]
			for old := slot.Load(); old>>slotBits == slotNumber(from) && old&slotMask < slotMask; old = slot.Load() {
				if slot.CompareAndSwap(old, old+1) {
					break
				}
			}
		}
		b = b.Parent
	}
	*h = hold{}
}

func (b *Budget) unlimited() bool { return math.IsInf(b.Ratio, 1) }

func (b *Budget) add(t int64) {
	deposit := b.ratio()
	if deposit == 0 {
		return
	}
	sum := b.fraction.Add(deposit)
	whole := uint64(uint32(sum/unit) - uint32((sum-deposit)/unit)) // right also when the sum has wrapped around
	for ; whole > 0 && b.topUp(t); whole-- {
	}
	if whole > 0 {
		b.put(b.slot(t), whole)
	}
}

// ratio returns what a successful call deposits, in units, rounded up so that five fifths are one. It is zero for
// nothing and for a budget that needs none.
func (b *Budget) ratio() uint64 {
	switch {
	case b.Ratio == 0:
		return (unit + 4) / 5
	case !(b.Ratio > 0) || b.unlimited(): // none also for NaN
		return 0
	}
	return uint64(math.Ceil(min(b.Ratio, 1<<20) * unit))
}

// take withdraws from this level alone: what expires first goes first, the reserve last.
func (b *Budget) take(t int64) (from int64, ok bool) {
	if b.unlimited() {
		return fromUnlimited, true
	}
	oldest := b.slot(t) - slots + 1
	for i, at := int64(0), oldest%slots; i < slots; i, at = i+1, at+1 {
		if at == slots { // cheaper than a division for each slot
			at = 0
		}
		slot := &b.slots[at]
		for old := slot.Load(); old>>slotBits == slotNumber(oldest+i) && old&slotMask > 0; old = slot.Load() {
			if slot.CompareAndSwap(old, old-1) {
				return oldest + i, true
			}
		}
	}
	return fromReserve, b.takeReserve(t)
}

// put adds whole retries to a slot. What is left from a window ago expires; a late caller's retries join a newer slot.
func (b *Budget) put(number int64, n uint64) {
	slot := &b.slots[number%slots]
	for {
		old := slot.Load()
		holds, count := old>>slotBits, old&slotMask
		if mine := slotNumber(number); count == 0 || slotNumber(int64(mine-holds)) < 1<<(63-slotBits) {
			if holds != mine {
				count = 0
			}
			holds = mine
		}
		if slot.CompareAndSwap(old, holds<<slotBits|min(count+n, slotMask)) {
			return
		}
	}
}

func (b *Budget) inWindow(t int64) (n int) {
	now := b.slot(t)
	for number := now - slots + 1; number <= now; number++ {
		if s := b.slots[number%slots].Load(); s>>slotBits == slotNumber(number) {
			n += int(s & slotMask)
		}
	}
	return n
}

// slotNumber returns as many bits of a slot's number as a slot has room for. They come round after 35 years of the
// shortest slots.
func slotNumber(number int64) uint64 { return uint64(number) << slotBits >> slotBits }

// slot returns the number of the slot that an instant lies in.
func (b *Budget) slot(t int64) int64 {
	if b.Window <= 0 { // ten seconds; to divide by a constant is quicker
		return t / int64(time.Second)
	}
	return t / int64(min(max(b.Window/slots, time.Millisecond), 1<<57)) // a window ago, no instant is negative
}

// The reserve is kept as one instant, that at which it would have been empty: it has one retry for each refillTime
// since then, at most its size. So it fills by itself, but in silence only: if it did while retries are denied, it would be
// a floor of so many retries a second, and with ten thousand processes that is enough to keep a service down.

func (b *Budget) reserveSize() int64 { return int64(min(max(cmp.Or(b.Reserve, 10), 0), 1<<30)) }
func (b *Budget) refillTime() int64  { return int64(refill) / b.reserveSize() }

// emptied returns the instant at which the reserve would have been empty, and the one at which it would have to have
// been for the reserve to be full now.
func (b *Budget) emptied(t, empty int64) (at, full int64) {
	full = t - b.reserveSize()*b.refillTime()
	if empty == 0 {
		return full, full
	}
	return min(max(empty, full), t), full // at most t: a clock that was set back must not leave a hole of years
}

func (b *Budget) inReserve(t int64) int {
	if b.reserveSize() == 0 {
		return 0
	}
	at, _ := b.emptied(t, b.reserve.Load())
	return int(max(t-at, 0) / b.refillTime())
}

// topUp adds a retry to the reserve, unless it is full.
func (b *Budget) topUp(t int64) bool {
	if b.reserveSize() == 0 {
		return false
	}
	for {
		old := b.reserve.Load()
		if old == 0 { // full, which is cheap to see
			return false
		}
		at, full := b.emptied(t, old)
		next := at - b.refillTime()
		if next <= full {
			next = 0
		}
		if b.reserve.CompareAndSwap(old, next) {
			return at > full
		}
	}
}

func (b *Budget) takeReserve(t int64) bool {
	if b.reserveSize() == 0 {
		return false
	}
	for {
		old := b.reserve.Load()
		at, _ := b.emptied(t, old)
		if t-at < b.refillTime() {
			// The silence begins anew. In an outage that is written now and then only, for most find it just begun.
			if t-at > b.refillTime()/16 {
				b.reserve.CompareAndSwap(old, t)
			}
			return false
		}
		if b.reserve.CompareAndSwap(old, at+b.refillTime()) {
			return true
		}
	}
}
