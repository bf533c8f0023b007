package deadline_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

const endless = time.Duration(math.MaxInt64)

var now = time.Date(2026, 3, 1, 12, 0, 0, 999_999, time.UTC)

// inHandler calls f with the context of a handler behind a Middleware that got a request with these fields.
func inHandler(t testing.TB, f func(context.Context), header ...string) {
	t.Helper()
	called := false
	serve(deadline.Middleware{Limit: -1}, func(_ http.ResponseWriter, r *http.Request) {
		called = true
		f(r.Context())
	}, header...)
	if !called {
		t.Fatal("the handler was not called")
	}
}

func TestMarginIsTwoPercentWithinBounds(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		math.MinInt64:          5 * time.Millisecond,
		0:                      5 * time.Millisecond,
		100 * time.Millisecond: 5 * time.Millisecond,
		250 * time.Millisecond: 5 * time.Millisecond,
		time.Second:            20 * time.Millisecond,
		5 * time.Second:        100 * time.Millisecond,
		time.Hour:              100 * time.Millisecond,
		endless:                100 * time.Millisecond,
	} {
		if got := deadline.Margin(left); got != want {
			t.Errorf("Margin(%v) = %v, want %v", left, got, want)
		}
	}
}

func TestAnnounceTellsTheTimeLeftLessTheMargin(t *testing.T) {
	for _, test := range []struct {
		left, want time.Duration
	}{
		{10 * time.Second, 9900 * time.Millisecond},
		{time.Second, 980 * time.Millisecond},
		{100 * time.Millisecond, 95 * time.Millisecond},
		{50 * time.Millisecond, 45 * time.Millisecond},
		{50*time.Millisecond - 1, 44 * time.Millisecond}, // never rounded up
		{50*time.Millisecond + 999_999, 45 * time.Millisecond},
		{6 * time.Millisecond, time.Millisecond},
		{6*time.Millisecond - 1, 0},
		{time.Millisecond, 0},
		{1, 0},
		{0, 0},
		{-time.Second, 0},
		{math.MinInt64, 0},
	} {
		h := http.Header{}
		got := deadline.Announce(t.Context(), h, now, test.left, 1)
		if got != test.want {
			t.Errorf("Announce(left %v) = %v, want %v", test.left, got, test.want)
		}
		var timeout, point []string
		if test.want > 0 {
			timeout = []string{strconv.FormatInt(test.want.Milliseconds(), 10)}
			point = []string{strconv.FormatInt(now.Add(test.want).UnixMilli(), 10)}
		}
		if !slices.Equal(h[deadline.TimeoutHeader], timeout) || !slices.Equal(h[deadline.DeadlineHeader], point) {
			t.Errorf("Announce(left %v) wrote %q, want timeout %q and deadline %q", test.left, h, timeout, point)
		}
	}
}

func TestAnnounceWritesNoTimeIfTheCallerWaitsForever(t *testing.T) {
	h := http.Header{deadline.TimeoutHeader: {"100"}, deadline.DeadlineHeader: {"1772366400000"}}
	if got := deadline.Announce(t.Context(), h, now, endless, 1); got != endless {
		t.Errorf("Announce(endless) = %v, want endless", got)
	}
	if h[deadline.TimeoutHeader] != nil || h[deadline.DeadlineHeader] != nil {
		t.Errorf("Announce(endless) left %q, want no times", h)
	}
}

func TestAnnounceTrustsNoClockThatWasNeverSet(t *testing.T) {
	for _, clock := range []time.Time{{}, time.UnixMilli(-980)} {
		h := http.Header{}
		deadline.Announce(t.Context(), h, clock, time.Second, 1)
		if h.Get(deadline.TimeoutHeader) != "980" || h[deadline.DeadlineHeader] != nil {
			t.Errorf("at %v Announce wrote %q, want a timeout of 980 and no deadline", clock, h)
		}
	}
}

func TestAnnounceNumbersRetries(t *testing.T) {
	for _, test := range []struct {
		cameWith string
		attempt  int
		want     []string
	}{
		{"", 1, nil},
		{"", 2, []string{"2"}},
		{"", 17, []string{"17"}},
		{"1", 1, nil},
		{"1", 3, []string{"3"}},
		{"2", 1, []string{"2"}},
		{"5", 3, []string{"5"}},
		{"3", 5, []string{"5"}},
		{"-2", 1, nil},
		{"abc", 1, nil},
		{"9999999999", 1, nil},
	} {
		var header []string
		if test.cameWith != "" {
			header = []string{deadline.AttemptHeader, test.cameWith}
		}
		h := http.Header{deadline.AttemptHeader: {"99"}} // of the send before
		inHandler(t, func(ctx context.Context) { deadline.Announce(ctx, h, now, time.Second, test.attempt) }, header...)
		if got := h[deadline.AttemptHeader]; !slices.Equal(got, test.want) {
			t.Errorf("attempt %d for a request with number %q: %q, want %q", test.attempt, test.cameWith, got, test.want)
		}
	}
}

func TestAnnounceKeepsTheCorrelationID(t *testing.T) {
	var served context.Context
	inHandler(t, func(ctx context.Context) { served = ctx }, deadline.CorrelationHeader, "incoming")
	for _, test := range []struct {
		name string
		ctx  context.Context
		has  []string
		want string
	}{
		{"of the header", served, []string{"chosen"}, "chosen"},
		{"of the request served", served, nil, "incoming"},
		{"of the request served, not of junk", served, []string{"a b"}, "incoming"},
		{"the first of two", served, []string{"one", "two"}, "one"},
	} {
		h := http.Header{}
		h[deadline.CorrelationHeader] = test.has
		deadline.Announce(test.ctx, h, now, time.Second, 1)
		if got := h[deadline.CorrelationHeader]; !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: Announce wrote correlation ids %q, want %q", test.name, got, test.want)
		}
	}
}

func TestAnnounceMakesACorrelationIDForACall(t *testing.T) {
	h := http.Header{deadline.CorrelationHeader: {"not a token"}}
	deadline.Announce(t.Context(), h, now, time.Second, 1)
	first := h.Get(deadline.CorrelationHeader)
	if len(first) < 16 || strings.Contains(first, " ") {
		t.Errorf("the first attempt has correlation id %q, want a new one", first)
	}
	deadline.Announce(t.Context(), h, now, time.Second, 2)
	if got := h.Get(deadline.CorrelationHeader); got != first {
		t.Errorf("the second attempt has correlation id %q, want %q as the first", got, first)
	}
}

func TestAnnounceLeavesNothingStale(t *testing.T) {
	h := http.Header{
		"X-Request-Timeout-Ms": {"1", "2"},
		"x-request-timeout-ms": {"3"},
		"X-Request-Deadline":   {"1", "2"},
		"x-request-deadline":   {"3"},
		"X-Request-Attempt":    {"8", "9"},
		"x-request-attempt":    {"7"},
		"X-Correlation-Id":     {"one", "two"},
		"x-correlation-id":     {"three"},
		"Accept":               {"text/html", "text/plain"},
	}
	for attempt := range 10 {
		deadline.Announce(t.Context(), h, now, time.Second, attempt+1)
	}
	want := http.Header{
		"X-Request-Timeout-Ms": {"980"},
		"X-Request-Deadline":   {fmt.Sprint(now.Add(980 * time.Millisecond).UnixMilli())},
		"X-Request-Attempt":    {"10"},
		"X-Correlation-Id":     {"one"},
		"Accept":               {"text/html", "text/plain"},
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("after ten attempts the header is\n%q, want\n%q", h, want)
	}
}

// What Announce writes, a Middleware reads: the handler has the time told, less what the way took by the same clock.
func TestWhatIsAnnouncedIsRead(t *testing.T) {
	h := http.Header{}
	told := deadline.Announce(t.Context(), h, time.Now(), time.Hour, 3)
	var left time.Duration
	var attempt int
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = h
	deadline.Middleware{Limit: -1}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		left, attempt = deadline.Left(r.Context()), deadline.Attempt(r.Context())
	})).ServeHTTP(httptest.NewRecorder(), r)
	if attempt != 3 || left > told || left <= told/2 {
		t.Errorf("the handler has attempt %d and %v left, want 3 and not more than %v", attempt, left, told)
	}
}

func FuzzAnnounce(f *testing.F) {
	f.Add(int64(time.Second), int64(0), 1, "3", "id", "100")
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), math.MinInt, "", "", "")
	f.Add(int64(math.MaxInt64-1), int64(-1), math.MaxInt, "x", "a b", "-1")
	f.Add(int64(6*time.Millisecond-1), int64(1_772_366_400_000), 0, "2", "x\n", "0")
	f.Fuzz(func(t *testing.T, ns, clock int64, attempt int, cameWith, id, stale string) {
		left, at := time.Duration(ns), time.UnixMilli(clock)
		h := http.Header{
			deadline.TimeoutHeader: {stale, stale}, deadline.DeadlineHeader: {stale}, deadline.AttemptHeader: {stale, stale},
			deadline.CorrelationHeader: {id, id},
		}
		var told time.Duration
		inHandler(t, func(ctx context.Context) { told = deadline.Announce(ctx, h, at, left, attempt) }, deadline.AttemptHeader, cameWith)
		timeout, point, number := h[deadline.TimeoutHeader], h[deadline.DeadlineHeader], h[deadline.AttemptHeader]
		call := fmt.Sprintf("Announce(now %d, left %v, attempt %d) with stale %q", clock, left, attempt, stale)

		if told < 0 || told > max(left, 0) || told%time.Millisecond != 0 && left != endless {
			t.Errorf("%s = %v, want whole milliseconds, none below zero and at most what is left", call, told)
		}
		if (told == 0 || left == endless) != (len(timeout) == 0) || len(timeout) > 1 || len(point) > len(timeout) {
			t.Errorf("%s = %v wrote timeout %q and deadline %q", call, told, timeout, point)
		}
		for _, value := range timeout {
			if value != strconv.FormatInt(told.Milliseconds(), 10) {
				t.Errorf("%s = %v wrote timeout %q", call, told, value)
			}
		}
		for _, value := range point {
			if n, err := strconv.ParseInt(value, 10, 64); err != nil || n <= 0 || time.UnixMilli(n).Sub(at) > left {
				t.Errorf("%s wrote deadline %q, want above zero and at most what is left", call, value)
			}
		}
		for _, value := range number {
			if n, err := strconv.Atoi(value); err != nil || n < 2 || n < attempt || len(number) > 1 {
				t.Errorf("%s wrote attempt %q, want at least 2 and at least its own", call, number)
			}
		}
		if got := h[deadline.CorrelationHeader]; len(got) != 1 || got[0] == "" {
			t.Errorf("%s wrote correlation ids %q, want one", call, got)
		}
	})
}
