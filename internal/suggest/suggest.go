// Package suggest guesses what was meant by what was typed wrong.
package suggest

import "strings"

// Near is the name that was most likely meant: one that typed begins, else the one nearest to it. Empty if none is near, or so
// short that almost anything would be.
func Near(typed string, names []string) string {
	best, distance := "", 3
	for _, name := range names {
		if len(typed) > 1 && strings.HasPrefix(name, typed) {
			return name
		}
		if d := edits(typed, name, distance); d < min(distance, len(name)-1) {
			best, distance = name, d
		}
	}
	return best
}

// Slip reports whether typed is name but for one letter inserted, deleted, replaced or swapped with the next.
func Slip(typed, name string) bool { return edits(typed, name, 2) <= 1 }

// edits counts the letters to insert, delete, replace or swap with the next one that make one word another. From most on it does
// not matter how many, and words too different in length are not compared.
func edits(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var before []int // the row of the table before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
