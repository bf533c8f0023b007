package audit

import (
	"fmt"
	"slices"

	"github.com/riprap-go/riprap/flaky"
)

// What must not be sent twice, and what stays the same when it is.
var safetyRules = []rule{
	{
		Rule: Rule{
			ID:     "post-503",
			Title:  "a POST without a key is not repeated after 503",
			Why:    "a 503 can come from a proxy after the service did the work: the order is placed twice",
			Source: "RFC 9110 §9.2.2",
			Fix:    "repeat only idempotent methods, and requests with an Idempotency-Key",
		},
		scenarios: []string{"post-503"},
		judge:     sentOnce,
	},
	{
		Rule: Rule{
			ID:     "post-reset",
			Title:  "a POST without a key is not repeated after a reset once it was read",
			Why:    "the service may have done the work before the connection broke: the order is placed twice",
			Source: "RFC 9110 §9.2.2",
			Fix:    "after a request went out whole, repeat only what is idempotent",
		},
		scenarios: []string{"post-reset"},
		judge:     sentOnce,
	},
	{
		Rule: Rule{
			ID:     "post-timeout",
			Title:  "a POST without a key is not repeated after a timeout",
			Why:    "the service may still be at work on the first one: the order is placed twice",
			Source: "RFC 9110 §9.2.2",
			Fix:    "report an unknown outcome; repeat only what is idempotent",
		},
		scenarios: []string{"post-hang"},
		judge:     sentOnce,
	},
	{
		Rule: Rule{
			ID:     "key-same",
			Title:  "the same key and the same bytes on every send of an operation",
			Why:    "a new key makes each attempt an operation of its own, and a service that honours keys charges twice",
			Source: "draft-ietf-httpapi-idempotency-key-header §2.2",
			Fix:    "make the key before the first attempt and keep it, and the body, for all of them",
		},
		scenarios: []string{"keyed-503", "keyed-reset"},
		judge:     keepsKey,
	},
	{
		Rule: Rule{
			ID:     "key-new",
			Title:  "a new key for each operation",
			Why:    "a key that is used again makes the service answer the second order with the first one's answer",
			Source: "draft-ietf-httpapi-idempotency-key-header §2.2",
			Fix:    "make a random key for each operation, not one per process or per content",
		},
		scenarios: []string{"post-503", "post-reset", "keyed-503", "keyed-reset"},
		judge:     renewsKey,
	},
	{
		Rule: Rule{
			ID:     "body-whole",
			Title:  "the whole body on every send",
			Why:    "a reader that is at its end sends an empty body the second time, and an empty order is placed",
			Source: "RFC 9110 §8.6",
			Fix:    "make a new reader for each attempt",
		},
		scenarios: []string{"post-503", "post-reset", "post-hang", "keyed-503", "keyed-reset", "keyed-redirect"},
		judge:     sendsWhole,
	},
	{
		Rule: Rule{
			ID:     "x-should-retry",
			Title:  "a server that says X-Should-Retry: false is believed",
			Why:    "the layers above a service that has given up multiply its load again",
			Source: "header of OpenAI's and Anthropic's APIs; Stripe-Should-Retry",
			Fix:    "end the call when the header says false",
		},
		scenarios: []string{"told-not-to"},
		beside:    []string{"503"},
		judge:     believes,
	},
}

// keysItself reports whether a client gives a POST without a key one of its own.
func keysItself(r *run) bool { return len(r.arrivals[0].Header["Idempotency-Key"]) > 0 }

func sentOnce(_ *observed, runs []*run) outcome {
	r := mostAttempts(runs)
	switch {
	case keysItself(r):
		return outcome{NotApplicable, "it gives every POST a key of its own", nil}
	case r.attempts() > 1:
		return outcome{Fail, fmt.Sprintf("sent %d times", r.attempts()), append(timelines(runs), sends(r.arrivals)...)}
	case r.cut:
		return outcome{Inconclusive, fmt.Sprintf("sent once, but it had not given up after %s", short(r.took)), timelines(runs)}
	default:
		return outcome{Pass, "sent once", timelines(runs)}
	}
}

// sends lists requests by what identifies them.
func sends(arrivals []flaky.Arrival) (lines []string) {
	for i, a := range arrivals[:min(len(arrivals), shownSends)] {
		key := "no key"
		if keys := a.Header["Idempotency-Key"]; len(keys) > 0 {
			key = "key " + keys[0]
		}
		whole := ""
		if !a.Whole {
			whole = ", cut short"
		}
		lines = append(lines, fmt.Sprintf("send %d: %s, body %d bytes%s, sha256 %.12s…", i+1, key, a.Body, whole, a.Hash))
	}
	return lines
}

func keepsKey(_ *observed, runs []*run) outcome {
	repeated := retried(runs)
	if len(repeated) == 0 {
		return outcome{NotApplicable, "it does not repeat a request with a key", timelines(runs)}
	}
	for _, r := range repeated {
		first := r.arrivals[0]
		for i, a := range r.arrivals {
			keys := a.Header["Idempotency-Key"]
			var fault string
			switch {
			case len(keys) == 0:
				fault = fmt.Sprintf("send %d carries no key", i+1)
			case len(keys) > 1:
				fault = fmt.Sprintf("send %d carries %d keys", i+1, len(keys))
			case !slices.Equal(keys, first.Header["Idempotency-Key"]):
				fault = fmt.Sprintf("send %d carries another key than the first", i+1)
			case a.Hash != first.Hash:
				fault = fmt.Sprintf("send %d has another body than the first", i+1)
			}
			if fault != "" {
				return outcome{Fail, fault, sends(r.arrivals)}
			}
		}
	}
	r := mostAttempts(repeated)
	return outcome{Pass, fmt.Sprintf("%d sends, one key, one body", r.attempts()), sends(r.arrivals)}
}

func renewsKey(_ *observed, runs []*run) outcome {
	var keys []string
	var evidence []string
	for _, r := range runs {
		if !keysItself(r) || r.sentKey {
			continue
		}
		key := r.arrivals[0].Header["Idempotency-Key"][0]
		keys = append(keys, key)
		evidence = append(evidence, fmt.Sprintf("%s: key %s", r.scenario.name, key))
	}
	distinct := len(slices.Compact(slices.Sorted(slices.Values(keys))))
	switch {
	case len(keys) == 0:
		return outcome{NotApplicable, "its keys are given to it, or it sends none", nil}
	case len(keys) == 1:
		return outcome{Inconclusive, "one operation only", evidence}
	case distinct < len(keys):
		return outcome{Fail, fmt.Sprintf("%d operations, %s", len(keys), plural(distinct, "key")), evidence}
	default:
		return outcome{Pass, fmt.Sprintf("%d operations, %s", len(keys), plural(distinct, "key")), evidence}
	}
}

func sendsWhole(_ *observed, runs []*run) outcome {
	var most []flaky.Arrival
	for _, r := range runs {
		sent := slices.Clone(r.arrivals)
		for _, a := range r.redirected {
			if a.Method == post { // a 307 is followed with the body
				sent = append(sent, a)
			}
		}
		for i, a := range sent {
			if len(sent) > 1 && (!a.Whole || a.Hash != sent[0].Hash) {
				return outcome{Fail, fmt.Sprintf("%s: send %d has %d bytes of %d", r.scenario.name, i+1, a.Body, sent[0].Body), sends(sent)}
			}
		}
		if len(sent) > len(most) {
			most = sent
		}
	}
	if len(most) < 2 {
		return outcome{NotApplicable, "it did not send a body twice", nil}
	}
	return outcome{Pass, fmt.Sprintf("%d sends of %d bytes, one hash", len(most), most[0].Body), sends(most)}
}

func believes(o *observed, runs []*run) outcome {
	switch {
	case len(retried(o.of("503"))) == 0 && len(retried(runs)) == 0:
		return neverRetried
	case len(retried(runs)) == 0:
		return outcome{Pass, "it stops", timelines(runs)}
	case slices.Contains(o.claims, "x-should-retry"):
		return outcome{Fail, fmt.Sprintf("sent %d times", mostAttempts(runs).attempts()), timelines(runs)}
	default:
		return outcome{NotApplicable, "it does not know the header, and does not claim to", nil}
	}
}
