package riprap_test

import (
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestARetryGoesBackToWhereItCameFrom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget *riprap.Budget
		calls  int
		later  time.Duration
		want   int
	}{
		{"to the reserve", &riprap.Budget{Ratio: -1, Reserve: 3}, 0, 0, 3},
		{"to the reserve, at most until it is full", &riprap.Budget{Ratio: -1, Reserve: 3}, 0, 2 * time.Hour, 3},
		{"to its slot of the window", &riprap.Budget{Ratio: 1, Reserve: -1}, 3, 5 * time.Second, 3},
		{"to nowhere when its slot has expired", &riprap.Budget{Ratio: 1, Reserve: -1}, 3, 10 * time.Second, 0},
		{"to an unlimited budget", &riprap.Budget{Ratio: math.Inf(1)}, 0, 0, math.MaxInt},
		{"to every level", &riprap.Budget{Ratio: 1, Reserve: -1, Parent: &riprap.Budget{Ratio: -1, Reserve: 2}}, 3, 0, 2},
		{"to the parent of an unlimited one", &riprap.Budget{Ratio: math.Inf(1), Parent: &riprap.Budget{Reserve: 2}}, 0, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			deposits(tt.budget, noon, tt.calls)
			before := tt.budget.Left(noon)
			o, granted := withdraw(tt.budget, noon)
			if !granted {
				t.Fatal("the budget denies a retry")
			}
			if got := tt.budget.Left(noon); before < math.MaxInt && got != before-1 {
				t.Errorf("while the retry is held Left = %d, want %d", got, before-1)
			}
			o.Cancel(errShutdown, errFlaky)
			if got := tt.budget.Left(noon.Add(tt.later)); got != tt.want {
				t.Errorf("after the retry went back Left = %d, want %d", got, tt.want)
			}
			o.Cancel(errShutdown, errFlaky)
			if got := tt.budget.Left(noon.Add(tt.later)); got != tt.want {
				t.Errorf("after a second Cancel Left = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestARetryDoesNotGoBackToASlotThatWasUsedAgain(t *testing.T) {
	b := &riprap.Budget{Ratio: 1, Reserve: -1}
	deposits(b, noon, 2)
	o, _ := withdraw(b, noon)
	later := noon.Add(10 * time.Second) // the same slot, a window later
	deposit(b, later)
	o.Cancel(errShutdown, errFlaky)
	if got := b.Left(later); got != 1 {
		t.Errorf("Left = %d, want 1: what was held has expired", got)
	}
}

func TestARetryThatIsBegunIsSpent(t *testing.T) {
	b := &riprap.Budget{}
	o, _ := withdraw(b, noon)
	o.Begin(noon)
	o.Cancel(errShutdown, errFlaky)
	if got := b.Left(noon); got != 9 {
		t.Errorf("Left = %d, want 9", got)
	}
}

func TestEveryBudgetOfAChainMustAllow(t *testing.T) {
	chain := func(reserves ...int) *riprap.Budget {
		var b *riprap.Budget
		for _, n := range reserves {
			b = &riprap.Budget{Reserve: n, Parent: b}
		}
		return b
	}
	loop := &riprap.Budget{}
	loop.Parent = &riprap.Budget{Parent: loop}
	self := &riprap.Budget{Ratio: math.Inf(1)}
	self.Parent = self
	for _, tt := range []struct {
		name   string
		budget *riprap.Budget
		want   int
	}{
		{"two levels, the upper scarce", chain(3, 10), 3},
		{"two levels, the lower scarce", chain(10, 3), 3},
		{"four levels", chain(9, 8, 7, 6), 6},
		{"four levels, the third empty", chain(9, -1, 7, 6), 0},
		{"five levels are denied", chain(9, 9, 9, 9, 9), 0},
		{"a loop is denied", loop, 0},
		{"a budget above itself is denied", self, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.budget.Left(noon); got != tt.want {
				t.Errorf("Left = %d, want %d", got, tt.want)
			}
			if got := drain(tt.budget, noon, 100); got != tt.want {
				t.Errorf("the chain grants %d retries, want %d", got, tt.want)
			}
		})
	}
}

func TestARefusalAboveCostsNothingBelow(t *testing.T) {
	top := &riprap.Budget{Reserve: -1}
	middle := &riprap.Budget{Ratio: 1, Reserve: -1, Parent: top}
	bottom := &riprap.Budget{Reserve: 5, Parent: middle}
	deposits(middle, noon, 3)
	if got := drain(bottom, noon, 10); got != 0 {
		t.Fatalf("the chain grants %d retries, want 0", got)
	}
	top.Parent, middle.Parent, bottom.Parent = nil, nil, nil // to look at each alone
	if got := [...]int{bottom.Left(noon), middle.Left(noon), top.Left(noon)}; got != [...]int{5, 3, 0} {
		t.Errorf("the levels have %v, want [5 3 0]", got)
	}
}

func TestDepositsReachEveryBudgetOfAChain(t *testing.T) {
	top := &riprap.Budget{Ratio: 1, Reserve: -1}
	middle := &riprap.Budget{Ratio: 1, Reserve: -1, Parent: top}
	bottom := &riprap.Budget{Ratio: 1, Reserve: -1, Parent: middle}
	deposits(bottom, noon, 4)
	for _, b := range []*riprap.Budget{bottom, middle, top} {
		if got := b.Left(noon); got != 4 {
			t.Errorf("a level of the chain has %d, want 4", got)
		}
	}
}
