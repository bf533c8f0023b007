// Package suggest guesses which name was meant by one that was typed wrong.
package suggest

import "strings"

// Near is the name that was most likely meant: one that typed begins, else the one nearest to it by
// insertions, deletions and replacements of a letter. Empty if none is near.
func Near(typed string, names []string) string {
	best, distance := "", 3
	for _, name := range names {
		if len(typed) > 1 && strings.HasPrefix(name, typed) {
			return name
		}
		if d := edits(typed, name); d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two short words, kept in one row of the table.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
