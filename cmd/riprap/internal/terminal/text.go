package terminal

import (
	"fmt"
	"math"
	"strings"
)

// Pad fills s with blanks up to n columns: its text stands at the left. Colors in s take no columns. What is wider is
// returned as it is.
func Pad(s string, n int) string { return s + blanks(n-Columns(s)) }

// Left puts blanks left of s up to n columns: its text stands at the right. Colors in s take no columns. What is wider
// is returned as it is.
func Left(s string, n int) string { return blanks(n-Columns(s)) + s }

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// Wrap breaks text into lines of at most width columns, at blanks, and keeps a number with its unit, which is the word
// after it. A word that is wider gets a line of its own and is not broken. Runs of blanks become one, there is always at
// least one line. Colors in the text take no columns, and each line has its own.
func Wrap(text string, width int) []string {
	var words []string
	for _, word := range strings.Fields(text) {
		if last := len(words) - 1; last >= 0 && endsInDigit(plain(words[last])) {
			words[last] += " " + word
			continue
		}
		words = append(words, word)
	}
	var lines []string
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case Columns(line)+1+Columns(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	lines = append(lines, line)
	carry(lines)
	return lines
}

func endsInDigit(s string) bool { return strings.TrimRight(s, "0123456789") != s }

// Percent is a share between 0 and 1 in percent. It rounds, but says 0 % and 100 % only if they are exact.
func Percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 1:
		return "under 1 %"
	case p > 99 && p < 100:
		return "over 99 %"
	default:
		return fmt.Sprintf("%.0f %%", math.Round(p))
	}
}
