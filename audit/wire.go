package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

// What goes over the wire beside the request itself.
var wireRules = []rule{
	{
		Rule: Rule{
			ID:     "redirect-secrets",
			Title:  "no credentials and no key to another host on a redirect",
			Why:    "whoever controls the redirect's target gets the credentials; a key that is used elsewhere blocks or replays there",
			Source: "RFC 9110 §15.4; CVE-2024-45336",
			Fix:    "drop Authorization and Idempotency-Key when a redirect leads to another origin",
		},
		scenarios: []string{"redirect", "keyed-redirect"},
		judge:     keepsSecrets,
	},
	{
		Rule: Rule{
			ID:     "deadline-shrinks",
			Title:  "a deadline that it sends is no later than the time it has",
			Why:    "the services below work on answers that nobody waits for any more",
			Source: "gRPC over HTTP/2 (grpc-timeout); Google SRE book, chapter 22, deadline propagation",
			Fix:    "send the time that is left, computed at each attempt",
		},
		scenarios: []string{"503", "hang", "late-503"},
		judge:     sendsDeadline,
	},
	{
		Rule: Rule{
			ID:     "attempt-header",
			Title:  "an attempt header counts right",
			Why:    "who reads it takes first tries for retries, or the reverse: layers below decide wrongly, and graphs lie",
			Source: "gRPC proposal A6 (grpc-previous-rpc-attempts)",
			Fix:    "set the header anew for each attempt, one value, counting up by one",
		},
		scenarios: []string{"503", "429"},
		judge:     countsAttempts,
	},
	{
		Rule: Rule{
			ID:     "connections-reused",
			Title:  "attempts share a connection",
			Why:    "an outage adds a handshake to each retry, and an answer that is not read leaves a connection open each time",
			Source: "RFC 9112 §9.3",
			Fix:    "read a failed answer to its end, within limits, and close it before the next attempt",
		},
		scenarios: []string{"503"},
		judge:     reusesConnections,
	},
}

func keepsSecrets(_ *observed, runs []*run) outcome {
	followed := false
	var carried, leaked, evidence []string
	for _, name := range []string{"Authorization", "Idempotency-Key"} {
		for _, r := range runs {
			if len(r.arrivals[0].Header[name]) == 0 {
				continue
			}
			carried = append(carried, name)
			for _, a := range r.redirected {
				followed = true
				line := fmt.Sprintf("%s: %s %s on the other host came with %s", r.scenario.name, a.Method, a.Path, name)
				if len(a.Header[name]) > 0 && !slices.Contains(evidence, line) {
					evidence = append(evidence, line)
					leaked = append(leaked, name)
				}
			}
		}
	}
	kept := slices.DeleteFunc(carried, func(name string) bool { return slices.Contains(leaked, name) })
	switch {
	case len(leaked) > 0:
		seen := strings.Join(slices.Compact(leaked), " and ") + " went on to another host"
		if len(kept) > 0 {
			seen += ", " + kept[0] + " did not"
		}
		return outcome{Fail, seen, evidence}
	case len(kept) == 0:
		return outcome{NotApplicable, "it was given neither credentials nor a key", nil}
	case !followed:
		return outcome{Pass, "it does not follow to another host", nil}
	default:
		return outcome{Pass, "it follows without them", nil}
	}
}

// deadlineHeaders say how much time is left, in their own ways.
var deadlineHeaders = map[string]func(string) (time.Duration, bool){
	"X-Request-Timeout-Ms":           milliseconds,
	"X-Envoy-Expected-Rq-Timeout-Ms": milliseconds,
	"Grpc-Timeout":                   grpcTimeout,
}

func milliseconds(s string) (time.Duration, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}

var grpcUnits = map[string]time.Duration{"H": time.Hour, "M": time.Minute, "S": time.Second,
	"m": time.Millisecond, "u": time.Microsecond, "n": time.Nanosecond}

func grpcTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, known := grpcUnits[s[len(s)-1:]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if err != nil || !known {
		return 0, false
	}
	return min(time.Duration(n), math.MaxInt64/unit) * unit, true // eight digits of hours are more than a Duration holds
}

// A promise is what an attempt says of the time that it has left.
type promise struct {
	attempt int // counted from zero
	header  string
	values  []string
	left    time.Duration
	read    bool // there is one value, and it is a time
}

func (p promise) String() string { return fmt.Sprintf("attempt %d sent %s", p.attempt+1, p.header) }

// promises returns those of a run's attempts in a header.
func (r *run) promises(header string) (all []promise) {
	for i, a := range r.arrivals {
		if values := a.Header[header]; len(values) > 0 {
			left, ok := deadlineHeaders[header](values[0])
			all = append(all, promise{i, header, values, left, ok && len(values) == 1})
		}
	}
	return all
}

// sendsDeadline looks at what each attempt promises the server: never more than the one before, and where the server hangs, no
// longer than the client then stays.
func sendsDeadline(o *observed, runs []*run) outcome {
	found := ""
	unclear := outcome{}
	for _, name := range slices.Sorted(maps.Keys(deadlineHeaders)) {
		for _, r := range runs {
			promises := r.promises(name)
			if len(promises) == 0 {
				continue
			}
			found = name
			if fault := cmp.Or(unreadable(promises), growing(promises)); fault != "" {
				return outcome{Fail, fault, timelines([]*run{r})}
			}
			switch verdict, seen := outlasting(o, r, promises); verdict {
			case Fail:
				return outcome{Fail, seen, timelines([]*run{r})}
			case Inconclusive:
				unclear = outcome{Inconclusive, seen, timelines([]*run{r})}
			}
		}
	}
	switch {
	case found == "":
		return outcome{NotApplicable, "it sends no deadline", nil}
	case unclear.verdict != "":
		return unclear
	default:
		return outcome{Pass, found + " never promises more than the attempt before, nor than it stays", nil}
	}
}

func unreadable(promises []promise) string {
	for _, p := range promises {
		if !p.read {
			return fmt.Sprintf("%s that cannot be read: %s", p, strings.Join(p.values, ", "))
		}
	}
	return ""
}

const (
	// A deadline grows if it is longer than the one before by more than this share of that, and by what a machine may be slow by:
	// with a limit for each attempt it stays the same, nearly.
	promiseGrowth = 0.05

	// A deadline is too long if it is longer than the client stays by more than this share of that, and by this much: the client
	// may have had to wait for the machine, or have rounded up to whole seconds.
	promiseExcess   = 0.5
	promiseRounding = time.Second / 2
)

// growing says which promise is longer than the one before.
func growing(promises []promise) string {
	for i, p := range promises[1:] {
		before := promises[i].left
		if p.left-before > time.Duration(promiseGrowth*float64(before))+tellable {
			return fmt.Sprintf("%s of %s after one of %s", p, short(p.left), short(before))
		}
	}
	return ""
}

// outlasting says which promise is longer than the client stayed. An empty verdict: none.
func outlasting(o *observed, r *run, promises []promise) (Verdict, string) {
	for _, p := range promises {
		stayed, gone := r.stayed(p.attempt)
		if !gone || p.left-stayed <= time.Duration(promiseExcess*float64(stayed))+promiseRounding {
			continue
		}
		seen := fmt.Sprintf("%s of %s, and left after %s", p, short(p.left), short(stayed))
		came := r.arrivals[p.attempt].Time
		if o.noisy(p.left/4, []span{{came, came.Add(stayed)}}) {
			return Inconclusive, seen + ", on a machine too busy to tell how long it stays"
		}
		return Fail, seen
	}
	return "", ""
}

// stayed says how long the client waited for the answer to an attempt, and whether it was the client that ended that.
func (r *run) stayed(attempt int) (time.Duration, bool) {
	a := r.arrivals[attempt]
	switch {
	case r.cut && attempt == len(r.arrivals)-1: // the audit ended it
		return 0, false
	case a.Ended.IsZero(): // the server has not noticed yet
		return r.began.Add(r.took).Sub(a.Time), true
	default:
		return a.Ended.Sub(a.Time), a.Left
	}
}

// attemptHeaders say which attempt a request is.
var attemptHeaders = []string{"X-Request-Attempt", "X-Retry-Attempt", "X-Retry-Count", "Retry-Attempt", "X-Attempt",
	"X-Stainless-Retry-Count", "Grpc-Previous-Rpc-Attempts", "X-Envoy-Attempt-Count", "Amz-Sdk-Request"}

// attemptOf reads an attempt header: a number, or AWS's "attempt=2; max=3".
func attemptOf(value string) (int, bool) {
	if rest, ok := strings.CutPrefix(value, "attempt="); ok {
		value, _, _ = strings.Cut(rest, ";")
	}
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		return 0, false
	}
	return n, true
}

func countsAttempts(_ *observed, runs []*run) outcome {
	for _, name := range attemptHeaders {
		carries := func(a flaky.Arrival) bool { return len(a.Header[name]) > 0 }
		counted := slices.DeleteFunc(retried(runs), func(r *run) bool { return !slices.ContainsFunc(r.arrivals, carries) })
		if len(counted) == 0 {
			continue
		}
		for _, r := range counted {
			if fault := miscount(r.arrivals, name); fault != "" {
				return outcome{Fail, name + ": " + fault, timelines([]*run{r})}
			}
		}
		return outcome{Pass, name + " counts up by one", nil}
	}
	return outcome{NotApplicable, "it sends no attempt header that is known, or did not try again", nil}
}

// miscount says what is wrong with an attempt header. It may count from zero or one, and be absent on the first attempt.
func miscount(arrivals []flaky.Arrival, name string) string {
	var seen []string
	base, based := 0, false
	for i, a := range arrivals {
		values := a.Header[name]
		seen = append(seen, strings.Join(values, "+"))
		if len(values) == 0 && i == 0 {
			continue
		}
		if len(values) != 1 {
			return fmt.Sprintf("attempt %d carries %s", i+1, plural(len(values), "value"))
		}
		n, ok := attemptOf(values[0])
		if !ok {
			return fmt.Sprintf("attempt %d says %q", i+1, values[0])
		}
		if !based {
			base, based = n-i, true
		}
		if n-i != base || base < 0 || base > 1 {
			return "attempts say " + strings.Join(seen, ", ")
		}
	}
	return ""
}

// mostRuns settle it: a connection may be lost here and there, or be shared by luck.
const mostRuns = 0.75

func reusesConnections(_ *observed, runs []*run) outcome {
	runs = retried(runs)
	if len(runs) == 0 {
		return neverRetried
	}
	shared, alone := 0, 0 // runs
	var evidence []string
	for _, r := range runs {
		conns := map[string]int{} // in the order in which they came
		line := r.scenario.name + ": attempts on connections"
		for _, a := range r.arrivals {
			if conns[a.Conn] == 0 {
				conns[a.Conn] = len(conns) + 1
			}
			line += fmt.Sprintf(" %d", conns[a.Conn])
		}
		if len(evidence) < shownRuns {
			evidence = append(evidence, line)
		}
		switch len(conns) {
		case 1:
			shared++
		case r.attempts():
			alone++
		}
	}
	seen := fmt.Sprintf("in %d of %d runs one connection carried all attempts", shared, len(runs))
	switch {
	case float64(shared) > mostRuns*float64(len(runs)):
		return outcome{Pass, seen, evidence}
	case float64(alone) > mostRuns*float64(len(runs)):
		return outcome{Fail, fmt.Sprintf("in %d of %d runs each attempt opened a connection", alone, len(runs)), evidence}
	default:
		return outcome{Inconclusive, seen, evidence}
	}
}
