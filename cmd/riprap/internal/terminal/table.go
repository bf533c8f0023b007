package terminal

import (
	"slices"
	"strings"
)

// A Table lays cells out in columns that are as wide as their content. A cell is one line, may be painted, and may be
// missing at the end of a row.
type Table struct {
	Header []string // names of the columns, which the table paints itself; empty: no header
	Rows   [][]string

	// Lefts are the columns whose text stands at the left, as it always does in the first one, which is 0. In all others
	// it stands at the right, as numbers do.
	Lefts []int
}

const (
	between = "  " // columns
	indent  = "  " // of a cell's further lines, so that they do not look like rows
)

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Text is the table as lines that end in a newline. If they would be wider than the screen, the texts of the first column
// are wrapped, as far as their words allow. Nothing is ever cut off.
func (t *Table) Text(on Screen) string {
	rows := t.Rows
	if len(t.Header) > 0 {
		rows = slices.Concat([][]string{t.Header}, rows)
	}
	first, widths := layout(rows, on.Width)
	var b strings.Builder
	for i, row := range rows {
		for j, line := range first[i] {
			if j == 0 {
				line = t.join(line, row, widths)
			}
			if i == 0 && len(t.Header) > 0 {
				line = on.Palette.Quiet(line)
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// join puts a row's cells beside the first line of its first cell.
func (t *Table) join(line string, row []string, widths []int) string {
	line = Pad(line, widths[0])
	for i := 1; i < len(row); i++ {
		if slices.Contains(t.Lefts, i) {
			line += between + Pad(row[i], widths[i])
		} else {
			line += between + Left(row[i], widths[i])
		}
	}
	return strings.TrimRight(line, " ")
}

// layout fits rows on a screen of so many columns. It returns the lines of each row's first cell, at least one, and the
// widths of all columns.
func layout(rows [][]string, screen int) (first [][]string, widths []int) {
	widths = []int{0}
	least := 0 // width of the first column
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
		least = max(least, widest(hang(row, 0)))
	}
	room := screen
	for _, w := range widths[1:] {
		room -= len(between) + w
	}
	room = max(room, least)
	widths[0] = 0
	for _, row := range rows {
		lines := hang(row, room)
		first = append(first, lines)
		widths[0] = max(widths[0], widest(lines))
	}
	return first, widths
}

// hang breaks a row's first cell into lines of a width, if it has to be. All but the first are indented.
func hang(row []string, width int) []string {
	if len(row) == 0 {
		return []string{""}
	}
	if Columns(row[0]) <= width {
		return row[:1]
	}
	lines := Wrap(row[0], width)
	if len(lines) == 1 {
		return lines
	}
	lines = append(lines[:1], Wrap(strings.Join(lines[1:], " "), width-len(indent))...)
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	return lines
}

func widest(lines []string) int {
	n := 0
	for _, line := range lines {
		n = max(n, Columns(line))
	}
	return n
}
