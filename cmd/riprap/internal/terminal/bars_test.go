package terminal

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestASpikeOfOneBinStandsInItsColumn(t *testing.T) {
	values := make([]int, 110)
	values[31], values[60] = 80, 1
	for _, width := range []int{51, 71, 111, 110, 200} {
		s := Strip{len(values), width}
		if s.Columns() > width {
			t.Errorf("%d columns: got a strip of %d", width, s.Columns())
		}
		lines := Bars(s, values, 80, 2)
		for row, line := range lines {
			if r := []rune(line)[s.Column(31)]; r != '█' {
				t.Errorf("%d columns, row %d: got %q for the highest value, want a full block", width, row, r)
			}
		}
		if top, bottom := []rune(lines[0])[s.Column(60)], []rune(lines[1])[s.Column(60)]; top != ' ' || bottom != '▁' {
			t.Errorf("%d columns: got %q over %q for a value of one, want the lowest block alone", width, top, bottom)
		}
		if r := []rune(lines[1])[0]; r != ' ' {
			t.Errorf("%d columns: got %q for zero, want a blank", width, r)
		}
	}
}

func TestBarsAreAsHighAsTheirValues(t *testing.T) {
	tests := map[string]struct {
		values []float64
		top    float64
		rows   int
		want   []string
	}{
		"every eighth of a row":       {[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8}, 8, 1, []string{" ▁▂▃▄▅▆▇█"}},
		"over two rows":               {[]float64{4, 8, 12, 16}, 16, 2, []string{"  ▄█", "▄███"}},
		"half an eighth is rounded":   {[]float64{2.4, 2.5}, 8, 1, []string{"▂▃"}},
		"little is not nothing":       {[]float64{1e-9, 0}, 8, 1, []string{"▁ "}},
		"above the top":               {[]float64{9, math.Inf(1)}, 8, 1, []string{"██"}},
		"below zero or not a number":  {[]float64{-1, math.NaN(), math.Inf(-1)}, 8, 1, []string{"   "}},
		"no top to compare with":      {[]float64{1, 2}, 0, 1, []string{"  "}},
		"a top that is not a number":  {[]float64{1, 2}, math.NaN(), 1, []string{"  "}},
		"a top that is never reached": {[]float64{1, 2}, math.Inf(1), 1, []string{"▁▁"}},
		"no bins":                     {nil, 8, 2, []string{"", ""}},
		"no rows":                     {[]float64{1}, 8, 0, nil},
	}
	for name, tt := range tests {
		got := Bars(Strip{len(tt.values), 80}, tt.values, tt.top, tt.rows)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: Bars of %v up to %v in %d rows = %q, want %q", name, tt.values, tt.top, tt.rows, got, tt.want)
		}
	}
}

func TestBinsWithoutAValueKeepTheirPlace(t *testing.T) {
	s := Strip{110, 71}
	line := Bars(s, []int{5, 5, 5, 5}, 5, 1)[0]
	if want := "██" + strings.Repeat(" ", s.Columns()-2); line != want {
		t.Errorf("Bars of four bins of 110: got %q, want %q", line, want)
	}
}

func TestAStripUsesItsRoom(t *testing.T) {
	tests := map[Strip]struct{ perColumn, columns int }{
		{100, 100}: {1, 100}, {100, 200}: {1, 100}, {101, 100}: {2, 51}, {1000, 100}: {10, 100}, {0, 10}: {1, 0}, {10, 0}: {10, 1}, {}: {1, 0},
	}
	for s, want := range tests {
		if s.PerColumn() != want.perColumn || s.Columns() != want.columns {
			t.Errorf("%+v: got %d columns of %d, want %d of %d", s, s.Columns(), s.PerColumn(), want.columns, want.perColumn)
		}
	}
}

func TestASparkIsARowOfBars(t *testing.T) {
	if got, want := Spark([]float64{0, 0, 8, 1, 4, 0}, 8, 3), " █▄"; got != want {
		t.Errorf("Spark of six values in 3 columns = %q, want %q", got, want)
	}
}

func FuzzBarsFillTheirStrip(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 3.0, 2, 2, 10)
	f.Add(math.NaN(), math.Inf(1), -1.0, math.MaxFloat64, 1, 0, 1)
	f.Add(math.MaxFloat64, 1e-300, 0.0, math.SmallestNonzeroFloat64, 5, -3, -1)
	f.Fuzz(func(t *testing.T, a, b, c, top float64, rows, width, bins int) {
		rows, width, bins = rows%50, width%200, bins%1000
		s := Strip{bins, width}
		lines := Bars(s, []float64{a, b, c}, top, rows)
		if len(lines) != max(0, rows) {
			t.Fatalf("Bars in %d rows: got %d lines", rows, len(lines))
		}
		for _, line := range lines {
			if n := Columns(line); n != s.Columns() || n > max(1, width) {
				t.Errorf("%+v of %v, %v, %v up to %v: got a line of %d columns, want %d", s, a, b, c, top, n, s.Columns())
			}
			if strings.Trim(line, " ▁▂▃▄▅▆▇█") != "" {
				t.Errorf("%+v of %v, %v, %v up to %v: got %q, want blocks", s, a, b, c, top, line)
			}
		}
		if rows > 0 && bins > 0 && a > 0 && top > 0 && strings.HasPrefix(lines[rows-1], " ") {
			t.Errorf("%+v of %v up to %v: got a blank, want a block", s, a, top)
		}
	})
}
