package audit

import (
	"fmt"
	"slices"
	"time"
)

// Whether it tries again, and how it waits.
var retryRules = []rule{
	{
		Rule: Rule{
			ID:     "retries-503",
			Title:  "a GET is sent again after 503",
			Why:    "a single overloaded or restarting instance becomes the caller's error",
			Source: "RFC 9110 §15.6.4, §9.2.2",
			Fix:    "try again after 502, 503 and 504, a few times, with backoff",
		},
		scenarios: []string{"503"},
		judge:     triesAgain,
	},
	{
		Rule: Rule{
			ID:     "retries-429",
			Title:  "a GET is sent again after 429",
			Why:    "a limit that is over in a second becomes the caller's error",
			Source: "RFC 6585 §4",
			Fix:    "try again after 429, no earlier than Retry-After says",
		},
		scenarios: []string{"429"},
		judge:     triesAgain,
	},
	{
		Rule: Rule{
			ID:     "retries-reset",
			Title:  "a GET is sent again after a connection reset",
			Why:    "each deployment of the service resets connections, and each reset becomes the caller's error",
			Source: "RFC 9110 §9.2.2",
			Fix:    "try a request with an idempotent method again when its connection breaks",
		},
		scenarios: []string{"reset"},
		judge:     triesAgain,
	},
	{
		Rule: Rule{
			ID:     "backoff-grows",
			Title:  "waits grow from attempt to attempt",
			Why:    "a service that is down for a minute gets the same load from its clients for the whole of it",
			Source: "Google SRE book, chapter 22; RFC 9110 leaves it to clients",
			Fix:    "double the wait after each failure, up to a cap",
		},
		scenarios: []string{"503"},
		judge:     grows,
	},
	{
		Rule: Rule{
			ID:     "jitter",
			Title:  "waits differ from run to run",
			Why:    "all clients that failed together return together, and the service fails again at that instant",
			Source: "AWS Architecture Blog, Exponential Backoff And Jitter (2015)",
			Fix:    "draw each wait at random between zero and the backoff (full jitter)",
		},
		scenarios: []string{"503"},
		judge:     jitters,
	},
	{
		Rule: Rule{
			ID:     "jitter-at-cap",
			Title:  "waits at the cap still differ",
			Why:    "jitter that is added before the wait is clipped is gone at the cap: in a long outage all clients come into step",
			Source: "AWS Architecture Blog, Exponential Backoff And Jitter (2015)",
			Fix:    "clip the backoff first, then draw the wait below it",
		},
		scenarios: []string{"503"},
		judge:     jittersAtCap,
	},
	{
		Rule: Rule{
			ID:     "amplification",
			Title:  "many calls in an outage are not multiplied by their retries",
			Why:    "with three retries for every call a service that comes back meets four times its load, and goes down again",
			Source: "Google SRE book, chapter 21, Handling Overload: a retry budget for each client",
			Fix:    "limit retries over all calls of the process, to a tenth or a fifth of them",
		},
		scenarios: []string{"many"},
		beside:    []string{"503"},
		judge:     amplifies,
	},
}

func triesAgain(_ *observed, runs []*run) outcome {
	r := mostAttempts(runs)
	if r.attempts() < 2 {
		return outcome{Fail, "sent once", timelines([]*run{r})}
	}
	return outcome{Pass, fmt.Sprintf("sent %d times", r.attempts()), timelines([]*run{r})}
}

// neverRetried is the outcome where a client that never tries again has nothing to be judged by.
var neverRetried = outcome{NotApplicable, "it did not try again", nil}

const (
	// Growth is judged by the waits that a fifth of the runs exceed, the last ones against the first: with full jitter too they
	// grow as the backoff does, where single waits say little. Of full jitter that does not grow, 2 in 1000 clients pass with
	// 32 runs; of one that doubles once, 15 in 1000 are inconclusive.
	growthQuantile = 0.8
	growthLeast    = 1.5  // times as long, or more: they grow
	growthNone     = 1.15 // times as long, or less: they do not
	growthRuns     = 8    // fewer cannot tell

	// A cap is reached if the waits that a tenth of the runs exceed are, at the last retry, at most so many times as long as
	// before. A backoff that still doubles is above that.
	capQuantile = 0.9
	capGrowth   = 1.5

	// Calls that limit their retries together send so many requests each in an outage, or fewer. It takes so many calls to tell:
	// a budget may have ten retries in reserve.
	amplificationMost  = 1.5
	amplificationCalls = 20
)

func grows(o *observed, runs []*run) outcome {
	waits := commonGaps(runs)
	switch {
	case len(waits) == 0:
		return neverRetried
	case len(waits) == 1:
		return outcome{NotApplicable, "it tried again once: one wait cannot grow", timelines(runs)}
	}
	first, last := waits[0], waits[len(waits)-1]
	if len(last) < growthRuns {
		return outcome{Inconclusive, "too few runs tried again twice", timelines(runs)}
	}
	from, to := quantile(first, growthQuantile), quantile(last, growthQuantile)
	seen := fmt.Sprintf("from %s at first to %s at last (exceeded by a fifth of %d runs)", short(from), short(to), len(last))
	evidence := timelines(runs)
	switch ratio := float64(to) / float64(max(from, 1)); {
	case to <= atOnce:
		return outcome{Fail, "it tries again at once: " + seen, evidence}
	case to < tellable || o.noisy(to/4, spansAt(runs, 0, len(waits)-1)):
		return outcome{Inconclusive, seen + ": too short to tell on this machine", evidence}
	case ratio >= growthLeast:
		return outcome{Pass, seen, evidence}
	case ratio <= growthNone:
		return outcome{Fail, seen, evidence}
	default:
		return outcome{Inconclusive, seen, evidence}
	}
}

// commonGaps returns the gaps before each retry that most runs made, and those before the first one in any case.
func commonGaps(runs []*run) (waits [][]time.Duration) {
	for n := range len(mostAttempts(runs).gaps()) {
		gaps := gapsAt(runs, n)
		if n > 0 && 2*len(gaps) <= len(runs) {
			break
		}
		waits = append(waits, gaps)
	}
	return waits
}

func jitters(o *observed, runs []*run) outcome {
	if len(retried(runs)) == 0 {
		return neverRetried
	}
	// One wait that differs is enough; where none does, the longest says it best, since the machine adds the same to all.
	var best spread
	var verdict Verdict
	waits := commonGaps(runs)
	for n, gaps := range waits {
		s := spreadOf(gaps)
		// Each is one more chance to pass by luck.
		if v := o.spreadVerdict(s, alpha/float64(len(waits)), spansAt(runs, n)); v == Pass || s.mean > best.mean || n == 0 {
			best, verdict = s, v
		}
		if verdict == Pass {
			break
		}
	}
	seen := best.String()
	if verdict == Fail && best.mean <= atOnce {
		seen = "it tries again at once, always"
	}
	return outcome{verdict, seen, timelines(runs)}
}

// spreadVerdict judges a spread on this machine: waits do not pass where it disturbs too many.
func (o *observed) spreadVerdict(s spread, level float64, waits []span) Verdict {
	v := s.verdict(level)
	if v == Pass && o.noisy(s.window, waits) {
		return Inconclusive
	}
	return v
}

func (s spread) String() string {
	return fmt.Sprintf("of %d waits around %s, %d lie within %s of each other", s.n, short(s.mean), s.densest, short(s.window))
}

func jittersAtCap(o *observed, runs []*run) outcome {
	if len(retried(runs)) == 0 {
		return neverRetried
	}
	waits := commonGaps(runs)
	last := len(waits) - 1
	if last < 1 {
		return outcome{NotApplicable, "it tried again too seldom to reach a cap", timelines(runs)}
	}
	// At a cap the longest waits stay what they were. To take a small step for a cap does no harm: what is judged is the spread.
	var before time.Duration
	for _, gaps := range waits[:last] {
		before = max(before, quantile(gaps, capQuantile))
	}
	if at := quantile(waits[last], capQuantile); float64(at) > capGrowth*float64(before) {
		return outcome{NotApplicable, fmt.Sprintf("no cap seen: its waits still grew at the last retry, from %s to %s", short(before), short(at)),
			timelines(runs)}
	}
	s := spreadOf(waits[last])
	return outcome{o.spreadVerdict(s, alpha, spansAt(runs, last)), fmt.Sprintf("retry %d: %s", last+1, s), timelines(runs)}
}

func amplifies(o *observed, runs []*run) outcome {
	r := runs[0]
	calls := r.call.Calls
	single := 0
	if alone := o.of("503"); len(alone) > 0 {
		single = mostAttempts(alone).attempts()
	}
	factor := float64(r.attempts()) / float64(calls)
	seen := fmt.Sprintf("%d calls in one process, all answered 503, became %d requests: %.2f for each; a call alone sends %d",
		calls, r.attempts(), factor, single)
	switch {
	case single < 2:
		return neverRetried
	case calls < amplificationCalls:
		return outcome{Inconclusive, fmt.Sprintf("%s; to tell, it takes %d calls or more", seen, amplificationCalls), nil}
	case factor > amplificationMost: // more can only come
		return outcome{Fail, seen, []string{perSecond(r)}}
	case r.cut:
		if r.attempts() < calls {
			return outcome{Inconclusive, seen + "; not all were begun when patience ended: they are to be made at once", nil}
		}
		return outcome{Inconclusive, seen + "; they were not over when patience ended", nil}
	default:
		return outcome{Pass, seen, nil}
	}
}

// perSecond says how many requests came in each second.
func perSecond(r *run) string {
	var counts []int
	for _, a := range r.arrivals {
		n := int(a.Time.Sub(r.arrivals[0].Time) / time.Second)
		counts = append(counts, slices.Repeat([]int{0}, max(n+1-len(counts), 0))...)
		counts[n]++
	}
	return fmt.Sprintf("requests in each second: %v", counts[:min(len(counts), shownSeconds)])
}
