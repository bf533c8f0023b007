package lab

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/rival"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

func TestSameSeedsGiveTheSameReportOnAnyNumberOfProcessors(t *testing.T) {
	const args = "compare --json " + small
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, err := run(t, t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(7)
	if many, _ := run(t, t.Context(), args); many != one {
		t.Errorf("the report of seven processors is not that of one")
	}
	if other, _ := run(t, t.Context(), args+" --seed 2"); other == one {
		t.Errorf("the report of other seeds is the same")
	}
}

func TestStoppedEarlyItPrintsWhatThereIs(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	q, err := parse("compare", strings.Fields("outage --for 100s --seeds 1000 --policies at-once,riprap"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	trials := q.groups[0].trials
	var done atomic.Int64
	var r report
	r.request, r.stopped = q, true
	q.groups[0].rows = simulate(ctx, trials, 1, q.seeds, func() {
		if done.Add(1) == 6 { // a simulation or two more may be under way
			stop()
		}
	})
	if n := r.simulated(); n < 6 || n > 6+runtime.GOMAXPROCS(0) {
		t.Errorf("%d simulations after the stop, want 6 and what was under way", n)
	}
	for _, s := range r.all() {
		if s.seeds < 2 {
			t.Errorf("%s has %d seeds: the rows must progress together", s.candidate.Name, s.seeds)
		}
	}
	text := r.text(terminal.Screen{Width: 80})
	if !strings.HasPrefix(text, "Stopped after ") || !strings.Contains(text, "at-once ") {
		t.Errorf("the report of a stopped comparison is\n%s", text)
	}
	if document, err := r.json(); err != nil || !strings.Contains(document, `"complete":false`) {
		t.Errorf("its JSON, %v, does not say that it is not complete", err)
	}

	if text, err := run(t, ctx, "compare outage"); !errors.Is(err, exit.ErrNotFine) || !strings.Contains(text, "Nothing is known") {
		t.Errorf("stopped before it began: %v and %q", err, text)
	}
}

func TestASeedThatTakesLongDoesNotLetResultsPileUp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const seeds, most = 500, 2 * ahead
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		long := make(chan struct{})
		c := naive(2, "first one slow")
		c.Rival = func() sim.Rival {
			if begun.Add(1) == 1 {
				<-long
			}
			return &rival.Throttle{}
		}
		s := sim.Scenario{Arrivals: sim.Arrivals{Rate: 10}, Services: []sim.Service{{Kind: sim.Coin, Fails: 0.5}}, Length: sec}
		var all []*summary
		go func() { all = simulate(t.Context(), []trial{{&s, &c}}, 1, seeds, func() {}) }()
		synctest.Wait()
		if n := begun.Load(); n < 2 || n > most+1 {
			t.Errorf("%d simulations while an early one takes long, want no more than %d", n, most+1)
		}
		close(long)
		synctest.Wait()
		if all[0].seeds != seeds {
			t.Errorf("%d seeds in the end, want %d", all[0].seeds, seeds)
		}
	})
}
