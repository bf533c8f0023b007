package chain

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Finding is something in a [Chain] that cannot work as it is written.
type Finding struct {
	// Rule is the ID of the [Rule] that is broken.
	Rule string

	// Service and To say where: at the call of Service to To, or at Service itself if To is empty and Call is negative.
	Service, To string

	// Call is the index of the call among those of Service, -1 if the finding is about the service itself.
	Call int

	// Field is the figure to look at, as riprap.yaml names it below the call or the service: "policy.timeout", "limit",
	// "to". It is empty if the finding is about the service as a whole. What mends the finding may be elsewhere: Fix says so.
	Field string

	Text string // what is wrong, with the figures
	Why  string // why that is wrong: the Rule's
	Fix  string // the change that mends it: which value to what

	// Figures are those that broke the rule.
	Figures []Figure
}

// A Figure is a value that a rule looked at, as riprap.yaml writes it: "7s", "4", "none". One from another place than the
// finding's has that place before its name: "gateway → orders: policy.timeout".
type Figure struct{ Name, Value string }

const forever = time.Duration(math.MaxInt64)

// span writes a duration as a person does in a file: without the zero minutes and seconds of time.Duration.
func span(d time.Duration) string {
	if d == forever {
		return "none"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// written writes a limit of which zero is left out of the file and negative is none.
func written(d time.Duration) string {
	switch {
	case d == 0:
		return "not set"
	case d < 0:
		return "none"
	}
	return span(d)
}

func count(n int) string {
	if n == math.MaxInt {
		return "none"
	}
	return strconv.Itoa(n)
}

func times(n int, what string) string {
	switch n {
	case 1:
		return "1 " + what
	case math.MaxInt:
		return "any number of " + what + "s"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// shorten copies the way through services, without its middle if it is long.
func shorten(way []string) []string {
	if len(way) > 9 {
		return slices.Concat(way[:4], []string{"…"}, way[len(way)-4:])
	}
	return slices.Clone(way)
}

func path(way []string) string { return strings.Join(way, " → ") }
