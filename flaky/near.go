package flaky

// nearest returns the name that was most likely meant, empty if none is near.
func nearest(typed string, names []string) string {
	best, distance := "", 3
	for _, name := range names {
		if d := edits(typed, name); d < min(distance, len(name)-1) {
			best, distance = name, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two words, as far as it matters: of words that differ in length by more than
// two, it is three.
func edits(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
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
