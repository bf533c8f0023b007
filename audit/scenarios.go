package audit

import (
	"fmt"
	"slices"
)

// A scenario is what the client meets in one run: a call to make and a script that answers it. Scripts fail for longer than any
// client tries, so that the count of its attempts is its own.
type scenario struct {
	name   string
	method string
	script string // of package flaky; URL of the other origin for %s
	runs   int    // side by side
	keyed  bool   // with a key
	token  bool   // with credentials
	tls    bool   // at the address whose certificate nobody trusts
	many   bool   // many calls at once, in one run
}

const (
	get  = "GET"
	post = "POST"
)

// A date has whole seconds, and is asked for from the second in which the answer is given: date+4s is three seconds ahead, or up to
// four.

// What overflows differs: ten digits are too many nanoseconds for 64 bits, and too many milliseconds for JavaScript's timers;
// twenty are too many for any integer; five weeks are too many milliseconds for 32 bits.

// hintedRuns is how often a scenario runs in which a single wait drawn short would prove nothing.
const hintedRuns = 6

// scenarios are in the order in which they are started: those that take longest first, so that the whole takes little
// longer than they do.
var scenarios = []scenario{
	{name: "hang", method: get, script: "hang", runs: 1},
	{name: "drip", method: get, script: "slow=300ms/byte body=" + drops, runs: 1},
	{name: "endless", method: get, script: "endless", runs: 1},
	{name: "post-hang", method: post, script: "hang", runs: 1},
	{name: "late-503", method: get, script: "503*2 delay=6s, hang", runs: 1}, // little is left then

	{name: "wait-day", method: get, script: "429 retry-after=86400", runs: 2},
	{name: "wait-overflow", method: get, script: "503 retry-after=9999999999", runs: hintedRuns},
	{name: "wait-overflow-int", method: get, script: "503 retry-after=99999999999999999999", runs: 2},
	{name: "wait-overflow-ms", method: get, script: "503 retry-after=3000000", runs: 2},
	{name: "wait-date", method: get, script: "503 retry-after=date+4s", runs: hintedRuns},
	{name: "wait-seconds", method: get, script: "503 retry-after=3", runs: hintedRuns},
	{name: "wait-429", method: get, script: "429 retry-after=3", runs: hintedRuns},
	{name: "wait-both", method: get, script: "503 retry-after=2 retry-after=date+5s", runs: hintedRuns},
	{name: "wait-past", method: get, script: "503 retry-after=date-48h", runs: hintedRuns},
	{name: "wait-zero", method: get, script: "503 retry-after=0", runs: hintedRuns},
	{name: "wait-unreadable", method: get, script: "503 retry-after=soon", runs: hintedRuns},

	{name: "429", method: get, script: "429", runs: 1},
	{name: "reset", method: get, script: "reset", runs: 1},
	{name: "many", method: get, script: "503", runs: 1, many: true},

	{name: "400", method: get, script: "400", runs: 1},
	{name: "401", method: get, script: "401", runs: 1},
	{name: "403", method: get, script: "403", runs: 1},
	{name: "404", method: get, script: "404", runs: 1},
	{name: "409", method: get, script: "409", runs: 1},
	{name: "422", method: get, script: "422", runs: 1},
	{name: "501", method: get, script: "501", runs: 1},
	{name: "told-not-to", method: get, script: `503 header="X-Should-Retry: false"`, runs: 2},

	{name: "post-503", method: post, script: "503", runs: 2},
	{name: "post-reset", method: post, script: "reset", runs: 2},
	{name: "keyed-503", method: post, script: "503", runs: 3, keyed: true},
	{name: "keyed-reset", method: post, script: "reset", runs: 2, keyed: true},

	{name: "redirect", method: get, script: `302 header="Location: %s"`, runs: 1, token: true},
	{name: "keyed-redirect", method: post, script: `307 header="Location: %s"`, runs: 1, keyed: true},
	{name: "tls", method: get, script: "200", runs: 1, tls: true},

	// Last, when the others wait: whether waits are spread is told by how little disturbs them.
	{name: "503", method: get, script: "503", runs: spreadRuns},
}

// drops is a body that takes minutes to drip.
var drops = fmt.Sprintf("%01000d", 0)

// scenariosFor returns the scenarios that the rules ask for, in their order.
func scenariosFor(selected []*rule) (needed []*scenario) {
	for i, s := range scenarios {
		if slices.ContainsFunc(selected, func(r *rule) bool {
			return slices.Contains(r.scenarios, s.name) || slices.Contains(r.beside, s.name)
		}) {
			needed = append(needed, &scenarios[i])
		}
	}
	return needed
}
