package riprap_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// noon is an instant for budgets that are driven by hand.
var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// deposit lets a call succeed at its first attempt.
func deposit(b *riprap.Budget, now time.Time) {
	o := riprap.Operation{Policy: &riprap.Policy{Budget: b}}
	o.Begin(now)
	o.Next(now, nil)
}

// withdraw lets a call fail and reports whether it was granted a retry, which it holds.
func withdraw(b *riprap.Budget, now time.Time) (o *riprap.Operation, granted bool) {
	o = &riprap.Operation{Policy: &riprap.Policy{Budget: b}}
	o.Begin(now)
	wait, _ := o.Next(now, errFlaky)
	return o, wait > 0
}

// drain withdraws until the budget denies and returns how many retries it granted, at most limit.
func drain(b *riprap.Budget, now time.Time, limit int) (n int) {
	for ; n < limit; n++ {
		if _, granted := withdraw(b, now); !granted {
			return n
		}
	}
	return n
}

func deposits(b *riprap.Budget, now time.Time, n int) {
	for range n {
		deposit(b, now)
	}
}

func TestABudgetGrantsWhatItsFieldsSay(t *testing.T) {
	const limit = 10_000
	for _, tt := range []struct {
		name     string
		budget   *riprap.Budget
		calls    int // that succeeded at their first attempt
		want     int
		everMore bool // Left shows that there is no limit
	}{
		{"nil grants every retry", nil, 0, limit, true},
		{"ten without any deposit", &riprap.Budget{}, 0, 10, false},
		{"a full reserve sends deposits to the window", &riprap.Budget{}, 100, 10 + 20, false},
		{"four successes pay for nothing", &riprap.Budget{}, 4, 10, false},
		{"five successes pay for a retry", &riprap.Budget{}, 5, 11, false},
		{"ten at a tenth pay for a retry", &riprap.Budget{Ratio: 0.1}, 10, 11, false},
		{"three at a third pay for a retry", &riprap.Budget{Ratio: 1. / 3}, 3, 11, false},
		{"a ratio of one", &riprap.Budget{Ratio: 1}, 7, 17, false},
		{"a ratio above one", &riprap.Budget{Ratio: 2.5}, 2, 15, false},
		{"a negative ratio deposits nothing", &riprap.Budget{Ratio: -1}, 100, 10, false},
		{"neither does NaN", &riprap.Budget{Ratio: math.NaN()}, 100, 10, false},
		{"nor minus infinity", &riprap.Budget{Ratio: math.Inf(-1)}, 100, 10, false},
		{"infinity is unlimited", &riprap.Budget{Ratio: math.Inf(1)}, 0, limit, true},
		{"also without a reserve", &riprap.Budget{Ratio: math.Inf(1), Reserve: -1}, 0, limit, true},
		{"a huge ratio", &riprap.Budget{Ratio: 1e300, Reserve: -1}, 1, limit, false},
		{"more deposits than a slot has room for", &riprap.Budget{Ratio: 1 << 20, Reserve: -1}, 16, limit, false},
		{"a tiny ratio", &riprap.Budget{Ratio: 1e-300}, 1000, 10, false},
		{"a reserve of three", &riprap.Budget{Reserve: 3}, 0, 3, false},
		{"a negative reserve is none", &riprap.Budget{Reserve: -5}, 0, 0, false},
		{"no reserve leaves the deposits", &riprap.Budget{Reserve: -1}, 100, 20, false},
		{"a huge reserve", &riprap.Budget{Reserve: math.MaxInt}, 0, limit, false},
		{"a huge reserve with deposits above it", &riprap.Budget{Reserve: math.MaxInt}, 100, limit, false},
		{"a tiny window", &riprap.Budget{Window: 1}, 100, 30, false},
		{"a negative window is the default", &riprap.Budget{Window: -1}, 100, 30, false},
		{"a huge window", &riprap.Budget{Window: math.MaxInt64}, 100, 30, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			deposits(tt.budget, noon, tt.calls)
			left := tt.budget.Left(noon)
			if left < tt.want || left != tt.want && tt.want < limit || (left == math.MaxInt) != tt.everMore {
				t.Errorf("after %d successes Left = %d, want %d", tt.calls, left, tt.want)
			}
			if got := drain(tt.budget, noon, limit); got != tt.want {
				t.Errorf("after %d successes the budget grants %d retries, want %d", tt.calls, got, tt.want)
			}
		})
	}
}

func TestOnlyASuccessAtTheFirstAttemptDeposits(t *testing.T) {
	for _, tt := range []struct {
		name    string
		results []error
		want    int
	}{
		{"a first success", []error{nil}, 1},
		{"a success of a retry", []error{errFlaky, nil}, -1},
		{"a success of a second retry", []error{errFlaky, errFlaky, nil}, -2},
		{"a permanent failure", []error{riprap.Permanent(errFlaky)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &riprap.Budget{Ratio: 1}
			o := riprap.Operation{Policy: &riprap.Policy{Budget: b}}
			for _, err := range tt.results {
				o.Begin(noon)
				o.Next(noon, err)
			}
			if got := b.Left(noon) - 10; got != tt.want {
				t.Errorf("the call changed the budget by %d, want %d", got, tt.want)
			}
		})
	}
}

func TestDepositsFillTheReserveBeforeTheWindow(t *testing.T) {
	b := &riprap.Budget{Ratio: 1, Reserve: 3}
	drain(b, noon, 3)
	deposits(b, noon, 5)
	if got := b.Left(noon); got != 5 {
		t.Fatalf("after five deposits Left = %d, want 5", got)
	}
	later := noon.Add(time.Minute)
	if got := b.Left(later); got != 3 {
		t.Errorf("a minute later Left = %d, want the 3 of the reserve: the window has expired", got)
	}
}

func TestWithdrawalsTakeTheReserveLast(t *testing.T) {
	b := &riprap.Budget{Ratio: 1, Reserve: 3}
	deposits(b, noon, 5)
	if got := drain(b, noon, 5); got != 5 {
		t.Fatalf("the budget grants %d of 5 retries, want 5", got)
	}
	if got := b.Left(noon.Add(time.Minute)); got != 3 {
		t.Errorf("a minute later Left = %d, want 3: the reserve was not touched", got)
	}
}

func TestTheWindowSlidesWithoutACliff(t *testing.T) {
	for name, window := range map[string]time.Duration{
		"default": 0, "a minute": time.Minute, "the shortest": 1, "a year": 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			b := &riprap.Budget{Ratio: 1, Reserve: -1, Window: window}
			slot := time.Second
			switch window {
			case time.Minute:
				slot = 6 * time.Second
			case 1:
				slot = time.Millisecond
			case 365 * 24 * time.Hour:
				slot = 365 * 24 * time.Hour / 10
			}
			var now time.Time
			for i := range 10 {
				now = noon.Add(time.Duration(i) * slot)
				deposit(b, now)
			}
			// At no moment may more than two of the ten go, since slots need not begin with the first deposit.
			for left, i := b.Left(now), 0; left > 0; i++ {
				if i > 12 {
					t.Fatalf("%d retries are still there after more than a window", left)
				}
				now = now.Add(slot)
				if got := b.Left(now); left-got > 2 || got > left {
					t.Fatalf("within a tenth of a window Left fell from %d to %d", left, got)
				} else {
					left = got
				}
			}
		})
	}
}

func TestADepositLastsNineTenthsOfTheWindowAtLeastAndTheWindowAtMost(t *testing.T) {
	for offset := range 20 {
		b := &riprap.Budget{Ratio: 1, Reserve: -1}
		now := noon.Add(time.Duration(offset) * 50 * time.Millisecond)
		deposit(b, now)
		if got := b.Left(now.Add(9*time.Second - 1)); got != 1 {
			t.Errorf("after 9s Left = %d, want 1", got)
		}
		if got := b.Left(now.Add(10 * time.Second)); got != 0 {
			t.Errorf("after 10s Left = %d, want 0", got)
		}
		if _, granted := withdraw(b, now.Add(10*time.Second)); granted {
			t.Error("after 10s the budget grants a retry")
		}
		if _, granted := withdraw(b, now.Add(9*time.Second-1)); !granted {
			t.Error("after 9s the budget denies a retry")
		}
	}
}

func TestAnHourOfSilenceFillsTheReserve(t *testing.T) {
	b := &riprap.Budget{}
	if got := drain(b, noon, 20); got != 10 {
		t.Fatalf("a new budget grants %d retries, want 10", got)
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{
		{0, 0}, {6*time.Minute - 1, 0}, {6 * time.Minute, 1}, {12*time.Minute - 1, 1}, {30 * time.Minute, 5},
		{time.Hour - 1, 9}, {time.Hour, 10}, {1000 * time.Hour, 10},
	} {
		if got := b.Left(noon.Add(tt.after)); got != tt.want {
			t.Errorf("after %v of silence Left = %d, want %d", tt.after, got, tt.want)
		}
	}
	if got := drain(b, noon.Add(1000*time.Hour), 20); got != 10 {
		t.Errorf("after 1000h of silence the budget grants %d retries, want 10", got)
	}
}

func TestABudgetRecoversFromAnOutageByItsSuccesses(t *testing.T) {
	b := &riprap.Budget{}
	if got := drain(b, noon, 20); got != 10 {
		t.Fatalf("during the outage the budget grants %d retries, want 10", got)
	}
	deposits(b, noon.Add(time.Second), 1000)
	if _, granted := withdraw(b, noon.Add(2*time.Second)); !granted {
		t.Error("after 1000 successes the budget denies a retry")
	}
}

func TestRetriesFadeInAnOutageHoweverLongItLasts(t *testing.T) {
	b := &riprap.Budget{}
	granted := 0
	for i := range 3600 * 10 { // ten calls a second for an hour, all failing
		if _, ok := withdraw(b, noon.Add(time.Duration(i)*100*time.Millisecond)); ok {
			granted++
		}
	}
	if granted != 10 {
		t.Errorf("in an hour without a success the budget grants %d retries, want the 10 of the reserve", granted)
	}
}

// A reserve that filled while retries are denied would be a floor: ten thousand processes, each with a call now and then,
// would make so many retries for ever that a service has no chance.
func TestReserveFillsInSilenceOnly(t *testing.T) {
	for every, want := range map[time.Duration]int{ // retries in ten hours, beyond the ten of the start
		time.Second: 0, 30 * time.Second: 0, 5 * time.Minute: 0,
		7 * time.Minute: 85, time.Hour: 10, // each that is asked for
	} {
		b := &riprap.Budget{}
		drain(b, noon, 20)
		granted := 0
		for at := every; at <= 10*time.Hour; at += every {
			if _, ok := withdraw(b, noon.Add(at)); ok {
				granted++
			}
		}
		if granted != want {
			t.Errorf("with a failed call in %v the budget grants %d retries in ten hours, want %d", every, granted, want)
		}
	}
}

func TestADeniedRetryDelaysTheReserveByNoMoreThanItsOwnSilence(t *testing.T) {
	b := &riprap.Budget{}
	drain(b, noon, 20)
	if _, granted := withdraw(b, noon.Add(5*time.Minute)); granted {
		t.Fatal("five minutes after the reserve was used up, a retry is granted")
	}
	for after, want := range map[time.Duration]int{5 * time.Minute: 0, 6 * time.Minute: 1, time.Hour: 10} {
		if got := b.Left(noon.Add(5*time.Minute + after)); got != want {
			t.Errorf("%v after the denied retry Left = %d, want %d", after, got, want)
		}
	}
}

func TestAFailingServiceLeavesTheBudgetsOfOthersAlone(t *testing.T) {
	process := &riprap.Budget{Reserve: 100}
	a, b := &riprap.Budget{Parent: process}, &riprap.Budget{Parent: process}
	for i := range 6000 { // a hundred calls a second for a minute, all failing
		withdraw(a, noon.Add(time.Duration(i)*10*time.Millisecond))
	}
	if _, granted := withdraw(b, noon.Add(time.Minute)); !granted {
		t.Error("while one service fails, the other's first retry is denied")
	}
}

func TestABudgetWorksInEveryAge(t *testing.T) {
	for _, year := range []int{1, 1700, 1970, 2000, 2026, 2100, 9999} {
		b := &riprap.Budget{Ratio: 1}
		now := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		deposits(b, now, 4)
		if got := b.Left(now); got != 14 {
			t.Errorf("in %d Left = %d, want 14", year, got)
		}
		now = now.Add(10 * time.Second)
		if got := drain(b, now, 20); got != 10 {
			t.Errorf("in %d, when the window has expired, the budget grants %d retries, want 10", year, got)
		}
		if got := b.Left(now.Add(time.Hour)); got != 10 {
			t.Errorf("in %d, after an hour of silence, Left = %d, want 10", year, got)
		}
	}
}

func TestAClockThatGoesBackGrantsNothingTwice(t *testing.T) {
	b := &riprap.Budget{Ratio: 1, Reserve: 5}
	deposits(b, noon, 5)
	granted := 0
	for i := range 10_000 {
		now := noon.Add(time.Duration(i%7) * -time.Minute)
		if _, ok := withdraw(b, now); ok {
			granted++
		}
	}
	if granted > 10 {
		t.Errorf("under a clock that jumps, %d retries were granted, want 10 at most", granted)
	}
	// What is deposited at an earlier time may last longer. It is neither lost nor doubled.
	deposits(b, noon.Add(-time.Hour), 3)
	if got := b.Left(noon.Add(time.Hour)); got > 5 {
		t.Errorf("an hour later Left = %d, want the 5 of the reserve at most", got)
	}
}

func TestALateDepositJoinsTheNewerOnes(t *testing.T) {
	b := &riprap.Budget{Ratio: 1, Reserve: -1}
	deposits(b, noon, 3)
	deposit(b, noon.Add(-10*time.Second)) // the same slot, a window earlier
	if got := b.Left(noon); got != 4 {
		t.Errorf("Left = %d, want 4", got)
	}
}

func TestABudgetOutlastsItsCounters(t *testing.T) {
	const ratio = 1 << 20
	b := &riprap.Budget{Ratio: ratio, Reserve: -1}
	now := noon
	for i := range 3 * 4096 { // as much as thirty thousand million successes at the default ratio
		now = now.Add(10 * time.Second)
		deposit(b, now)
		if got := b.Left(now); got != ratio {
			t.Fatalf("after deposit %d Left = %d, want %d", i+1, got, ratio)
		}
	}
}

// Times without a monotonic clock, of a simulation or a stored message, may be set back.
func TestABudgetFillsAgainAfterItsClockWasSetBack(t *testing.T) {
	b := &riprap.Budget{}
	late := noon.AddDate(1, 0, 0)
	o := riprap.Operation{Policy: &riprap.Policy{Budget: b, MaxAttempts: -1}, Attempts: 1}
	for {
		if wait, _ := o.Next(late, errors.New("down")); wait == 0 {
			break
		}
		o.Begin(late)
	}
	for range 100 {
		deposit(b, noon)
	}
	if got, want := b.Left(noon), 20; got < want {
		t.Errorf("after 100 successes a year before: %d left, want at least %d", got, want)
	}
}
