package lab

import (
	"strings"
	"testing"
)

func TestNothingIsSaidOfARecoveryThatNobodyCouldSee(t *testing.T) {
	const args = " outage --for 100s --trigger down:0s+10s --clients 10 --seeds 1 --policies riprap"
	for _, verb := range []string{"run", "compare"} {
		text, err := run(t, t.Context(), verb+args)
		if err != nil || strings.Contains(text, "never") || !strings.Contains(text, "is not known") {
			t.Errorf("%s%s: %v, and not that it is not known in\n%s", verb, args, err, text)
		}
	}
}
