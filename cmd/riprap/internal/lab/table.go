package lab

import "github.com/riprap-go/riprap/cmd/riprap/internal/terminal"

const (
	wide = 100 // columns of a screen from which on there is room for any number of figures
	many = 6   // figures; more do not fit into 80 columns
)

// columns are the study's figures that a screen has room for.
func (r *report) columns(on terminal.Screen) (shown []figure) {
	for _, f := range r.study.columns {
		if !f.roomy || on.Width >= wide || len(r.study.columns) <= many {
			shown = append(shown, f)
		}
	}
	return shown
}

// table has a row for each policy, what is not riprap apart. At the end of each are its answers over time.
func (r *report) table(on terminal.Screen) string {
	columns := r.columns(on)
	t := terminal.Table{Header: []string{"policy"}}
	for _, f := range columns {
		t.Header = append(t.Header, f.head)
	}
	t.Header = append(t.Header, "answers")
	t.Lefts = []int{len(t.Header) - 1}
	row := func(s *summary) {
		if s.seeds == 0 {
			t.Add(s.candidate.Name, "not simulated")
			return
		}
		cells := []string{s.candidate.Name}
		for _, f := range columns {
			cells = append(cells, f.tabled(s))
		}
		t.Add(append(cells, sparkline(s, on))...)
	}
	for _, g := range r.groups {
		if g.label != "" {
			t.Add(on.Palette.Strong(g.label))
		}
		apart := false
		for _, s := range g.rows {
			if s.candidate.Rival == nil {
				row(s)
			}
		}
		for _, s := range g.rows {
			if s.candidate.Rival != nil {
				if !apart {
					t.Add(on.Palette.Quiet("not riprap:"))
				}
				apart = true
				row(s)
			}
		}
	}
	return t.Text(on)
}

func (r *report) legend(on terminal.Screen) string {
	text := ""
	for _, f := range r.columns(on) {
		text += f.head + ": " + f.about + "; "
	}
	return text + "answers: calls answered over time, in the first seed."
}

// sparkline is the calls answered over time.
func sparkline(s *summary, on terminal.Screen) string {
	width := 8
	if on.Width >= wide {
		width = 24
	}
	values := make([]float64, len(s.series))
	top := 0.0
	for i, b := range s.series {
		values[i] = float64(b.Good)
		top = max(top, values[i])
	}
	if rate := s.scenario.Arrivals.Rate; rate > 0 {
		top = rate * s.step.Seconds() * 1.1 // what is below the usual has to be seen as such
	}
	return terminal.Spark(values, top, width)
}
