package riprap_test

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestBeginBoundsTheAttempt(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   *riprap.Policy
		deadline time.Time
		want     time.Time
	}{
		{"no policy, no bound", nil, time.Time{}, time.Time{}},
		{"the deadline alone", nil, noon.Add(time.Hour), noon.Add(time.Hour)},
		{"the attempt's alone", &riprap.Policy{AttemptTimeout: time.Second}, time.Time{}, noon.Add(time.Second)},
		{"a negative one is none", &riprap.Policy{AttemptTimeout: -1}, noon.Add(time.Hour), noon.Add(time.Hour)},
		{"the attempt's before the deadline", &riprap.Policy{AttemptTimeout: time.Second}, noon.Add(time.Hour), noon.Add(time.Second)},
		{"the deadline before the attempt's", &riprap.Policy{AttemptTimeout: time.Hour}, noon.Add(time.Second), noon.Add(time.Second)},
		{"the total is the driver's to turn into a deadline", &riprap.Policy{Timeout: time.Second}, time.Time{}, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := riprap.Operation{Policy: tt.policy, Deadline: tt.deadline}
			if got := o.Begin(noon); !got.Equal(tt.want) || got.IsZero() != tt.want.IsZero() {
				t.Errorf("Begin = %v, want %v", got, tt.want)
			}
			if o.Attempts != 1 {
				t.Errorf("after Begin Attempts = %d, want 1", o.Attempts)
			}
		})
	}
}

func TestTheWaitIsTheVerdict(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy riprap.Policy
		err    error
		again  bool
		stop   error // as it comes back
		reason error // of an *Error instead
	}{
		{name: "a success is over", err: nil},
		{name: "a failure is tried again", err: errFlaky, again: true},
		{name: "a permanent failure is over", err: riprap.Permanent(io.EOF), stop: io.EOF},
		{name: "no attempts are left", policy: riprap.Policy{MaxAttempts: 1}, err: errFlaky, reason: riprap.ErrAttempts},
		{name: "the budget is spent", policy: riprap.Policy{Budget: &riprap.Budget{Reserve: -1}}, err: errFlaky, reason: riprap.ErrBudget},
		{name: "the service asks for too long", err: riprap.After(time.Hour, errFlaky), reason: riprap.ErrWait},
		{name: "a permanent failure outranks its wait", err: riprap.Permanent(riprap.After(time.Hour, io.EOF)), stop: io.EOF},
		{name: "a permanent failure outranks the last attempt", policy: riprap.Policy{MaxAttempts: 1}, err: riprap.Permanent(io.EOF), stop: io.EOF},
		{name: "the last attempt outranks a wait", policy: riprap.Policy{MaxAttempts: 1}, err: riprap.After(time.Hour, errFlaky), reason: riprap.ErrAttempts},
		{name: "a wait that is too long outranks the budget", policy: riprap.Policy{Budget: &riprap.Budget{Reserve: -1}}, err: riprap.After(time.Hour, errFlaky), reason: riprap.ErrWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := riprap.Operation{Policy: &tt.policy}
			o.Begin(noon)
			wait, stop := o.Next(noon, tt.err)
			if (wait > 0) != tt.again || wait < 0 || o.Wait != wait {
				t.Errorf("Next = %v, %v and Wait = %v, want another attempt: %v", wait, stop, o.Wait, tt.again)
			}
			if tt.reason != nil {
				if e := gaveUp(t, stop); e.Reason != tt.reason || e.Err != errFlaky || e.Attempts != 1 {
					t.Errorf("Next = %#v, want %v", e, tt.reason)
				}
			} else if stop != tt.stop {
				t.Errorf("Next = %v, want %v", stop, tt.stop)
			}
		})
	}
}

func TestARetryThatWillNotHappenCostsNothing(t *testing.T) {
	soon := noon.Add(time.Millisecond)
	for _, tt := range []struct {
		name   string
		policy riprap.Policy
		err    error
	}{
		{"permanent", riprap.Policy{}, riprap.Permanent(errFlaky)},
		{"not retryable", riprap.Policy{Retryable: func(error) bool { return false }}, errFlaky},
		{"no attempts left", riprap.Policy{MaxAttempts: 1}, errFlaky},
		{"the wait is too long", riprap.Policy{}, riprap.After(time.Hour, errFlaky)},
		{"no time left", riprap.Policy{}, riprap.After(time.Second, errFlaky)},
	} {
		tt.policy.Budget = &riprap.Budget{}
		o := riprap.Operation{Policy: &tt.policy, Deadline: soon}
		o.Begin(noon)
		if wait, _ := o.Next(noon, tt.err); wait != 0 {
			t.Errorf("%s: Next waits %v, want no retry", tt.name, wait)
		}
		if got := tt.policy.Budget.Left(noon); got != 10 {
			t.Errorf("%s: Left = %d, want 10", tt.name, got)
		}
	}
}

func TestCancelGivesBothErrorsAndConsumesMarks(t *testing.T) {
	for _, tt := range []struct {
		name string
		last error
		bare error
		wait time.Duration
	}{
		{"before the first attempt", nil, nil, 0},
		{"after a failure", errFlaky, errFlaky, 0},
		{"after a failure with a wait", riprap.After(time.Hour, errFlaky), errFlaky, time.Hour},
		{"after a permanent failure", riprap.Permanent(errFlaky), errFlaky, 0},
	} {
		o := riprap.Operation{}
		e := gaveUp(t, o.Cancel(errShutdown, tt.last))
		if e.Reason != errShutdown || e.Err != tt.bare || e.Wait != tt.wait {
			t.Errorf("%s: Cancel = %#v, want the cause, %v and a wait of %v", tt.name, e, tt.bare, tt.wait)
		}
	}
}

func TestARetryThatIsGrantedTwiceIsPaidOnce(t *testing.T) {
	budget := &riprap.Budget{Parent: &riprap.Budget{}}
	o := riprap.Operation{Policy: &riprap.Policy{MaxAttempts: -1, Budget: budget}}
	o.Begin(noon)
	for range 20 { // a driver that judges without beginning
		if wait, stop := o.Next(noon, errFlaky); wait == 0 {
			t.Fatalf("Next = %v, want a wait", stop)
		}
	}
	if got := budget.Left(noon); got != 9 {
		t.Errorf("Left = %d, want 9", got)
	}
	o.Cancel(errShutdown, errFlaky)
	if got := budget.Left(noon); got != 10 {
		t.Errorf("after Cancel Left = %d, want 10", got)
	}
}

// A message as a queue stores it between its attempts.
type message struct {
	attempts int
	wait     time.Duration
	deadline time.Time
	due      time.Time
}

func TestAConsumerMayStoreAnOperationBetweenItsAttempts(t *testing.T) {
	budget := &riprap.Budget{}
	p := &riprap.Policy{
		MaxAttempts: 5, Budget: budget,
		Backoff: riprap.Backoff{Base: time.Second, Max: time.Hour, Jitter: riprap.Decorrelated},
		Rand:    func() float64 { return 0 }, // the longest draw
	}
	inMemory := riprap.Operation{Policy: p, Deadline: noon.Add(time.Hour)}
	stored := message{deadline: noon.Add(time.Hour), due: noon}
	now := noon
	for n := 1; ; n++ {
		o := riprap.Operation{Policy: p, Attempts: stored.attempts, Wait: stored.wait, Deadline: stored.deadline}
		o.Begin(stored.due)
		wait, stop := o.Next(stored.due, errFlaky)

		inMemory.Begin(now)
		wantWait, wantStop := inMemory.Next(now, errFlaky)
		if wait != wantWait || (stop == nil) != (wantStop == nil) || o.Attempts != n {
			t.Fatalf("attempt %d: Next of a stored operation = %v, %v, want %v, %v", n, wait, stop, wantWait, wantStop)
		}
		if wait == 0 {
			if e := gaveUp(t, stop); n != 5 || e.Attempts != 5 || e.Reason != riprap.ErrAttempts {
				t.Errorf("after %d attempts the stored operation ends with %#v, want ErrAttempts after 5", n, e)
			}
			break
		}
		if n > 1 && wait != 3*stored.wait {
			t.Errorf("attempt %d is followed by %v, want three times the wait before, %v", n, wait, stored.wait)
		}
		stored.attempts, stored.wait, stored.due = o.Attempts, o.Wait, stored.due.Add(wait)
		now = now.Add(wantWait)
	}
	if got := budget.Left(now); got != 10-2*4 {
		t.Errorf("Left = %d, want 2: four retries of each", got)
	}
}

func TestAConsumersLateSuccessDepositsNothing(t *testing.T) {
	p := &riprap.Policy{Budget: &riprap.Budget{Ratio: 1}}
	o := riprap.Operation{Policy: p, Attempts: 1, Wait: time.Second}
	o.Begin(noon)
	if wait, stop := o.Next(noon, nil); wait != 0 || stop != nil {
		t.Errorf("Next = %v, %v, want the end", wait, stop)
	}
	if got := p.Budget.Left(noon); got != 10 {
		t.Errorf("Left = %d, want 10: a retry's success pays for nothing", got)
	}
}

func TestADeadlineLongAgoIsADeadline(t *testing.T) {
	for _, deadline := range []time.Time{noon, noon.Add(-1), time.Unix(0, 0), time.Time{}.Add(1)} {
		for _, least := range []time.Duration{0, 1, time.Hour, math.MaxInt64, math.MinInt64} {
			o := riprap.Operation{Policy: &riprap.Policy{MinAttempt: least}, Deadline: deadline}
			o.Begin(noon)
			if wait, stop := o.Next(noon, errFlaky); wait != 0 || !errors.Is(stop, riprap.ErrDeadline) {
				t.Errorf("with a deadline of %v and a least attempt of %v Next = %v, %v, want ErrDeadline", deadline, least, wait, stop)
			}
		}
	}
}

// FuzzNext drives operations in any order of calls, sensible or not.
func FuzzNext(f *testing.F) {
	const s = int64(time.Second)
	f.Add(4, s, 10*s, int64(0), int64(0), 0.5, []byte("bfbfbfbf"))
	f.Add(-1, int64(1), 2*s, s, s, 1.0, []byte("bfbabpbfcbffffccbs"))
	f.Add(0, int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), int64(-1), math.NaN(), []byte("bfba\xffb\xfe"))
	f.Add(1000, s, int64(0), int64(0), int64(-1), 0.0, []byte("bAbAbAbAbA\x80\x81\x82"))
	f.Fuzz(func(t *testing.T, attempts int, base, left, least, maxWait int64, u float64, script []byte) {
		budget := &riprap.Budget{Ratio: 1, Reserve: 20, Parent: &riprap.Budget{Reserve: 30}}
		p := &riprap.Policy{
			MaxAttempts: attempts, MinAttempt: time.Duration(least), MaxWait: time.Duration(maxWait),
			Backoff: riprap.Backoff{Base: time.Duration(base), Jitter: riprap.Jitter(len(script) % 4)},
			Budget:  budget, Rand: func() float64 { return u },
		}
		now := noon
		o := riprap.Operation{Policy: p, Deadline: now.Add(time.Duration(left))}
		if left == 0 {
			o.Deadline = time.Time{}
		}
		for i, step := range script {
			var err error
			var asked time.Duration
			switch step {
			case 'b':
				if until := o.Begin(now); !until.Equal(o.Deadline) {
					t.Fatalf("step %d: Begin = %v, want %v", i, until, o.Deadline)
				}
				continue
			case 'c':
				if e := gaveUp(t, o.Cancel(context.Canceled, errFlaky)); e.Reason != context.Canceled {
					t.Fatalf("step %d: Cancel = %v", i, e)
				}
				continue
			case 's':
			case 'p':
				err = riprap.Permanent(errFlaky)
			case 'a', 'A':
				asked = 3 * time.Second << (step & 0x20)
				err = riprap.After(asked, errFlaky)
			default:
				now = now.Add(time.Duration(step) * time.Millisecond)
				err = errFlaky
			}
			wait, stop := o.Next(now, err)
			switch {
			case wait < 0:
				t.Fatalf("step %d: Next waits %v", i, wait)
			case wait == 0:
				if (stop == nil) != (err == nil) {
					t.Fatalf("step %d: Next(%v) = 0, %v", i, err, stop)
				}
				continue
			case err == nil || stop != nil || step == 'p':
				t.Fatalf("step %d: Next(%v) = %v, %v, want no wait", i, err, wait, stop)
			case wait < asked:
				t.Errorf("step %d: Next waits %v, want the %v that was asked at the least", i, wait, asked)
			case attempts > 0 && o.Attempts >= attempts, attempts == 0 && o.Attempts >= 4:
				t.Errorf("step %d: Next waits %v after %d attempts", i, wait, o.Attempts)
			case maxWait > 0 && asked > time.Duration(maxWait), maxWait == 0 && asked > time.Minute:
				t.Errorf("step %d: Next waits %v where %v was asked", i, wait, asked)
			}
			if !o.Deadline.IsZero() {
				if rest := o.Deadline.Sub(now); rest <= wait || rest-wait < p.MinAttempt {
					t.Errorf("step %d: Next waits %v where only %v are left", i, wait, rest)
				}
			}
		}
		before := budget.Left(now)
		o.Cancel(context.Canceled, nil)
		if after := budget.Left(now); before < 0 || after < before || after > before+1 {
			t.Errorf("Left = %d, and %d after Cancel", before, after)
		}
	})
}
