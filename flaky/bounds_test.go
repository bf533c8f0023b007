package flaky

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

func TestARunKeepsItsNewestArrivals(t *testing.T) {
	h := newHandler(t, "200")
	const extra = 5
	for i := range maxRunLog + extra {
		serveOn(h, "GET", fmt.Sprint("/", i), nil)
	}
	list := h.Arrivals("")
	if len(list) != maxRunLog {
		t.Fatalf("Arrivals after %d requests = %d, want %d", maxRunLog+extra, len(list), maxRunLog)
	}
	for i, a := range list {
		if want := fmt.Sprint("/", i+extra); a.Path != want {
			t.Fatalf("arrival %d is %s, want %s", i, a.Path, want)
		}
	}
}

// arrive fills the log of a run without the work of answering.
func arrive(rs *runs, id string, n int, s *script) {
	for range n {
		rs.add(rs.get(id, s), &record{})
	}
}

func TestTheRunThatWasQuietForLongestIsForgotten(t *testing.T) {
	s, err := parse("200")
	if err != nil {
		t.Fatal(err)
	}
	var rs runs
	rs.init(s)
	for id := range 5 {
		arrive(&rs, fmt.Sprint(id), maxRunLog, s)
	}
	if len(rs.byID) != 5 || rs.entries != maxArrivals {
		t.Fatalf("%d runs with %d arrivals, want 5 with %d", len(rs.byID), rs.entries, maxArrivals)
	}
	arrive(&rs, "0", 1, s) // takes the place of another of its own
	arrive(&rs, "", 1, s)
	if rs.byID["1"] != nil || rs.byID["0"] == nil || len(rs.byID) != 4 || rs.entries != 4*maxRunLog+1 {
		t.Errorf("run 1 is still there or too much is gone: %d runs with %d arrivals, want 4 with %d", len(rs.byID), rs.entries, 4*maxRunLog+1)
	}
	arrive(&rs, "", 2*maxRunLog, s)
	if len(rs.byID) != 4 || rs.entries != maxArrivals {
		t.Errorf("%d runs with %d arrivals, want 4 with %d: those of no run have a bound too", len(rs.byID), rs.entries, maxArrivals)
	}
	if got := len(rs.all()); got != rs.entries {
		t.Errorf("all arrivals are %d, counted were %d", got, rs.entries)
	}
}

func TestTheNumberOfRunsIsBounded(t *testing.T) {
	h := newHandler(t, "200")
	for i := range maxRuns + 10 {
		if err := h.Run(fmt.Sprint(i), "503"); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.runs.byID) != maxRuns || h.runs.recent.Len() != maxRuns {
		t.Errorf("%d runs are kept, %d in the list, want %d", len(h.runs.byID), h.runs.recent.Len(), maxRuns)
	}
	for run, want := range map[string]int{"9": 200, "20": 503} {
		if got := serveOn(h, "GET", "/~"+run+"/", nil).StatusCode; got != want {
			t.Errorf("GET of run %s = %d, want %d", run, got, want)
		}
	}
}

func TestAnArrivalIsSmallWhateverTheClientSends(t *testing.T) {
	h := newHandler(t, "200")
	long := "x" + strings.Repeat("é", 5000) // a cut after an even number of bytes is inside of a rune
	header := []string{"User-Agent", long, "X-Retry-" + strings.Repeat("x", 500), "1"}
	for i := range 100 {
		header = append(header, fmt.Sprint("X-Retry-", i), long)
	}
	serveOn(h, strings.Repeat("M", 100), "/"+strings.Repeat("p", 5000), nil, header...)
	a := one(t, h, "")
	total := 0
	for name, values := range a.Header {
		for _, v := range values {
			total += len(name) + len(v)
			if !strings.HasSuffix(v, "é…") || len(v) > maxValue+len("…") {
				t.Errorf("%s has %d bytes %q, want at most %d and a mark", name, len(v), v, maxValue)
			}
		}
	}
	if total > maxHeader || total < maxHeader/2 || len(a.Path) > 1024+len("…") || len(a.Method) > 32+len("…") {
		t.Errorf("the log has %d bytes of header, %d of path, %d of method, want at most %d, 1027, 35", total, len(a.Path), len(a.Method), maxHeader)
	}
}

func TestWhatIsKeptOfSecretsIsBounded(t *testing.T) {
	var s secrets
	first := s.number("key", "first")
	for i := range maxValues - 1 {
		s.number("key", fmt.Sprint(i))
	}
	for range 2 { // whether others have come since or not
		if got := s.number("key", "first"); got != first {
			t.Errorf("a value after %d others is %s, want %s as before", maxValues-1, got, first)
		}
		for i := range maxValues - 1 {
			s.number("key", fmt.Sprint("y", i))
		}
	}
	for i := range 4 * maxValues {
		s.number("key", fmt.Sprint("x", i))
	}
	if got := len(s.young) + len(s.old); got > 2*maxValues {
		t.Errorf("%d values are kept, want at most %d", got, 2*maxValues)
	}
	if got, want := s.number("key", "first"), fmt.Sprint("#", 6*maxValues); got != want {
		t.Errorf("a value that was forgotten is %s, want a new number %s", got, want)
	}
	for i := range 2 * maxNames {
		s.number(fmt.Sprint("key-", i), "value")
	}
	if got := len(s.counts); got != maxNames {
		t.Errorf("%d headers are counted, want %d", got, maxNames)
	}
}

func TestTheLogKeepsNothingOfARequestButWhatItShows(t *testing.T) {
	h := newHandler(t, "200")
	const requests, size = 200, 256 << 10
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range requests {
		line := fmt.Sprintf("GET /~run%d/a?%s HTTP/1.1\r\nHost: a\r\n\r\n", i, strings.Repeat("q", size))
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line)))
		if err != nil {
			t.Fatal(err)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > requests*size/4 {
		t.Errorf("after %d requests with query strings of %d bytes the heap is %d bytes larger, want little", requests, size, grown)
	}
	runtime.KeepAlive(h)
}

func TestAStepIsCutInTheLogAndServedWhole(t *testing.T) {
	const size = 1 << 20
	h := newHandler(t, "200 body="+strings.Repeat("é", size/2))
	var traced Arrival
	h.Trace = func(a Arrival) { traced = a }
	resp := serveOn(h, "GET", "/", nil)
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("the answer has %d bytes (%v), want the body of %d", n, err, size)
	}
	a := one(t, h, "")
	if !strings.HasPrefix(a.Step, "200 body=éé") || !strings.HasSuffix(a.Step, "é…") || len(a.Step) > 1024+len("…") {
		t.Errorf("the log has a step of %d bytes, %.20q, want 1024 of it and …", len(a.Step), a.Step)
	}
	if traced.Step != a.Step {
		t.Errorf("Trace got a step of %d bytes, want that of the log", len(traced.Step))
	}
}
