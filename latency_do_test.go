package riprap_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

// asleep is an operation that takes so long, unless its context ends first.
func asleep(took time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(took):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestDoObservesEachAttempt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		trace *riprap.Trace // there are two ways through Do
	}{{"untraced", nil}, {"traced", &riprap.Trace{}}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &riprap.Latency{}
				p := &riprap.Policy{Latency: l, AttemptTimeout: 100 * time.Millisecond, Trace: tt.trace}
				tries := 0
				err := riprap.Do(t.Context(), p, func(ctx context.Context) error {
					switch tries++; tries {
					case 1:
						return asleep(time.Minute, nil)(ctx) // runs into its bound
					case 2:
						return asleep(time.Millisecond, errFlaky)(ctx) // fails
					default:
						return asleep(20*time.Millisecond, nil)(ctx)
					}
				})
				if err != nil || tries != 3 {
					t.Fatalf("Do = %v after %d tries, want success at the third", err, tries)
				}
				if err := riprap.Do(t.Context(), p, asleep(20*time.Millisecond, nil)); err != nil {
					t.Fatal(err)
				}
				got := l.Snapshot(time.Now())
				if got.Count != 3 || !about(got.P50, 20*time.Millisecond) || !about(got.P99, 100*time.Millisecond) || got.TimedOut != 1.0/3 {
					t.Errorf("Snapshot = %+v, want two successes of 20ms and a timeout of 100ms", got)
				}
			})
		})
	}
}

func TestDoIsBoundedByWhatIsUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &riprap.Latency{}
		p := &riprap.Policy{MaxAttempts: 1, Latency: l, AttemptTimeout: time.Minute}
		for range 200 {
			if err := riprap.Do(t.Context(), p, asleep(20*time.Millisecond, nil)); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		err := riprap.Do(t.Context(), p, asleep(time.Hour, nil))
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || !about(took, 60*time.Millisecond) {
			t.Errorf("a call that hangs ended with %v after %v, want a timeout after 60ms", err, took)
		}
		p.Latency = nil
		begun = time.Now()
		err = riprap.Do(t.Context(), p, asleep(time.Hour, nil))
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("without Latency it ended with %v after %v, want a timeout after 1m", err, took)
		}
	})
}

func TestDoTellsNothingOfACallerWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &riprap.Latency{}
		p := &riprap.Policy{Latency: l, AttemptTimeout: time.Minute}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		riprap.Do(ctx, p, asleep(time.Hour, nil))
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		riprap.Do(ctx, p, asleep(time.Hour, nil))
		if got := l.Snapshot(time.Now()); got.Count != 0 {
			t.Errorf("after a caller's deadline and a caller's cancel Snapshot = %+v, want no sample", got)
		}
	})
}

func TestManyGoroutinesLoseNoSampleOfALatency(t *testing.T) {
	const goroutines, each = 16, 5000
	l := &riprap.Latency{}
	p := &riprap.Policy{Latency: l}
	var clock, timedOut atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				// The clock advances by 40 s in all, so that the window moves and forgets nothing.
				now := noon.Add(time.Duration(clock.Add(int64(40 * time.Second / (goroutines * each)))))
				o := riprap.Operation{Policy: p}
				until := o.Begin(now)
				switch {
				case i%200 == g && !until.IsZero():
					o.Observe(until, errFlaky)
					timedOut.Add(1)
				default:
					o.Observe(now.Add(20*time.Millisecond), nil)
				}
				if i%500 == 0 {
					l.Snapshot(now)
				}
			}
		})
	}
	all.Wait()
	got := l.Snapshot(noon.Add(40 * time.Second))
	if got.Count != goroutines*each {
		t.Errorf("%d samples were told, Count is %d", goroutines*each, got.Count)
	}
	if want := float64(timedOut.Load()) / (goroutines * each); timedOut.Load() == 0 || got.TimedOut != want {
		t.Errorf("the share that timed out is %v, want %v", got.TimedOut, want)
	}
}

func TestTheFirstSamplesOfASlotAreAllCounted(t *testing.T) {
	const goroutines = 8
	for range 2000 {
		l := &riprap.Latency{}
		start := make(chan struct{})
		var all sync.WaitGroup
		for range goroutines {
			o := riprap.Operation{Policy: &riprap.Policy{Latency: l}}
			o.Begin(noon)
			all.Go(func() {
				<-start
				o.Observe(noon.Add(time.Millisecond), nil)
			})
		}
		close(start)
		all.Wait()
		if got := l.Snapshot(noon).Count; got != goroutines {
			t.Fatalf("%d goroutines recorded a first sample, Count is %d", goroutines, got)
		}
	}
}

// Everything at once, for the race detector.
func TestALatencyMayBeUsedByManyGoroutines(t *testing.T) {
	l := &riprap.Latency{Start: riprap.LatencySnapshot{Bound: time.Second}}
	p := &riprap.Policy{Latency: l, AttemptTimeout: time.Minute}
	var clock atomic.Int64
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 2000 {
				now := noon.Add(time.Duration(clock.Add(int64(10 * time.Millisecond))))
				o := riprap.Operation{Policy: p}
				until := o.Begin(now)
				if got := until.Sub(now); got < 10*time.Millisecond || got > time.Minute {
					t.Errorf("the bound is %v, want 10ms to 1m", got)
				}
				switch {
				case (i/100)%4 == 3:
					o.Observe(until, errFlaky)
				case i%7 == g%7:
					o.Cancel(errShutdown, errFlaky)
				default:
					o.Observe(now.Add(20*time.Millisecond), nil)
				}
				if i%10 == 0 {
					l.Snapshot(now)
					l.P50()
				}
			}
		})
	}
	all.Wait()
	if got := l.Snapshot(noon.Add(time.Duration(clock.Load()))); got.Count < 0 || got.P50 > got.P99 {
		t.Errorf("Snapshot = %+v", got)
	}
}
