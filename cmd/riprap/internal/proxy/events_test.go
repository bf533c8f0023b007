package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/riprap-go/riprap/idempotency"
)

func TestEventsAreOfWhatIsNotable(t *testing.T) {
	second := Attempt{Status: 200}
	for _, test := range []struct {
		name   string
		change func(*Visit)
		want   string
	}{
		{"an answer at the first attempt", func(*Visit) {}, ""},
		{"not found", func(v *Visit) { v.Status = 404 }, ""},
		{"a keyed request that ran", func(v *Visit) { v.Key = idempotency.Ran }, ""},
		{"no content without asking the service", func(v *Visit) { v.Attempts, v.Status = nil, 204 }, ""},
		{"an answer at the second attempt", func(v *Visit) { v.Attempts = append(v.Attempts, second) }, "retried"},
		{"a failure of the service", func(v *Visit) { v.Status, v.Reason = 503, "unsafe" }, "failed"},
		{"failures until the budget was spent", func(v *Visit) { v.Attempts, v.Reason, v.Status = append(v.Attempts, second), "budget", 503 }, "failed"},
		{"a status that says too many requests", func(v *Visit) { v.Status, v.Reason = 429, "wait" }, "failed"},
		{"a service that is not there", func(v *Visit) { v.Status, v.Problem, v.Reason, v.Reached = 502, "unreachable", "attempts", ReachedNo }, "failed"},
		{"a client that left", func(v *Visit) { v.Status = 0 }, "canceled"},
		{"a client that left during a wait", func(v *Visit) { v.Status, v.Problem, v.Reason = 502, "no-answer", "canceled" }, "canceled"},
		{"an answer that was cut off", func(v *Visit) { v.Broken = true }, "broken"},
		{"a full proxy", func(v *Visit) { v.Attempts, v.Status, v.Problem, v.Reached = nil, 503, "busy", ReachedNo }, "refused"},
		{"no time left", func(v *Visit) { v.Attempts, v.Status, v.Problem, v.Reached = nil, 504, "deadline", ReachedNo }, "refused"},
		{"no key", func(v *Visit) { v.Attempts, v.Status, v.Key = nil, 400, idempotency.Refused }, "refused"},
		{"no store", func(v *Visit) { v.Attempts, v.Status, v.Key = nil, 503, idempotency.Unavailable }, "refused"},
		{"a replay", func(v *Visit) { v.Attempts, v.Key = nil, idempotency.Replayed }, "replayed"},
		{"a key that is in use", func(v *Visit) { v.Attempts, v.Status, v.Key = nil, 409, idempotency.InFlight }, "conflict"},
		{"a key of another request", func(v *Visit) { v.Attempts, v.Status, v.Key = nil, 422, idempotency.Mismatched }, "conflict"},
		{"a lost answer", func(v *Visit) {
			v.Status, v.Problem, v.Reached, v.Reason = 502, "outcome-unknown", ReachedUnknown, "unknown"
		}, "unknown"},
		{"a lost answer to a keyed request", func(v *Visit) {
			v.Status, v.Problem, v.Key, v.Reason = 504, "outcome-unknown", idempotency.Suspended, "unknown"
		}, "unknown"},
		{"a key that is stuck", func(v *Visit) { v.Attempts, v.Status, v.Key = nil, 409, idempotency.Unresolved }, "unknown"},
		{"an answer that was not kept", func(v *Visit) { v.Key = idempotency.Unrecorded }, "unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAdmin(adminSources{})
			a.configure(twoServices)
			v := visitTo("payments", "/slow")
			test.change(v)
			a.ended(v)
			s := shown(t, a)
			if test.want == "" {
				if len(s.Events) != 0 {
					t.Errorf("/state has the event %+v, want none: nothing is notable", s.Events[0])
				}
				return
			}
			if len(s.Events) != 1 || s.Events[0].What != test.want {
				t.Fatalf("/state has the events %+v, want one that says %s", s.Events, test.want)
			}
			if n := s.Services[0].Destinations[2].Counts.Events[test.want]; n != 1 {
				t.Errorf("the destination counts %d times %s, want 1", n, test.want)
			}
		})
	}
}

func TestAnEventTellsOfEachAttempt(t *testing.T) {
	a := newAdmin(adminSources{})
	a.configure(twoServices)
	v := visitTo("payments", "/slow")
	v.Took, v.Status, v.Reason, v.Reached = 3*time.Second, 503, "budget", ReachedYes
	v.Attempts = []Attempt{
		{Begun: v.Arrived.Add(2 * time.Millisecond), Took: 30 * time.Millisecond, Failure: "reset", Wait: 500 * time.Millisecond},
		{Begun: v.Arrived.Add(532 * time.Millisecond), Took: 10 * time.Millisecond, Status: 429, Wait: 2 * time.Second, Asked: true},
		{Begun: v.Arrived.Add(2542 * time.Millisecond), Took: 458 * time.Millisecond, Status: 503},
	}
	a.ended(v)
	got := shown(t, a).Events[0]
	want := event{
		ID: 1, Time: v.Arrived, What: "failed", Service: "payments", Route: "/slow", Method: "GET", Status: 503, Reached: "yes",
		Reason: "budget", Took: 3,
		Attempts: []attempt{
			{Begun: 0.002, Took: 0.03, Outcome: "reset", Wait: 0.5},
			{Begun: 0.532, Took: 0.01, Outcome: "429", Wait: 2, Asked: true},
			{Begun: 2.542, Took: 0.458, Outcome: "503"},
		},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("/state has the event\n\t%+v, want\n\t%+v", got, want)
	}
}

func TestOnlyTheLastEventsAreKept(t *testing.T) {
	a := newAdmin(adminSources{})
	a.configure(twoServices)
	const goroutines, each = 4, 130
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				v := visitTo("payments", "")
				v.Reason = "final"
				a.ended(v)
			}
		})
	}
	wg.Wait()
	got := a.events.last()
	if len(got) != mostEvents {
		t.Fatalf("after %d events there are %d, want %d", goroutines*each, len(got), mostEvents)
	}
	for i, e := range got {
		if want := uint64(goroutines*each - i); e.ID != want {
			t.Fatalf("event %d has the number %d, want %d: the newest first", i, e.ID, want)
		}
	}
}

func TestOfManyAttemptsTheFirstAndTheLastAreKept(t *testing.T) {
	v := visitTo("payments", "")
	v.Attempts = nil
	for i := range 1000 {
		v.Attempts = append(v.Attempts, Attempt{Begun: v.Arrived.Add(time.Duration(i) * time.Second), Failure: "refused"})
	}
	e := newEvent(v, &place{labels: []string{"payments", others}}, wasFailed)
	if len(e.Attempts) != mostAttempts || e.Omitted != 1000-mostAttempts || e.Attempts[9].Begun != 9 || e.Attempts[10].Begun != 990 {
		t.Errorf("of 1000 attempts the event has %d and omits %d, want %d and %d: %+v", len(e.Attempts), e.Omitted, mostAttempts, 1000-mostAttempts, e.Attempts)
	}
}

func TestAnEventHoldsNoMemoryOfTheRequest(t *testing.T) {
	a := newAdmin(adminSources{})
	a.configure(twoServices)
	line := "GET /secret?token=1 unreachable no budget reset 567"
	part := func(word string) string {
		i := strings.Index(line, word)
		return line[i : i+len(word)]
	}
	v := visitTo("payments", "")
	v.Method, v.Problem, v.Reached, v.Reason = part("GET"), part("unreachable"), Reached(part("no")), part("budget")
	v.Attempts[0].Failure = part("reset")
	a.ended(v)
	e := a.events.last()[0]
	first := uintptr(unsafe.Pointer(unsafe.StringData(line)))
	for _, word := range []string{e.What, e.Service, e.Route, e.Method, e.Problem, e.Key, e.Reached, e.Reason, e.Attempts[0].Outcome} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(word))); at >= first && at < first+uintptr(len(line)) {
			t.Errorf("the event's %q lies in the text of the request, and keeps it in memory", word)
		}
	}
}

func TestASuccessAllocatesNothing(t *testing.T) {
	a := newAdmin(adminSources{})
	a.configure(twoServices)
	v := visitTo("payments", "GET /reports/")
	if n := testing.AllocsPerRun(1000, func() { a.ended(v) }); n != 0 {
		t.Errorf("to count a success allocates %v times, want never", n)
	}
	if len(a.events.last()) != 0 {
		t.Error("a success is among the events, want none")
	}
}

func FuzzWhatServicesAndClientsSendIsNoWordOfTheMetrics(f *testing.F) {
	f.Add("GET", 200, "busy", "budget", "reset", 1)
	f.Add("get\n", -1, "x", "\xff", "", 99)
	f.Add("", 1000, "", "", "\x00", -1)
	f.Fuzz(func(t *testing.T, method string, status int, problem, reason, failure string, kind int) {
		a := newAdmin(adminSources{})
		a.configure(twoServices)
		v := visitTo("payments", "")
		v.Method, v.Status, v.Problem, v.Reason, v.Key = method, status, problem, reason, idempotency.Kind(kind)
		v.Attempts[0].Failure, v.Attempts[0].Status = failure, status
		a.ended(v)
		a.keyed("payments", idempotency.Event{Kind: v.Key})
		families, err := a.metrics.Gather()
		if err != nil {
			t.Fatalf("Gather() = %v, want no error", err)
		}
		known := slices.Concat(methodWords.words, statusWords, outcomeWords, problemWords.words, reasonWords.words, kindWords.words)
		for _, family := range families {
			for _, m := range family.Metric {
				for _, l := range m.Label {
					if name := l.GetName(); slices.Contains([]string{"method", "code", "outcome", "type", "reason", "kind"}, name) &&
						family.GetName() != "riprap_proxy_config_reloads_total" && !slices.Contains(known, l.GetValue()) {
						t.Errorf("%s has the label %s=%q, which is no word of ours", family.GetName(), name, l.GetValue())
					}
				}
			}
		}
		if len(a.events.last()) > 0 {
			e := a.events.last()[0]
			if !slices.Contains(methodWords.words, e.Method) || e.Problem != "" && !slices.Contains(problemWords.words, e.Problem) {
				t.Errorf("the event has method %q and problem %q, which are no words of ours", e.Method, e.Problem)
			}
		}
	})
}

func BenchmarkEnded(b *testing.B) {
	a := newAdmin(adminSources{})
	a.configure(twoServices)
	retried := visitTo("payments", "")
	retried.Attempts = append(retried.Attempts, Attempt{Begun: retried.Arrived, Took: time.Second, Status: 200})
	for name, v := range map[string]*Visit{"success": visitTo("payments", "GET /reports/"), "retried": retried} {
		b.Run("outcome="+name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a.ended(v)
				}
			})
		})
	}
}
