package riprap_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// observe tells l of so many attempts that began at the time now and succeeded after took.
func observe(l *riprap.Latency, now time.Time, n int, took time.Duration) {
	o := riprap.Operation{Policy: &riprap.Policy{Latency: l}}
	for range n {
		o.Begin(now)
		o.Observe(now.Add(took), nil)
	}
}

// timeOut tells l of an attempt that began at the time now and ran into its bound, and returns how long it was given.
func timeOut(t *testing.T, l *riprap.Latency, now time.Time) time.Duration {
	t.Helper()
	o := riprap.Operation{Policy: &riprap.Policy{Latency: l}}
	until := o.Begin(now)
	if until.IsZero() {
		t.Fatalf("at %v there is no bound to run into", now)
	}
	o.Observe(until, errFlaky)
	return until.Sub(now)
}

// bound returns what bounds an attempt at the time now, zero if nothing does.
func bound(p *riprap.Policy, now time.Time) time.Duration {
	o := riprap.Operation{Policy: p}
	until := o.Begin(now)
	if until.IsZero() {
		return 0
	}
	return until.Sub(now)
}

// armed returns a Latency that has seen 1000 attempts of that time, and a time at which its bound follows them.
func armed(l *riprap.Latency, took time.Duration) (*riprap.Latency, time.Time) {
	observe(l, noon, 1000, took)
	return l, noon.Add(time.Second)
}

// about reports whether a figure is within one percent of what it should be.
func about(got, want time.Duration) bool { return (got - want).Abs() <= want/100 }

func TestTheBoundIsAMultipleOfTheP99(t *testing.T) {
	for _, tt := range []struct {
		name    string
		latency *riprap.Latency
		ceiling time.Duration
		want    time.Duration
	}{
		{"three times", &riprap.Latency{}, 0, 300 * time.Millisecond},
		{"twice", &riprap.Latency{Factor: 2}, 0, 200 * time.Millisecond},
		{"less than once is once", &riprap.Latency{Factor: 0.1}, 0, 100 * time.Millisecond},
		{"NaN times is once", &riprap.Latency{Factor: math.NaN()}, 0, 100 * time.Millisecond},
		{"only observed", &riprap.Latency{Factor: -1}, 0, 0},
		{"only observed, with a start", &riprap.Latency{Factor: -1, Start: riprap.LatencySnapshot{Bound: time.Second}}, 0, 0},
		{"only observed, below AttemptTimeout", &riprap.Latency{Factor: -1}, time.Second, time.Second},
		{"AttemptTimeout is the ceiling", &riprap.Latency{}, 150 * time.Millisecond, 150 * time.Millisecond},
		{"a negative AttemptTimeout is none", &riprap.Latency{}, -1, 300 * time.Millisecond},
		{"at least Min", &riprap.Latency{Min: time.Second}, 0, time.Second},
		{"AttemptTimeout is stronger than Min", &riprap.Latency{Min: time.Second}, 500 * time.Millisecond, 500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := bound(&riprap.Policy{Latency: tt.latency}, noon); tt.latency.Factor < 0 && got != 0 {
				t.Errorf("before the first sample the bound is %v, want none", got)
			}
			l, now := armed(tt.latency, 100*time.Millisecond)
			if got := bound(&riprap.Policy{Latency: l, AttemptTimeout: tt.ceiling}, now); !about(got, tt.want) {
				t.Errorf("the bound is %v, want %v", got, tt.want)
			}
		})
	}
	for min, want := range map[time.Duration]time.Duration{0: 10 * time.Millisecond, -1: 3 * time.Millisecond} {
		l, now := armed(&riprap.Latency{Min: min}, time.Millisecond)
		if got := bound(&riprap.Policy{Latency: l}, now); !about(got, want) {
			t.Errorf("a service that takes 1ms, Min %v: the bound is %v, want %v", min, got, want)
		}
	}
}

func TestFewSamplesArmNothing(t *testing.T) {
	l, now := &riprap.Latency{}, noon.Add(time.Second)
	p := &riprap.Policy{Latency: l, AttemptTimeout: time.Minute}
	observe(l, noon, 199, 20*time.Millisecond)
	if got := bound(p, now); got != time.Minute || l.P50() != 0 {
		t.Errorf("after 199 samples the bound is %v and P50 %v, want AttemptTimeout and none", got, l.P50())
	}
	observe(l, now, 1, 20*time.Millisecond)
	if got := bound(p, now.Add(time.Second)); !about(got, 60*time.Millisecond) || !about(l.P50(), 20*time.Millisecond) {
		t.Errorf("after 200 samples the bound is %v and P50 %v, want 60ms and 20ms", got, l.P50())
	}
}

func TestAPolicyWithoutLatencyObservesNothing(t *testing.T) {
	o := riprap.Operation{Policy: &riprap.Policy{}}
	o.Begin(noon)
	o.Observe(noon.Add(time.Second), nil)
	l := &riprap.Latency{}
	with := &riprap.Policy{Latency: l}
	o = riprap.Operation{Policy: with}
	o.Begin(noon)
	o.Policy = nil // a driver may change it
	o.Observe(noon.Add(time.Second), nil)
	o.Policy = with
	o.Observe(noon.Add(time.Second), nil)
	if got := l.Snapshot(noon).Count; got != 0 {
		t.Errorf("an attempt whose policy lost its Latency left %d samples, want 0", got)
	}
}

func TestAnAttemptIsObservedOnce(t *testing.T) {
	l := &riprap.Latency{}
	o := riprap.Operation{Policy: &riprap.Policy{Latency: l}}
	o.Observe(noon, nil) // before there was any
	o.Begin(noon)
	o.Observe(noon.Add(time.Millisecond), nil)
	o.Observe(noon.Add(time.Second), nil)
	o.Next(noon.Add(time.Second), nil)
	if got := l.Snapshot(noon); got.Count != 1 || !about(got.P99, time.Millisecond) {
		t.Errorf("Observe and Next of one attempt: Snapshot = %+v, want one sample of 1ms", got)
	}
}

func TestSuccessesAndTimeoutsAreSamplesAndNothingElse(t *testing.T) {
	const bound = 100 * time.Millisecond
	for _, tt := range []struct {
		name     string
		took     time.Duration
		err      error
		cancel   bool
		count    int
		timedOut float64
	}{
		{"a success", time.Millisecond, nil, false, 1, 0},
		{"a success after the bound", time.Second, nil, false, 1, 0},
		{"an error at once", time.Millisecond, errFlaky, false, 0, 0},
		{"an error just before the bound", bound - 1, errFlaky, false, 0, 0},
		{"a timeout of the operation's own", 30 * time.Millisecond, fmt.Errorf("ping: %w", context.DeadlineExceeded), false, 1, 1},
		{"an error at the bound", bound, errFlaky, false, 1, 1},
		{"a caller who left", time.Second, errFlaky, true, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &riprap.Latency{}
			o := riprap.Operation{Policy: &riprap.Policy{Latency: l, AttemptTimeout: bound}}
			o.Begin(noon)
			if tt.cancel {
				o.Cancel(errShutdown, tt.err)
			} else {
				o.Next(noon.Add(tt.took), tt.err)
			}
			got := l.Snapshot(noon)
			if got.Count != tt.count || got.TimedOut != tt.timedOut || tt.count > 0 && !about(got.P99, tt.took) {
				t.Errorf("Snapshot = %+v, want %d samples, of which %v timed out", got, tt.count, tt.timedOut)
			}
		})
	}
}

func TestATimeoutThatWasGivenLessThanTheMedianSaysNothing(t *testing.T) {
	l, now := armed(&riprap.Latency{}, 100*time.Millisecond)
	for left, want := range map[time.Duration]float64{90 * time.Millisecond: 0, 110 * time.Millisecond: 1} {
		before := l.Snapshot(now)
		o := riprap.Operation{Policy: &riprap.Policy{Latency: l}, Deadline: now.Add(left)}
		o.Begin(now)
		o.Observe(now.Add(left), errFlaky)
		after := l.Snapshot(now)
		if got := float64(after.Count)*after.TimedOut - float64(before.Count)*before.TimedOut; math.Abs(got-want) > 1e-9 {
			t.Errorf("with %v left before the deadline %v timeouts were counted, want %v", left, got, want)
		}
	}
}

func TestOutliersMoveTheBoundByNoMoreThanAStep(t *testing.T) {
	for _, outliers := range []int{1, 3, 30} {
		t.Run(fmt.Sprint(outliers), func(t *testing.T) {
			l, now := armed(&riprap.Latency{}, 20*time.Millisecond)
			before := bound(&riprap.Policy{Latency: l}, now)
			observe(l, now, outliers, 30*time.Second)
			for range 5 {
				now = now.Add(time.Second)
				after := bound(&riprap.Policy{Latency: l}, now)
				if after > before*3/2 || after < before {
					t.Fatalf("%d samples of 30s among 1000 of 20ms moved the bound from %v to %v in one refresh, want half of it at most", outliers, before, after)
				}
				if outliers < 10 && after != before {
					t.Fatalf("%d samples of 30s among 1000 moved the bound from %v to %v, want no move by less than a hundredth", outliers, before, after)
				}
				before = after
			}
			if outliers == 30 && before < 400*time.Millisecond {
				t.Errorf("after five refreshes with 3 %% of 30s the bound is %v, want more than 400ms", before)
			}
		})
	}
}

func TestTheBoundFollowsAFasterServiceInSteps(t *testing.T) {
	l, now := armed(&riprap.Latency{}, time.Second)
	before := bound(&riprap.Policy{Latency: l}, now)
	for range 90 { // a minute until the window has only fast ones, and eighteen steps of a fifth
		now = now.Add(time.Second)
		observe(l, now, 50, 20*time.Millisecond)
		after := bound(&riprap.Policy{Latency: l}, now)
		if after > before || after < before*4/5 {
			t.Fatalf("the bound moved from %v to %v in one refresh, want a fifth of it at most, and down", before, after)
		}
		before = after
	}
	if !about(before, 60*time.Millisecond) {
		t.Errorf("90 s after the service became faster the bound is %v, want 60ms", before)
	}
}

func TestMoreThanTwoPercentOfTimeoutsLiftTheBoundUntilNoMoreThanOnePercentRemain(t *testing.T) {
	l, now := armed(&riprap.Latency{}, 20*time.Millisecond)
	p := &riprap.Policy{Latency: l}
	for i := range 20 { // of 1020
		if got := timeOut(t, l, now); !about(got, 60*time.Millisecond) {
			t.Fatalf("after %d timeouts of 1000 attempts the bound is %v, want 60ms", i, got)
		}
		observe(l, now, 1, 20*time.Millisecond) // no ten in a row
	}
	timeOut(t, l, now)
	if got := bound(p, now); got != 0 {
		t.Fatalf("after 21 timeouts of 1041 attempts the bound is %v, want none at once", got)
	}
	now = now.Add(time.Second)
	observe(l, now, 1000, 20*time.Millisecond)
	now = now.Add(time.Second)
	if got := bound(p, now); got != 0 {
		t.Fatalf("after 21 timeouts of 2041 attempts the bound is %v, want none", got)
	}
	observe(l, now, 60, 20*time.Millisecond)
	now = now.Add(time.Second)
	if got := bound(p, now); !about(got, 60*time.Millisecond) {
		t.Errorf("after 21 timeouts of 2101 attempts the bound is %v, want 60ms", got)
	}
}

func TestTenTimeoutsInARowForgetWhatWasBefore(t *testing.T) {
	l, now := &riprap.Latency{}, noon.Add(time.Second)
	observe(l, noon, 100_000, 20*time.Millisecond)
	p := &riprap.Policy{Latency: l}
	bound(p, now)
	for range 9 {
		timeOut(t, l, now)
	}
	observe(l, now, 1, 20*time.Millisecond)
	for range 9 {
		timeOut(t, l, now)
	}
	if got := l.Snapshot(now); got.Count != 100_019 || got.Bound == 0 {
		t.Fatalf("nine timeouts in a row, twice: Snapshot = %+v, want all samples and a bound", got)
	}
	timeOut(t, l, now)
	if got := l.Snapshot(now); got != (riprap.LatencySnapshot{}) || l.P50() != 0 {
		t.Errorf("ten timeouts in a row: Snapshot = %+v, P50 %v, want nothing", got, l.P50())
	}
	observe(l, now, 200, 400*time.Millisecond)
	if got := bound(p, now.Add(time.Second)); !about(got, 1200*time.Millisecond) {
		t.Errorf("after 200 samples of 400ms the bound is %v, want three times as much", got)
	}
}

func TestAnIdleHourForgets(t *testing.T) {
	for _, idle := range []time.Duration{time.Minute, time.Hour, 100 * 24 * time.Hour} {
		l, now := armed(&riprap.Latency{Start: riprap.LatencySnapshot{P50: time.Second, Bound: 2 * time.Second}}, 20*time.Millisecond)
		p := &riprap.Policy{Latency: l, AttemptTimeout: time.Minute}
		if got := bound(p, now); !about(got, 60*time.Millisecond) {
			t.Fatalf("the bound is %v, want 60ms", got)
		}
		now = now.Add(idle)
		if got := l.Snapshot(now); got != (riprap.LatencySnapshot{}) {
			t.Errorf("after %v without calls Snapshot = %+v, want nothing", idle, got)
		}
		if got := bound(p, now); got != time.Minute || l.P50() != 0 {
			t.Errorf("after %v without calls the bound is %v and P50 %v, want AttemptTimeout and none", idle, got, l.P50())
		}
	}
}

func TestTheMedianIsTheLeastUsefulAttempt(t *testing.T) {
	l, now := armed(&riprap.Latency{}, 100*time.Millisecond)
	bound(&riprap.Policy{Latency: l}, now)
	for _, tt := range []struct {
		left, least time.Duration
		latency     *riprap.Latency
		again       bool
	}{
		{90 * time.Millisecond, 0, l, false},
		{110 * time.Millisecond, 0, l, true},
		{90 * time.Millisecond, time.Millisecond, l, true},
		{90 * time.Millisecond, -1, l, true},
		{90 * time.Millisecond, 0, &riprap.Latency{}, true},
		{90 * time.Millisecond, 0, nil, true},
	} {
		p := &riprap.Policy{Latency: tt.latency, MinAttempt: tt.least, Backoff: riprap.Backoff{Base: 1, Max: 1}}
		o := riprap.Operation{Policy: p, Deadline: now.Add(tt.left)}
		o.Begin(now)
		if wait, stop := o.Next(now, errFlaky); (wait > 0) != tt.again {
			t.Errorf("median 100ms (or none), %v left, MinAttempt %v: Next = %v, %v, want another attempt: %v", tt.left, tt.least, wait, stop, tt.again)
		}
	}
}

func TestASnapshotShowsTheWindow(t *testing.T) {
	l := &riprap.Latency{}
	for i := range 1000 {
		observe(l, noon, 1, time.Duration(i+1)*time.Millisecond)
	}
	bound(&riprap.Policy{Latency: l}, noon.Add(time.Second))
	for range 10 {
		o := riprap.Operation{Policy: &riprap.Policy{Latency: l, AttemptTimeout: 2 * time.Second}}
		o.Begin(noon.Add(time.Second))
		o.Observe(noon.Add(3*time.Second), errFlaky)
		observe(l, noon.Add(time.Second), 1, time.Second)
	}
	got := l.Snapshot(noon.Add(time.Second))
	if got.Count != 1020 || got.TimedOut != 10.0/1020 || !about(got.P50, 510*time.Millisecond) ||
		!about(got.P95, 969*time.Millisecond) || !about(got.P99, time.Second) || !about(got.Bound, 3*990*time.Millisecond) {
		t.Errorf("1 to 1000 ms, ten more of 1 s and ten timeouts: Snapshot = %+v", got)
	}
}

func TestASnapshotChangesNothing(t *testing.T) {
	l, now := armed(&riprap.Latency{}, 20*time.Millisecond)
	want := l.Snapshot(now)
	for _, other := range []time.Time{{}, noon.Add(-time.Hour), noon.Add(time.Hour), noon.AddDate(1000, 0, 0)} {
		l.Snapshot(other)
		if got := l.Snapshot(now); got != want || got.Count != 1000 {
			t.Errorf("after a look at %v Snapshot = %+v, want %+v", other, got, want)
		}
	}
	if got := bound(&riprap.Policy{Latency: l}, now); !about(got, 60*time.Millisecond) || got != want.Bound {
		t.Errorf("the bound is %v, want what the snapshot announced: %v", got, want.Bound)
	}
}

func TestASnapshotStartsAnotherLatency(t *testing.T) {
	first, now := armed(&riprap.Latency{}, 20*time.Millisecond)
	snapshot := first.Snapshot(now)
	second := &riprap.Latency{Start: snapshot}
	if got := second.Snapshot(now); got.Bound != snapshot.Bound || got.Count != 0 {
		t.Errorf("before the first attempt Snapshot = %+v, want the bound of %+v", got, snapshot)
	}
	p := &riprap.Policy{Latency: second, AttemptTimeout: time.Minute}
	if got := bound(p, now); got != snapshot.Bound || second.P50() != snapshot.P50 {
		t.Errorf("the first attempt is bounded by %v with P50 %v, want those of %+v", got, second.P50(), snapshot)
	}
	observe(second, now, 199, 30*time.Millisecond)
	if got := bound(p, now.Add(59*time.Second)); got != snapshot.Bound {
		t.Errorf("within a minute the bound is %v, want %v", got, snapshot.Bound)
	}
	if got := bound(p, now.Add(time.Minute)); got != time.Minute || second.P50() != 0 {
		t.Errorf("after a minute with 199 samples the bound is %v with P50 %v, want AttemptTimeout and none", got, second.P50())
	}
}

func TestWhatWasSeenReplacesTheStart(t *testing.T) {
	for _, start := range []time.Duration{time.Nanosecond, time.Hour, math.MaxInt64} {
		l := &riprap.Latency{Start: riprap.LatencySnapshot{Bound: start}}
		observe(l, noon, 200, 20*time.Millisecond)
		if got := bound(&riprap.Policy{Latency: l}, noon.Add(time.Second)); !about(got, 60*time.Millisecond) {
			t.Errorf("started with %v, after 200 samples of 20ms the bound is %v, want 60ms", start, got)
		}
	}
}

func TestTwoTimeoutsRefuteTheStartUnlessThereAreFiftyTimesAsManySuccesses(t *testing.T) {
	for successes, want := range map[int]time.Duration{0: 0, 97: 0, 98: 100 * time.Millisecond} {
		l := &riprap.Latency{Start: riprap.LatencySnapshot{P50: time.Hour, Bound: 100 * time.Millisecond}}
		observe(l, noon, successes, 20*time.Millisecond)
		timeOut(t, l, noon)
		if got := bound(&riprap.Policy{Latency: l}, noon); got != 100*time.Millisecond {
			t.Errorf("%d successes and a timeout: the bound is %v, want 100ms still", successes, got)
		}
		timeOut(t, l, noon)
		for _, later := range []time.Duration{0, time.Second, 2 * time.Second} {
			if got := bound(&riprap.Policy{Latency: l}, noon.Add(later)); got != want {
				t.Errorf("%d successes and two timeouts, after %v: the bound is %v, want %v", successes, later, got, want)
			}
			if got := l.P50(); want == 0 && later > 0 && got != 0 {
				t.Errorf("%d successes and two timeouts, after %v: P50 = %v, want none", successes, later, got)
			}
		}
	}
}
