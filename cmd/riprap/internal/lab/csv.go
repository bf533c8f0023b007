package lab

import (
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
)

// csv has a line for each row of a comparison, and for each step of time of a run.
func (r *report) csv() (string, error) {
	var lines [][]string
	for _, g := range r.groups {
		for _, s := range g.rows {
			if s.seeds == 0 {
				continue
			}
			by := "riprap"
			if s.candidate.Rival != nil {
				by = "not riprap"
			}
			row := []string{r.study.Name, g.label, s.candidate.Name, by}
			if r.verb != "run" {
				lines = append(lines, slices.Concat(row, s.figureCells()))
				continue
			}
			for step := range s.series {
				lines = append(lines, slices.Concat(row, s.stepCells(step)))
			}
		}
	}
	if len(lines) == 0 {
		return "", nil
	}
	head := []string{"scenario", "list", "policy", "decided_by"}
	if r.verb == "run" {
		head = append(head, "second")
		for _, c := range counts {
			head = append(head, c.name)
		}
	} else {
		head = append(head, "seeds")
		for _, f := range figures {
			head = append(head, f.name)
		}
	}
	var b strings.Builder
	err := csv.NewWriter(&b).WriteAll(slices.Insert(lines, 0, head))
	return b.String(), err
}

func (s *summary) figureCells() []string {
	cells := []string{strconv.Itoa(s.seeds)}
	for _, f := range figures {
		cells = append(cells, number(f.value(s)))
	}
	return cells
}

// number is empty for what is not known.
func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(round(x), 'f', -1, 64)
}
