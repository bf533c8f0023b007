package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// verdict is the answer in a few sentences, with its figures, whatever was measured.
func (r report) verdict() string {
	if !r.whole() {
		total := time.Duration(len(sides)) * r.Scenario.Length
		return fmt.Sprintf("Stopped after %s of %s: no verdict. This is what is known so far.", seconds(r.elapsed()), seconds(total))
	}
	naive, riprap := r.Sides[0].Figures, r.Sides[1].Figures
	money := fmt.Sprintf(" Charged twice: %s with riprap, %s with the naive loops. Charged but told \"failed\": %s and %s.",
		clicks(riprap.Account.Twice), clicks(naive.Account.Twice), nobodyOr(riprap.Account.ChargedFailed), nobodyOr(naive.Account.ChargedFailed))
	answers := fmt.Sprintf(" Paid in time: %s of the clicks and %s.", terminal.Percent(riprap.AnsweredShare), terminal.Percent(naive.AnsweredShare))
	if !riprap.Recovered && riprap.Late > busy && riprap.Account.Twice == 0 {
		return fmt.Sprintf("This machine was too busy for a verdict: it made or did calls up to %s late.", seconds(riprap.Late)) + money + answers
	}
	if late := r.late(); late > busy {
		answers += fmt.Sprintf(" But this machine was busy and made or did calls up to %s late: these are not the scenario's figures.", seconds(late))
	}
	first := r.recoveries(naive, riprap)
	if riprap.Account.Twice > 0 {
		first = fmt.Sprintf("With riprap %s charged twice in this run, which must not be. ", wereClicks(riprap.Account.Twice)) + first
	}
	return first + money + answers
}

// recoveries says on which sides the payments service recovered.
func (r report) recoveries(naive, riprap figures) string {
	switch {
	case !riprap.Recovered:
		return fmt.Sprintf("With riprap the payments service did not recover in this run: of the clicks made in the last seconds %s were paid, %s would be healthy.",
			terminal.Percent(riprap.EndShare), terminal.Percent(healthy))
	case naive.Recovered:
		return fmt.Sprintf("The payments service recovered on both sides of this run: with riprap %s, with the naive loops %s.",
			after(riprap.HealthyAfter), after(naive.HealthyAfter))
	case naive.Again:
		return fmt.Sprintf("With riprap the payments service was healthy again %s and stayed so; with the naive loops it was, %s, and was lost again.",
			after(riprap.HealthyAfter), after(naive.HealthyAfter))
	}
	return fmt.Sprintf("With riprap the payments service was healthy again %s; with the naive loops it was still failing when the run ended, %s later.",
		after(riprap.HealthyAfter), seconds(r.Scenario.Length-r.Scenario.Faults[0].until()))
}

func after(d time.Duration) string {
	if d < step {
		return "as soon as the outage was over"
	}
	return seconds(d) + " after the outage"
}

func nobodyOr(n int) string {
	if n == 0 {
		return "nobody"
	}
	return fmt.Sprint(n)
}

func clicks(n int) string {
	switch n {
	case 0:
		return "nobody"
	case 1:
		return "1 click"
	}
	return fmt.Sprintf("%d clicks", n)
}

func wereClicks(n int) string {
	if n == 1 {
		return "1 click was"
	}
	return fmt.Sprintf("%d clicks were", n)
}

// method says what was done, so that the figures can be judged.
func (r report) method() string {
	s := r.Scenario
	text := fmt.Sprintf("Both sides: %d shoppers who make %.0f clicks a second at the same times (seed %d) and wait %s; their app, the gateway and the orders service, "+
		"each with %d attempts of %s at most and a backoff from %s doubling; payments, which can charge %.0f a second, knows of no keys, and writes a row into a SQLite table for each charge. ",
		s.Callers, s.rate(), r.Seed, seconds(s.Patience), s.Attempts, seconds(s.AttemptTimeout), seconds(s.Backoff), s.capacity())
	for _, f := range s.Faults {
		text += f.explained() + " "
	}
	text += "The naive loops have no jitter, no budget and no keys, know nothing of each other, wait their own backoff after a 429, and say \"failed\" of what got no answer. " +
		"With riprap the app makes a key for each click, and riprap proxy, with its keys in SQLite, stands before payments; an answer that is lost makes the outcome unknown. " +
		"Who was charged is counted in the ledger when a side is over. No database waits for the disk here, as one with real money must."
	var open []string
	for _, o := range r.Sides {
		if o.Figures.Open > 0 {
			open = append(open, fmt.Sprintf("%s %d of %d", o.Name, o.Figures.Open, o.Figures.Made))
		}
	}
	if len(open) > 0 {
		text += fmt.Sprintf(" Clicks still waiting at the end of their side, counted neither as paid nor as failed: %s.", strings.Join(open, ", "))
	}
	return text + " The time series: riprap demo --json."
}

// explained says what happens in a fault.
func (f fault) explained() string {
	switch f.Kind {
	case outage:
		return fmt.Sprintf("The outage: payments hangs for %s, then its process and its connections are gone for %s.", seconds(f.Hangs), seconds(f.For-f.Hangs))
	case slow:
		return fmt.Sprintf("Slow: answers come %s later than their charge.", seconds(f.Later))
	case loss:
		return "Lost: connections break after the charge, instead of an answer."
	case throttle:
		return fmt.Sprintf("429: nothing is charged, and the answers ask for %s.", seconds(f.Asks))
	}
	return string(f.Kind)
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%.1f s", d.Seconds())
}
