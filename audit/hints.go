package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// What it makes of Retry-After.
var hintRules = []rule{
	{
		Rule: Rule{
			ID:     "retry-after-seconds",
			Title:  "no attempt comes earlier than Retry-After says in seconds",
			Why:    "the server says when it can answer: whoever comes earlier is refused again and keeps it busy",
			Source: "RFC 9110 §10.2.3",
			Fix:    "wait for at least as long as asked, and add jitter on top",
		},
		scenarios: []string{"wait-seconds", "wait-429"},
		beside:    []string{"503"},
		judge:     noEarlier(3*time.Second, 3*time.Second, ""),
	},
	{
		Rule: Rule{
			ID:     "retry-after-date",
			Title:  "no attempt comes before the date in Retry-After",
			Why:    "a parser for numbers reads a date as zero, and the client comes back at once",
			Source: "RFC 9110 §10.2.3, §5.6.7",
			Fix:    "read all three forms of an HTTP-date too",
		},
		scenarios: []string{"wait-date"},
		beside:    []string{"503"},
		judge:     noEarlier(3*time.Second, 2*time.Second, "HTTP-dates have whole seconds"),
	},
	{
		Rule: Rule{
			ID:     "retry-after-both",
			Title:  "seconds and a date in two lines are no reason to come earlier than both",
			Why:    "proxies add a Retry-After of their own; a client that trips over two comes back at once",
			Source: "RFC 9110 §5.3, §10.2.3",
			Fix:    "take the longest wait of those that can be read",
		},
		scenarios: []string{"wait-both"},
		beside:    []string{"503"},
		judge:     noEarlier(4*time.Second, 2*time.Second, "the longer one is safer, the RFC leaves the choice open"),
	},
	{
		Rule: Rule{
			ID:     "retry-after-past",
			Title:  "a date in the past does not make it hammer",
			Why:    "a stale or cached answer makes every client come back at once, again and again",
			Source: "RFC 9110 §10.2.3",
			Fix:    "fall back to the client's own backoff",
		},
		scenarios: []string{"wait-past"},
		beside:    []string{"503"},
		judge:     doesNotHammer,
	},
	{
		Rule: Rule{
			ID:     "retry-after-zero",
			Title:  "Retry-After: 0 does not make it hammer",
			Why:    "zero means that the server sets no minimum, not that it wants the request in a loop",
			Source: "RFC 9110 §10.2.3",
			Fix:    "keep the client's own backoff as the least wait",
		},
		scenarios: []string{"wait-zero"},
		beside:    []string{"503"},
		judge:     doesNotHammer,
	},
	{
		Rule: Rule{
			ID:     "retry-after-unreadable",
			Title:  "a Retry-After that cannot be read does not make it hammer",
			Why:    "what does not parse becomes zero, and zero a loop",
			Source: "RFC 9110 §10.2.3",
			Fix:    "treat what does not parse as absent",
		},
		scenarios: []string{"wait-unreadable"},
		beside:    []string{"503"},
		judge:     doesNotHammer,
	},
	{
		Rule: Rule{
			ID:     "retry-after-huge",
			Title:  "it comes back neither early nor after a day when asked to wait for a day",
			Why:    "capped, the wait is broken; obeyed, the caller sleeps for a day; as a number too large it overflows and is a wait of nothing",
			Source: "RFC 9110 §10.2.3",
			Fix:    "above a limit stop at once, and tell the caller how long the server asked for",
		},
		scenarios: []string{"wait-day"},
		beside:    append([]string{"wait-seconds", "wait-429", "503"}, overflowing...),
		judge:     stopsWhenAskedTooMuch,
	},
	{
		Rule: Rule{
			ID:     "retry-after-not-faster",
			Title:  "it is never faster with Retry-After than without",
			Why:    "seconds taken for milliseconds or nanoseconds, or a zero taken for a wait, turn a plea for time into its opposite",
			Source: "RFC 9110 §10.2.3",
			Fix:    "wait for the longer one: what the server asks or the client's own backoff",
		},
		scenarios: hinted,
		beside:    []string{"503"},
		judge:     notFaster,
	},
}

// hinted are the scenarios with the header in which a client may come back.
var hinted = []string{"wait-seconds", "wait-429", "wait-date", "wait-both", "wait-past", "wait-zero", "wait-unreadable", "wait-overflow"}

// overflowing are the scenarios whose waits are too long for some integers.
var overflowing = []string{"wait-overflow", "wait-overflow-int", "wait-overflow-ms"}

// Timers may fire so much early by another clock. Node's do, by a millisecond.
const early = 20 * time.Millisecond

const (
	// A client hammers if its waits are shorter than hammering but for one in four, which a busy machine may have made longer.
	hammering         = 10 * time.Millisecond
	hammeringQuantile = 0.75

	// A wait with the header is shorter than one without it if it is below this share of it: a fifth is left for what the machine
	// adds to some waits and not to others.
	fasterShare = 0.8

	// A client that stops at once when asked for a day is done within this share of the patience.
	stopsWithin = 0.1
)

// ownIsLonger says that a client's own waits hide whether it heeds what is asked.
func ownIsLonger(o *observed, asked time.Duration) bool {
	own := gapsAt(o.of("503"), 0)
	return len(own) > 0 && slices.Min(own) >= asked
}

// noEarlier fails waits that are shorter than least, which is what a careful client may take the wait asked for to be. The remark
// says why waits between the two are right.
func noEarlier(asked, least time.Duration, remark string) func(*observed, []*run) outcome {
	return func(o *observed, runs []*run) outcome {
		runs = retried(runs)
		if len(runs) == 0 {
			return neverRetried
		}
		shortest := slices.Min(allGaps(runs))
		seen := fmt.Sprintf("asked for %s, it came back after %s at the earliest", short(asked), short(shortest))
		switch {
		case shortest < least-early:
			return outcome{Fail, seen, timelines(runs)}
		case ownIsLonger(o, least):
			return outcome{Inconclusive, seen + ", but its own waits are as long", timelines(runs)}
		case shortest < asked-early:
			return outcome{Pass, seen + "; " + remark, timelines(runs)}
		default:
			return outcome{Pass, seen, timelines(runs)}
		}
	}
}

// doesNotHammer fails a client that waits for nothing in several runs. One wait drawn short by chance is not followed by others.
func doesNotHammer(o *observed, runs []*run) outcome {
	again := retried(runs)
	wait := quantile(allGaps(again), hammeringQuantile)
	switch {
	case len(again) == 0 && len(retried(o.of("503"))) == 0:
		return neverRetried
	case len(again) == 0:
		return outcome{Pass, "it stops", timelines(runs)}
	case wait < hammering:
		return outcome{Fail, fmt.Sprintf("three quarters of its waits are shorter than %s", short(wait)), timelines(again)}
	case wait < tellable || o.noisy(wait/clientWork, spansAt(again)):
		return outcome{Inconclusive, fmt.Sprintf("a quarter of its waits are %s or longer: too short to tell on this machine", short(wait)), timelines(again)}
	default:
		return outcome{Pass, fmt.Sprintf("its own waits, a quarter of them %s or longer", short(wait)), timelines(again)}
	}
}

func allGaps(runs []*run) (all []time.Duration) {
	for _, r := range runs {
		all = append(all, r.gaps()...)
	}
	return all
}

func stopsWhenAskedTooMuch(o *observed, day []*run) outcome {
	overflow := o.of(overflowing...)
	runs := slices.Concat(day, overflow)
	for _, r := range day {
		if r.attempts() > 1 {
			return outcome{Fail, fmt.Sprintf("asked for a day, it came back after %s", short(r.gaps()[0])), timelines(day)}
		}
	}
	for _, r := range runs {
		if r.cut {
			return outcome{Fail, fmt.Sprintf("it was still waiting after %s, with no word to its caller", short(r.took)), timelines(runs)}
		}
	}
	for _, name := range overflowing {
		again := retried(o.of(name))
		if wait := quantile(allGaps(again), hammeringQuantile); len(again) > 0 && wait < hammering {
			return outcome{Fail, fmt.Sprintf("a number too large for its integers makes it come back after %s", short(wait)), timelines(again)}
		}
	}
	if len(retried(o.of("wait-seconds", "wait-429", "503"))) == 0 && len(retried(overflow)) == 0 {
		return neverRetried
	}
	seen := "asked for a day, it stops"
	longest := slices.MaxFunc(day, func(a, b *run) int { return cmp.Compare(a.took, b.took) }).took
	if float64(longest) > stopsWithin*float64(o.patience) {
		seen = fmt.Sprintf("asked for a day, it waits, and gives up after %s", short(longest))
	}
	return outcome{Pass, seen, timelines(runs)}
}

// notFaster asks of each scenario whether all its first waits are shorter than all those without the header, by a fifth, and of
// so many that of waits drawn alike that is so by chance once in a million times or less.
func notFaster(o *observed, _ []*run) outcome {
	without := gapsAt(o.of("503"), 0)
	if len(without) == 0 {
		return neverRetried
	}
	least := slices.Min(without)
	seen := fmt.Sprintf("without the header its first wait was %s or longer", short(least))
	if quantile(without, hammeringQuantile) < hammering {
		return outcome{NotApplicable, seen + ": it waits for nothing, and cannot be faster", nil}
	}
	compared := 0
	var unclear outcome // the first scenario that does not tell, if any
	for _, name := range hinted {
		with := gapsAt(o.of(name), 0)
		if len(with) == 0 {
			continue
		}
		compared++
		longest := slices.Max(with)
		if float64(longest) >= fasterShare*float64(least) {
			continue
		}
		faster := outcome{Fail, fmt.Sprintf("%s; in %s it was %s or shorter", seen, name, short(longest)), timelines(o.of(name))}
		switch {
		case allBelow(len(with), len(without)) > alpha:
			faster.seen += fmt.Sprintf(", but %d waits and %d are too few to tell", len(with), len(without))
		case o.noisy((least-longest)/clientWork, spansAt(o.of("503"), 0)): // it was busy without the header, and not with it
			faster.seen += ": too little to tell on this machine"
		default:
			return faster
		}
		if unclear.verdict == "" {
			unclear = outcome{Inconclusive, faster.seen, faster.evidence}
		}
	}
	switch {
	case compared == 0:
		return outcome{NotApplicable, seen + ", and with it it never came back", nil}
	case unclear.verdict != "":
		return unclear
	default:
		return outcome{Pass, fmt.Sprintf("%s, and with it no shorter, in %s in which it came back", seen, plural(compared, "scenario")), nil}
	}
}

// allBelow is the chance that k waits are all shorter than n others, if all are drawn alike.
func allBelow(k, n int) float64 {
	chance := 1.0
	for i := 1; i <= k; i++ {
		chance *= float64(i) / float64(n+i)
	}
	return chance
}
