package audit

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

// tryAgain sends a request so often, with a pause behind each answer.
func tryAgain(m *memory, times int, pause time.Duration) Client {
	return func(ctx context.Context, c Call) error {
		client := &http.Client{Transport: m.transport()}
		defer client.CloseIdleConnections()
		for range times {
			if err := call(ctx, client, c); err == nil {
				return nil
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}

// sideBySide returns how many runs of a client there were at most at the same time.
func sideBySide(t *testing.T, client func(*memory) Client) int64 {
	var now, most atomic.Int64
	auditIn(t, Audit{Rules: []string{"jitter"}}, func(m *memory) Client {
		inner := client(m)
		return func(ctx context.Context, c Call) error {
			n := now.Add(1)
			defer now.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			return inner(ctx, c)
		}
	})
	return most.Load()
}

func TestFewRunsGoOnAtATimeThatDoNotWait(t *testing.T) {
	// What such a client does between its attempts takes a processor: many at once would delay each other, and seem to wait.
	processors := int64(runtime.GOMAXPROCS(0))
	if got := sideBySide(t, func(m *memory) Client { return tryAgain(m, 10, tellable/5) }); got > processors {
		t.Errorf("%d runs of a client that does not wait went on at a time, want %d at most", got, processors)
	}
	if got := sideBySide(t, func(m *memory) Client { return tryAgain(m, 10, 10*time.Second) }); got <= min(processors, spreadRuns-1) {
		t.Errorf("%d runs of a client that waits went on at a time, want more than %d", got, processors)
	}
	if got := sideBySide(t, func(m *memory) Client { return tryAgain(m, 100, tellable/5) }); got <= min(processors, spreadRuns-1) {
		t.Errorf("%d runs of a client without a limit went on at a time, want more than %d: the others must not wait for it", got, processors)
	}
}

// waiting makes an observation of runs that try again after the waits.
func waiting(name string, waits ...time.Duration) (runs []*run) {
	start := time.Unix(1000, 0)
	for _, w := range waits {
		runs = append(runs, &run{scenario: &scenario{name: name}, call: Call{Method: get, Calls: 1},
			arrivals: []flaky.Arrival{{Time: start, Ended: start}, {Time: start.Add(w), Ended: start.Add(w)}}})
	}
	return runs
}

// busy is a machine that is late by so much from one time to another, both counted from the first request, and quiet for long before
// and after that.
func busy(from, to, by time.Duration) (l lateness) {
	start := time.Unix(1000, 0)
	for at := -30 * time.Second; at < 30*time.Second; at += noiseStep {
		reading := late{from: start.Add(at), to: start.Add(at + noiseStep)}
		if from <= at && at < to {
			reading.by = by
		}
		l = append(l, reading)
	}
	return l
}

func TestWhatCountsIsHowBusyTheMachineWasAtTheWaits(t *testing.T) {
	var spreadOut, short, long []time.Duration
	for i := range spreadRuns {
		spreadOut = append(spreadOut, time.Second+time.Duration(i)*20*time.Millisecond)
		short = append(short, 200*time.Millisecond)
		long = append(long, time.Second)
	}
	tests := map[string]struct {
		rule  string
		runs  map[string][]*run
		quiet Verdict
	}{
		"jitter":  {"jitter", map[string][]*run{"503": waiting("503", spreadOut...)}, Pass},
		"hammers": {"retry-after-zero", map[string][]*run{"wait-zero": waiting("wait-zero", long...), "503": waiting("503", long...)}, Pass},
		"faster":  {"retry-after-not-faster", map[string][]*run{"wait-zero": waiting("wait-zero", short[:hintedRuns]...), "503": waiting("503", long...)}, Fail},
	}
	machines := map[string]struct {
		lateness
		loud bool
	}{
		"quiet":                 {busy(0, 0, 0), false},
		"busy before and after": {slices.Concat(busy(-30*time.Second, -time.Second, time.Second)[:725], busy(5*time.Second, 30*time.Second, time.Second)[725:]), false},
		"busy at the start":     {busy(-time.Second/10, time.Second/10, time.Second), true},
		"busy at the end":       {busy(time.Second*9/10, time.Second*2, time.Second), true},
	}
	for name, tt := range tests {
		for what, machine := range machines {
			t.Run(name+", "+what, func(t *testing.T) {
				want := tt.quiet
				if machine.loud {
					want = Inconclusive
				}
				i := slices.IndexFunc(rules, func(r rule) bool { return r.ID == tt.rule })
				got := rules[i].find(&observed{runs: tt.runs, patience: defaultPatience, late: machine.lateness})
				if got.Verdict != want {
					t.Errorf("%v, want %s", got, want)
				}
			})
		}
	}
}

func TestWorkThatTakesLongerThanTheQuickestIsLateness(t *testing.T) {
	start := time.Unix(1000, 0)
	n := &noise{readings: []reading{
		{from: start, to: start.Add(44 * time.Millisecond), work: 4 * time.Millisecond},
		{from: start.Add(time.Second), to: start.Add(time.Second + 61*time.Millisecond), late: time.Millisecond, work: 20 * time.Millisecond},
	}}
	l := n.heard()
	if l[0].by != 0 || l[1].by != 17*time.Millisecond {
		t.Errorf("heard() = %v, want 0s and 17ms late", l)
	}
}
