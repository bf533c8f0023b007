package lab

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

func TestTablesFitIntoEightyColumns(t *testing.T) {
	for i := range studies {
		q, err := parse("compare", []string{studies[i].Name, "--seeds", "1"}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range q.groups {
			for _, tr := range g.trials {
				// As wide as figures get: nothing that was simulated is wider.
				s := &summary{scenario: tr.scenario, candidate: tr.candidate, seeds: 3, recovered: 3,
					after: sample{456, 456, 456}, overshoot: sample{39.47}, amplification: sample{33.82}, during: sample{64},
					wasted: sample{0.995}, lost: sample{0.995}, answered: sample{1}, admitted: sample{1},
					attempts: sample{2400, 2460}, completion: sample{60, 65}}
				s.series, s.step = make([]sim.Bin, 100), sec
				for i := range s.series {
					s.series[i].Good = 1
				}
				q.groups[0].rows = append(q.groups[0].rows, s)
			}
		}
		r := &report{request: q}
		for line := range strings.Lines(r.table(terminal.Screen{Width: 80})) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns:\n%s", studies[i].Name, n, line)
			}
		}
	}
}

func TestAShareIsNeverRoundedToAllOrNothing(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", 0.001: "<1 %", 0.014: "1 %", 0.984: "98 %", 0.999: ">99 %", 1: "100 %"} {
		if got := brief(share); got != want {
			t.Errorf("brief(%v) = %q, want %q", share, got, want)
		}
	}
}
