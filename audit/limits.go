package audit

import (
	"fmt"
	"strings"
)

// Where it stops.
var limitRules = []rule{
	{
		Rule: Rule{
			ID:     "bounded-attempts",
			Title:  "it gives up after some attempts",
			Why:    "an outage fills the process with calls that never end, and the service with requests that nobody waits for",
			Source: "gRPC proposal A6; Google SRE book, chapter 22",
			Fix:    "limit the attempts of one call, first try included",
		},
		scenarios: []string{"503"},
		judge:     givesUp,
	},
	{
		Rule: Rule{
			ID:     "timeout-hang",
			Title:  "it gives up on a server that does not answer",
			Why:    "one silent server takes every thread and connection of its callers",
			Source: "AWS Builders' Library, Timeouts, retries and backoff with jitter",
			Fix:    "bound each attempt, and the whole call with its waits",
		},
		scenarios: []string{"hang"},
		judge:     timesOut("no answer"),
	},
	{
		Rule: Rule{
			ID:     "timeout-drip",
			Title:  "it gives up on an answer that drips",
			Why:    "a timeout for the header alone, or for silence, never ends a body of one byte now and then",
			Source: "AWS Builders' Library, Timeouts, retries and backoff with jitter",
			Fix:    "bound the whole call, its body included",
		},
		scenarios: []string{"drip"},
		judge:     timesOut("three bytes a second"),
	},
	{
		Rule: Rule{
			ID:     "timeout-endless",
			Title:  "it gives up on an answer that never ends",
			Why:    "a body without end is data all the time, and fills whatever it is read into",
			Source: "AWS Builders' Library, Timeouts, retries and backoff with jitter",
			Fix:    "bound the whole call, its body included, or the body's size",
		},
		scenarios: []string{"endless"},
		judge:     timesOut("a body without end"),
	},
	{
		Rule: Rule{
			ID:     "final-status",
			Title:  "what no retry can cure is not repeated",
			Why:    "a wrong request is wrong every time: repeating it delays the error and loads the service",
			Source: "RFC 9110 §15.5, §15.6.2",
			Fix:    "do not try again after 400, 401, 403, 404, 409 (without a key), 422 and 501",
		},
		scenarios: finalStatuses,
		judge:     acceptsFinal,
	},
	{
		Rule: Rule{
			ID:     "tls-final",
			Title:  "a certificate that nobody trusts is not tried again",
			Why:    "the certificate will not be a better one in a second, and the caller learns of it late",
			Source: "RFC 8446 §6.2",
			Fix:    "end the call at a certificate that does not verify",
		},
		scenarios: []string{"tls"},
		judge:     endsAtCertificate,
	},
}

var finalStatuses = []string{"400", "401", "403", "404", "409", "422", "501"}

// More attempts than that are no limit worth the name, whatever ends them.
const unbounded = 20

func givesUp(_ *observed, runs []*run) outcome {
	r := mostAttempts(runs)
	if r.attempts() > unbounded {
		return outcome{Fail, fmt.Sprintf("%d attempts in %s", r.attempts(), short(r.took)), timelines([]*run{r})}
	}
	for _, r := range runs {
		if r.cut {
			return outcome{Inconclusive, fmt.Sprintf("%s in %s, and it had not given up: more patience may tell",
				plural(r.attempts(), "attempt"), short(r.took)), timelines([]*run{r})}
		}
	}
	return outcome{Pass, plural(r.attempts(), "attempt") + " at most", timelines([]*run{r})}
}

// timesOut fails a client that is still there when patience ends. It met what is said.
func timesOut(what string) func(*observed, []*run) outcome {
	return func(o *observed, runs []*run) outcome {
		r := runs[0]
		if !r.cut {
			return outcome{Pass, fmt.Sprintf("%s: it was over after %s, with %s", what, short(r.took), plural(r.attempts(), "attempt")), timelines([]*run{r})}
		}
		if r.attempts() > unbounded {
			return outcome{Fail, fmt.Sprintf("%s: it left and tried again, %d attempts in %s", what, r.attempts(), short(r.took)), timelines([]*run{r})}
		}
		// It left by itself at least once: attempts have a timeout.
		if r.attempts() > 1 {
			return outcome{Inconclusive, fmt.Sprintf("%s: it left and tried again, %s in %s, and had not given up: more patience may tell", what,
				plural(r.attempts(), "attempt"), short(r.took)), timelines([]*run{r})}
		}
		return outcome{Fail, fmt.Sprintf("%s: no timeout seen within %s", what, short(o.patience)), timelines([]*run{r})}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func acceptsFinal(_ *observed, runs []*run) outcome {
	repeated := retried(runs)
	if len(repeated) == 0 {
		return outcome{Pass, "each sent once: " + strings.Join(finalStatuses, " "), nil}
	}
	var which []string
	for _, r := range repeated {
		which = append(which, fmt.Sprintf("%s (%d times)", r.scenario.name, r.attempts()))
	}
	return outcome{Fail, "sent again after " + strings.Join(which, ", "), timelines(repeated)}
}

func endsAtCertificate(o *observed, _ []*run) outcome {
	r := o.runs["tls"][0]
	switch {
	case len(r.arrivals) > 0:
		return outcome{NotApplicable, "it accepted a certificate that nobody signed", nil}
	case len(r.dials) == 1:
		return outcome{Pass, "one connection, then an error", nil}
	default:
		var evidence []string
		for i, at := range r.dials {
			evidence = append(evidence, fmt.Sprintf("connection %d: %s", i+1, since(r.dials[0], at)))
		}
		return outcome{Fail, fmt.Sprintf("%d connections, each ended by the same certificate", len(r.dials)), evidence[:min(len(evidence), shownArrivals)]}
	}
}
