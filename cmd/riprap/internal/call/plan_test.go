package call

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

func planOf(t *testing.T, args string) *plan {
	t.Helper()
	return parsed(t, strings.Fields(args)...).foresee()
}

func TestPlanForPeople(t *testing.T) {
	got := planOf(t, "https://h.test/x?token=T0K -d 0123456789").text(terminal.Screen{Width: 80})
	want := `POST https://h.test: nothing is sent, this is what could be

retry  wait at least  on average  at most  of 1000 callers
1                 0s       250ms    500ms           2000/s
2                 0s       500ms       1s           1000/s
3                 0s          1s       2s            510/s

The last column: requests a second at the busiest moment, of 1000 such callers
  whose attempts all fail together and at once.
A server that asks for a wait gets it and up to a fifth more; if it asks for
  more than 1m, that is the end (--max-wait).
A POST without a key is sent again only if it surely was not processed; with
  --key also after failures that leave that open.
Worst total: 30s, cut by --timeout: 4 attempts of 10s and waits of 3.5s take
  43.5s, and 4m16s if the server asks for the longest waits that it may.
Largest load: 4 requests (--attempts) and 40 bytes uploaded by one call,
  4000 requests by 1000 callers. Each process has a budget of its own, so
  nothing limits them together.
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPlanSaysWhatBoundsItAndWhatDoesNot(t *testing.T) {
	for args, want := range map[string][]string{
		"--attempts 1": {
			"Worst total: 10s: 1 attempt of 10s.",
			"Largest load: 1 request by one call, 1000 requests by 1000 callers."},
		"--attempts 3 -m none --max-wait 1s --backoff 2s..2s": {
			"Worst total: 34s: 3 attempts of 10s and waits of 4s. The body may take longer, if something of it comes every 30s."},
		"--attempts 3 -m none --read-timeout none": {
			"Worst total: 2m54s: 3 attempts of 10s and waits of 1.5s take 31.5s, and 2m54s if the server asks for the longest waits that it may. Nothing bounds the body."},
		"-m none --attempt-timeout none": {
			"Worst total: no bound: nothing else bounds an attempt."},
		"-m none --max-wait none": {
			"Worst total: no bound: 4 attempts of 10s and waits of 3.5s take 43.5s, and nothing else bounds what the server may ask for."},
		"--attempts none --budget none": {
			"Worst total: 30s, cut by --timeout: nothing else bounds it.",
			"Largest load: no limit was found within 1000 attempts; --attempts, --budget or --timeout sets one."},
		"--attempts 30": {"Largest load: 11 requests (--budget) by one call,"},
		"--attempts none --budget none --jitter equal": {
			"Largest load: 10 requests (--timeout) by one call,"},
		"-L": {
			"Each redirect, 10 at most, is a request with attempts of its own.",
			"Largest load: 21 requests (--budget) by one call,"},
		"-L --budget none": {"Largest load: 44 requests (--attempts) by one call,"},
		"--jitter none":    {"1 500ms 500ms 500ms all at once 2 1s 1s 1s all at once 3 2s 2s 2s all at once"},
	} {
		got := strings.Join(strings.Fields(planOf(t, "h.test "+args).text(terminal.Screen{Width: 80})), " ")
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("--plan %s: got no %q in\n%s", args, text, got)
			}
		}
	}
}

func TestPlanForPrograms(t *testing.T) {
	text, err := planOf(t, "h.test --jitter none --attempts 2 --max-wait none -X PUT -d abc").json()
	want := `{"format":1,"method":"PUT","service":"http://h.test","sent_again_only_if_unprocessed":false,"attempts":2,"limited_by":"--attempts",` +
		`"retries":[{"least_seconds":0.5,"mean_seconds":0.5,"most_seconds":0.5,"most_requests_per_second":null}],"worst_total_seconds":30,` +
		`"cut_by_timeout":true,"longest_waits_seconds":0.5,"longest_waits_asked_seconds":null,"most_requests":2,"most_bytes_uploaded":6,` +
		`"callers":1000,"most_requests_of_callers":2000}` + "\n"
	if err != nil || text != want {
		t.Errorf("got\n%s(%v)\nwant\n%s", text, err, want)
	}
	text, err = planOf(t, "h.test --attempts none --budget none -m none").json()
	if err != nil || !strings.Contains(text, `"most_requests":null`) || !strings.Contains(text, `"worst_total_seconds":null`) || !json.Valid([]byte(text)) {
		t.Errorf("without limits: got\n%s(%v)\nwant null for them", text, err)
	}
}

func TestPlannedWaitsAreThoseOfTheBackoff(t *testing.T) {
	within := func(got, want time.Duration) bool { return math.Abs(float64(got-want)) <= float64(want)/100 }
	for args, want := range map[string][]step{
		"--jitter full":  {{0, 250 * time.Millisecond, 500 * time.Millisecond, 2000}, {0, 500 * time.Millisecond, time.Second, 1040}},
		"--jitter equal": {{250 * time.Millisecond, 375 * time.Millisecond, 500 * time.Millisecond, 4000}, {500 * time.Millisecond, 750 * time.Millisecond, time.Second, 2000}},
		// From a base of 1 s: a draw below 3 s, then one below three times that, of which the mean is 1/2 + 3/2 of the mean before. Of
		// their sum the density is highest at 4 s: ln(4)/6, somewhat less over the window.
		"--jitter decorrelated --backoff 1s..1h": {{time.Second, 2 * time.Second, 3 * time.Second, 500}, {time.Second, 3500 * time.Millisecond, 9 * time.Second, 224}},
	} {
		for i, w := range want {
			got := planOf(t, "h.test "+args).steps[i]
			if !within(got.mean, w.mean) || got.most != w.most || (got.least-w.least).Abs() > time.Microsecond || math.Abs(got.rate-w.rate) > w.rate/20 {
				t.Errorf("%s, retry %d: got %+v, want %+v", args, i+1, got, w)
			}
		}
	}
}

// The plan is of the engine's making, and so is the call: one that meets the worst takes as long and sends as often as was
// foreseen, to the nanosecond.
func TestWorstCallIsAsPlanned(t *testing.T) {
	hang := failing(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	for _, args := range []string{
		"--attempts 3 --attempt-timeout 2s -m none --max-wait 100ms",
		"--attempts 5 --attempt-timeout 1s -m none --max-wait 100ms --jitter decorrelated --backoff 1s..9s",
		"--attempts none --budget 4 --attempt-timeout 1s -m none --max-wait 100ms --jitter none",
		"--attempts 9 --attempt-timeout 4s -m 10s --jitter equal --backoff 100ms..100ms",
	} {
		t.Run(args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := planOf(t, "h.test "+args)
				p.policy.Rand = func() float64 { return 0 }
				start := time.Now()
				p.do(t.Context(), hang, &strings.Builder{}, &strings.Builder{})
				if got := time.Since(start); got != p.worst {
					t.Errorf("took %v, want %v", got, p.worst)
				}
			})
		})
	}
}

func TestLargestLoadIsAsPlanned(t *testing.T) {
	for _, args := range []string{"", "--attempts 30", "--attempts none --budget 3", "--attempts none --budget none --jitter equal", "--attempts none --budget none --jitter none --backoff 1s..1s"} {
		t.Run(args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, sent := planOf(t, "h.test "+args), 0
				p.policy.Rand = func() float64 { return math.Nextafter(1, 0) }
				p.do(t.Context(), failing(func(*http.Request) (*http.Response, error) {
					sent++
					return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
				}), &strings.Builder{}, &strings.Builder{})
				if sent != p.requests {
					t.Errorf("sent %d requests, want %d", sent, p.requests)
				}
			})
		})
	}
}

func TestPlanSendsNothing(t *testing.T) {
	h := script(t, "200")
	o := parsed(t, "--plan", "h.test")
	var out strings.Builder
	if err := o.show(&out); err != nil || len(h.Arrivals("")) > 0 || !strings.HasPrefix(out.String(), "GET http://h.test: nothing is sent") {
		t.Errorf("got error %v and\n%s", err, &out)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add(4, 10, int64(500*time.Millisecond), int64(10*time.Second), int64(30*time.Second), int64(time.Minute), 0, false)
	f.Add(-1, -1, int64(1), int64(1), int64(-1), int64(-1), 3, true)
	f.Add(1, 1, int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), 2, true)
	f.Fuzz(func(t *testing.T, attempts, retries int, base, longest, timeout, maxWait int64, kind int, follow bool) {
		if attempts == 0 || retries == 0 || base <= 0 || longest < base || timeout == 0 || maxWait == 0 {
			return
		}
		o := parsed(t, "h.test")
		o.follow, o.retries, o.timeout = follow, max(retries, -1), time.Duration(timeout)
		o.policy.MaxAttempts, o.policy.MaxWait, o.policy.AttemptTimeout = attempts, time.Duration(maxWait), time.Duration(timeout)
		o.policy.Backoff = riprap.Backoff{Base: time.Duration(base), Max: time.Duration(longest), Jitter: riprap.Jitter(kind & 3)}
		p := o.foresee()
		if p.requests < 0 || p.worst < 0 || p.waits < 0 || timeout > 0 && (p.worst == 0 || p.worst > o.timeout) {
			t.Errorf("got %d requests, worst %v, waits %v with --timeout %v", p.requests, p.worst, p.waits, o.timeout)
		}
		if text, err := p.json(); err != nil || !json.Valid([]byte(text)) {
			t.Errorf("got %s, %v", text, err)
		}
		p.text(terminal.Screen{Width: 80})
	})
}
