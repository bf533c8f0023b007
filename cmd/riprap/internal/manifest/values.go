package manifest

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// What stands for no limit at all, and for a budget that grants everything.
const (
	none      = "none"
	unlimited = "unlimited"
)

// scalar returns the text of a single value. It fails with what is wanted instead.
func (r *reader) scalar(n *yaml.Node, path []string, want string) (text string, ok bool) {
	value := follow(n)
	if value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
		r.failf(n, "%s: want %s, got %s", path[len(path)-1], want, kind(value))
		return "", false
	}
	return value.Value, true
}

// plain is a scalar without quotes: with them, a number is text.
func (r *reader) plain(n *yaml.Node, path []string, want string) (text string, ok bool) {
	text, ok = r.scalar(n, path, want)
	if ok && follow(n).Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		r.failf(follow(n), "%s: want %s, got text in quotes", path[len(path)-1], want)
		return "", false
	}
	return text, ok
}

func (r *reader) text(to *string) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		text, ok := r.scalar(n, path, "a name")
		if ok && !isName(text) {
			r.failf(follow(n), "%s: %s", path[len(path)-1], noName)
			return
		}
		*to = text
	}
}

func (r *reader) yes(to *bool) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		text, ok := r.plain(n, path, "true or false")
		switch {
		case !ok:
		case text == "true" || text == "false":
			*to = text == "true"
		default:
			r.failf(follow(n), "%s: want true or false, got %q", path[len(path)-1], short(text))
		}
	}
}

const noName = "want a name that can be printed, without blanks around it"

func isName(s string) bool {
	return s != "" && s == strings.TrimSpace(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// limit reads a duration, or none, which is below zero.
func (r *reader) limit(to *time.Duration) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		if follow(n).Value == none {
			*to = -1
			return
		}
		r.time(to, n, path, ", or none")
	}
}

// duration reads one that must be there.
func (r *reader) duration(to *time.Duration) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) { r.time(to, n, path, "") }
}

func (r *reader) time(to *time.Duration, n *yaml.Node, path []string, or string) {
	const want = "a duration such as 500ms, 10s or 1m30s"
	text, ok := r.scalar(n, path, want+or)
	if !ok {
		return
	}
	d, err := time.ParseDuration(text)
	name := path[len(path)-1]
	fail := func(what string) { r.failf(follow(n), "%s: %s", name, what) }
	_, number := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && d > 0:
		*to = d
	case err == nil && d == 0 && or != "":
		fail("zero is nothing that could be meant: leave it out for the default, or write none for no limit")
	case err == nil && d == 0:
		fail("zero is nothing that could be meant: leave it out for the default")
	case (err == nil || number == nil) && strings.HasPrefix(text, "-"):
		fail("want " + want + or + ", got less than nothing")
	case number == nil && units.MatchString(text+"s"):
		fail("a number without a unit, did you mean " + text + "s?")
	case units.MatchString(text):
		fail("more than 292 years, which is too much")
	case meant(text) != "":
		fail("no duration, did you mean " + meant(text) + "?")
	default:
		fail("want " + want + or + ", got " + strconv.Quote(short(text)))
	}
}

// units is what time.ParseDuration reads if it is not too much.
var units = regexp.MustCompile(`^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// meant is a duration that was written as people do, or as other programs want it.
func meant(text string) string {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	if days, ok := strings.CutSuffix(strings.TrimSuffix(text, "ays"), "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 1e5 {
			return strconv.Itoa(n*24) + "h"
		}
	}
	for _, unit := range [][2]string{{"seconds", "s"}, {"second", "s"}, {"secs", "s"}, {"sec", "s"}, {"minutes", "m"}, {"minute", "m"},
		{"mins", "m"}, {"min", "m"}, {"hours", "h"}, {"hour", "h"}, {"millis", "ms"}, {"msec", "ms"}} {
		if short, ok := strings.CutSuffix(text, unit[0]); ok {
			text = short + unit[1]
			break
		}
	}
	if d, err := time.ParseDuration(text); err != nil || d <= 0 {
		return ""
	}
	return text
}

// count reads a whole number from least on, or none, which is below zero.
func (r *reader) count(to *int, least int) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		if follow(n).Value == none {
			*to = -1
			return
		}
		want := "a whole number from " + strconv.Itoa(least) + " on, or none"
		text, ok := r.plain(n, path, want)
		if !ok {
			return
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < least || v > math.MaxInt32 { // the same file is read on every machine
			r.failf(follow(n), "%s: want %s, got %q", path[len(path)-1], want, short(text))
			return
		}
		*to = v
	}
}

// A word stands for a number that cannot be written as one.
type word struct {
	text  string
	value float64
}

// number reads a decimal number above zero and not below least, or one of the words.
func (r *reader) number(to *float64, least float64, words ...word) func(*yaml.Node, []string) {
	want := []string{"a number above 0"}
	if least > 0 {
		want[0] = "a number from " + strconv.FormatFloat(least, 'g', -1, 64) + " on"
	}
	for _, w := range words {
		want = append(want, w.text)
	}
	return func(n *yaml.Node, path []string) {
		for _, w := range words {
			if follow(n).Value == w.text {
				*to = w.value
				return
			}
		}
		text, ok := r.plain(n, path, list(want))
		if !ok {
			return
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !decimal.MatchString(text) || v <= 0 || v < least || v > largest {
			r.failf(follow(n), "%s: want %s, got %q", path[len(path)-1], list(want), short(text))
			return
		}
		*to = v
	}
}

// largest is far above each factor and ratio that means something.
const largest = 1e6

var decimal = regexp.MustCompile(`^[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$`)
