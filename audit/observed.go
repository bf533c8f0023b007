package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// observed is what an audit saw, for the rules to judge.
type observed struct {
	runs     map[string][]*run // by scenario
	patience time.Duration
	claims   []string
	late     lateness // of this machine
}

// noisy reports whether this machine was late by more than d at too many of these waits for them to be told from others that are so
// much longer. How it was at other times does not matter: programs start together, and a client without a timeout takes
// its time when all others are over.
func (o *observed) noisy(d time.Duration, waits []span) bool {
	disturbed := 0
	for _, s := range waits {
		if o.late.near(s) > d {
			disturbed++
		}
	}
	return float64(disturbed) > disturbedShare*float64(len(waits))
}

// of returns the runs of the scenarios in which at least one request came.
func (o *observed) of(names ...string) (runs []*run) {
	for _, name := range names {
		for _, r := range o.runs[name] {
			if len(r.arrivals) > 0 {
				runs = append(runs, r)
			}
		}
	}
	return runs
}

func (o *observed) slowest() (longest time.Duration) {
	for _, runs := range o.runs {
		for _, r := range runs {
			longest = max(longest, r.took)
		}
	}
	return longest
}

// unjudged says why there is nothing to judge in some scenarios, and with which verdict. An empty verdict: there is something.
func (o *observed) unjudged(names []string) (Verdict, string) {
	var silent error
	var unable []string
	for _, name := range names {
		for _, r := range o.runs[name] {
			switch {
			case len(r.arrivals) > 0 || len(r.dials) > 0:
				return "", ""
			case errors.Is(r.err, errors.ErrUnsupported):
				unable = append(unable, strings.TrimPrefix(firstLine(r.err), errors.ErrUnsupported.Error()+": "))
			default:
				silent = cmp.Or(r.err, errors.New("it reported no error"))
			}
		}
	}
	if silent != nil {
		return Inconclusive, "no request came: " + firstLine(silent)
	}
	return NotApplicable, strings.Join(slices.Compact(unable), "; ")
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// attempts is how often the request was sent.
func (r *run) attempts() int { return len(r.arrivals) }

// A span is a wait: from the end of an attempt to the start of the next.
type span struct{ from, to time.Time }

// spans are the waits of a run. An attempt that began before the one before had ended followed it at once.
func (r *run) spans() (spans []span) {
	for i, a := range r.arrivals[1:] {
		before := r.arrivals[i]
		if before.Ended.IsZero() || before.Ended.After(a.Time) {
			spans = append(spans, span{a.Time, a.Time})
			continue
		}
		spans = append(spans, span{before.Ended, a.Time})
	}
	return spans
}

// gaps are how long the waits were.
func (r *run) gaps() (gaps []time.Duration) {
	for _, s := range r.spans() {
		gaps = append(gaps, s.to.Sub(s.from))
	}
	return gaps
}

// spansAt returns the waits of all runs before some retries, counted from zero; all of them if none are given.
func spansAt(runs []*run, retries ...int) (spans []span) {
	for _, r := range runs {
		for n, s := range r.spans() {
			if len(retries) == 0 || slices.Contains(retries, n) {
				spans = append(spans, s)
			}
		}
	}
	return spans
}

// gapsAt returns the n-th gap of every run that has so many, counted from zero.
func gapsAt(runs []*run, n int) (gaps []time.Duration) {
	for _, r := range runs {
		if all := r.gaps(); n < len(all) {
			gaps = append(gaps, all[n])
		}
	}
	return gaps
}

// mostAttempts returns the run with the most attempts, nil of none.
func mostAttempts(runs []*run) *run {
	if len(runs) == 0 {
		return nil
	}
	return slices.MaxFunc(runs, func(a, b *run) int { return a.attempts() - b.attempts() })
}

// retried returns the runs that sent more than once.
func retried(runs []*run) []*run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.attempts() < 2 })
}

// How much of what was seen is shown as evidence: enough to see a pattern, and lines that can be read.
const (
	shownRuns     = 4
	shownArrivals = 8
	shownSends    = 5 // requests with keys and hashes
	shownSeconds  = 40
)

// timeline is a run in a line: when each request came, counted from the first, and what became of it.
func (r *run) timeline() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s:", r.call.Method, r.scenario.name)
	for i, a := range r.arrivals {
		if i == shownArrivals {
			fmt.Fprintf(&b, ", and %d more", len(r.arrivals)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", since(r.arrivals[0].Time, a.Time))
	}
	over := "over"
	if r.cut {
		over = "not over"
	}
	fmt.Fprintf(&b, "; %s after %s", over, short(r.took))
	return b.String()
}

// timelines are those of the first runs.
func timelines(runs []*run) (lines []string) {
	for i, r := range runs {
		if i == shownRuns {
			return append(lines, fmt.Sprintf("and %d more runs", len(runs)-i))
		}
		lines = append(lines, r.timeline())
	}
	return lines
}

func since(from, to time.Time) string {
	if d := to.Sub(from); d > 0 {
		return "+" + short(d)
	}
	return "0s"
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}
