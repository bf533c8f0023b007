package riprap_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestManyGoroutinesNeverOverdrawABudget(t *testing.T) {
	parent := &riprap.Budget{Ratio: 1, Reserve: 200}
	budget := &riprap.Budget{Ratio: 0.5, Reserve: 50, Parent: parent}
	var clock, spent, deposited atomic.Int64
	var all sync.WaitGroup
	for g := range 100 {
		all.Go(func() {
			for i := range 200 {
				// The clock advances by 5 s in all, half of a window and too little for the reserve.
				now := noon.Add(time.Duration(clock.Add(int64(250 * time.Microsecond))))
				if (g+i)%4 == 0 {
					deposit(budget, now)
					deposited.Add(1)
					continue
				}
				o, granted := withdraw(budget, now)
				switch {
				case granted && i%2 == 0:
					o.Begin(now)
					spent.Add(1)
				case granted:
					o.Cancel(errShutdown, errFlaky)
				}
			}
		})
	}
	all.Wait()
	end := noon.Add(time.Duration(clock.Load()))
	left := int64(budget.Left(end))
	if left < 0 {
		t.Errorf("Left = %d, want nothing below zero", left)
	}
	paid := 50 + deposited.Load()/2
	if spent.Load()+left > paid {
		t.Errorf("%d retries were spent and %d are left, want %d in all at most", spent.Load(), left, paid)
	}
	budget.Parent = nil
	drain(budget, end, 1<<20)
	if got := budget.Left(end); got != 0 {
		t.Errorf("a drained budget has %d left, want 0", got)
	}
}

func TestManyGoroutinesGetEachRetryOnce(t *testing.T) {
	const retries = 20_000
	for name, fresh := range map[string]func() *riprap.Budget{
		"of the reserve": func() *riprap.Budget { return &riprap.Budget{Reserve: retries} },
		"of the window": func() *riprap.Budget {
			b := &riprap.Budget{Ratio: retries, Reserve: -1}
			deposit(b, noon)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				b := fresh()
				var granted atomic.Int64
				var all sync.WaitGroup
				begin := make(chan struct{})
				for range 4 {
					all.Go(func() {
						<-begin
						granted.Add(int64(drain(b, noon, 2*retries)))
					})
				}
				close(begin)
				all.Wait()
				if got := granted.Load(); got != retries {
					t.Fatalf("the budget granted %d retries, want %d", got, retries)
				}
			}
		})
	}
}

func TestNoRetryIsLostWhenManyGoBackAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		budget *riprap.Budget
		calls  int
	}{
		"to the reserve":         {&riprap.Budget{Reserve: 40}, 0},
		"to the window":          {&riprap.Budget{Ratio: 1, Reserve: -1}, 40},
		"to both, in two levels": {&riprap.Budget{Ratio: 1, Reserve: 20, Parent: &riprap.Budget{Reserve: 40}}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			deposits(tt.budget, noon, tt.calls)
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for range 500 {
						if o, granted := withdraw(tt.budget, noon); granted {
							o.Cancel(errShutdown, errFlaky)
						}
					}
				})
			}
			all.Wait()
			if got := tt.budget.Left(noon); got != 40 {
				t.Errorf("Left = %d, want all 40", got)
			}
		})
	}
}
