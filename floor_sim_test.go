package riprap_test

import "time"

// A floor is the kind of budget that several proxies and RPC libraries have, to compare riprap's with: the deposits
// of a sliding window less its withdrawals, on top of so many retries a second that are always allowed. A call whose
// first attempt succeeds deposits a fifth of a retry here too.
type floor struct {
	perSecond int
	parent    *floor
	net       [10]int // fifths of a retry in each second of the window
	second    [10]time.Duration
}

func (f *floor) deposit(now time.Duration) {
	for ; f != nil; f = f.parent {
		f.add(now, 1)
	}
}

func (f *floor) withdraw(now time.Duration) bool {
	for level := f; level != nil; level = level.parent {
		left := 5 * 10 * level.perSecond
		for i, second := range level.second {
			if now/time.Second-second < 10 {
				left += level.net[i]
			}
		}
		if left < 5 {
			return false
		}
	}
	for ; f != nil; f = f.parent {
		f.add(now, -5)
	}
	return true
}

func (f *floor) add(now time.Duration, fifths int) {
	second := now / time.Second
	i := second % 10
	if f.second[i] != second {
		f.second[i], f.net[i] = second, 0
	}
	f.net[i] += fifths
}
