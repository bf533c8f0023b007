package terminal

import (
	"strings"
	"testing"
)

func policies() *Table {
	t := &Table{Header: []string{"policy", "answered", "load", "retries"}, Lefts: []int{3}}
	t.Add("three attempts, no jitter", "31 %", "2.9", "▁▂█")
	t.Add("riprap", "100 %", "1.08", "▁")
	return t
}

func TestATableIsAsWideAsItsContent(t *testing.T) {
	want := `
policy                     answered  load  retries
three attempts, no jitter      31 %   2.9  ▁▂█
riprap                        100 %  1.08  ▁
`
	if got := "\n" + policies().Text(Screen{Width: 50}); got != want {
		t.Errorf("in 50 columns, which it fills: got %s\nwant %s", got, want)
	}
}

func TestATableThatIsTooWideWrapsItsFirstColumn(t *testing.T) {
	want := `
policy           answered  load  retries
three attempts,      31 %   2.9  ▁▂█
  no jitter
riprap              100 %  1.08  ▁
`
	if got := "\n" + policies().Text(Screen{Width: 41}); got != want {
		t.Errorf("in 41 columns, two more than it then takes: got %s\nwant %s", got, want)
	}
}

func TestTheFurtherLinesOfACellFitWithTheirIndent(t *testing.T) {
	table := Table{Rows: [][]string{{"hangs at 10", "1"}}}
	if got, want := table.Text(Screen{Width: 9}), "hangs  1\n  at\n  10\n"; got != want {
		t.Errorf("in 9 columns: got %q, want %q", got, want)
	}
}

func TestATableIsNotNarrowerThanItsWords(t *testing.T) {
	want := `
policy       answered  load  retries
three            31 %   2.9  ▁▂█
  attempts,
  no jitter
riprap          100 %  1.08  ▁
`
	if got := "\n" + policies().Text(Screen{Width: 1}); got != want {
		t.Errorf("in one column: got %s\nwant %s", got, want)
	}
}

func TestColorsInCellsTakeNoColumns(t *testing.T) {
	const p Palette = true
	painted := &Table{Header: []string{"policy", "answered"}}
	painted.Add(p.Strong("three attempts"), p.Bad("31 %"))
	painted.Add("riprap", p.Good("100 %"))
	bare := &Table{Header: []string{"policy", "answered"}}
	bare.Add("three attempts", "31 %")
	bare.Add("riprap", "100 %")
	for _, width := range []int{80, 20} {
		got, want := painted.Text(Screen{Width: width, Palette: true}), bare.Text(Screen{Width: width})
		if plain(got) != want {
			t.Errorf("in %d columns, colors taken away: got\n%s\nwant\n%s", width, plain(got), want)
		}
		if head, _, _ := strings.Cut(got, "\n"); head != p.Quiet(plain(head)) {
			t.Errorf("in %d columns: got the header %q, want it quiet", width, head)
		}
	}
	if got, want := painted.Text(Screen{Width: 20, Palette: true}), p.Strong("three")+"           "+p.Bad("31 %")+"\n  "+p.Strong("attempts")+"\n"; !strings.Contains(got, want) {
		t.Errorf("in 20 columns: got %q, want each part of the first cell painted by itself: %q", got, want)
	}
}

func TestATableTakesRowsOfAnyLength(t *testing.T) {
	tests := map[string]struct {
		table Table
		want  string
	}{
		"nothing":              {Table{}, ""},
		"only a header":        {Table{Header: []string{"a", "b"}}, "a  b\n"},
		"no header":            {Table{Rows: [][]string{{"a", "1"}, {"bb", "22"}}}, "a    1\nbb  22\n"},
		"missing cells":        {Table{Rows: [][]string{{"a", "1", "2"}, {"b"}, {}}}, "a  1  2\nb\n\n"},
		"more than the header": {Table{Header: []string{"h"}, Rows: [][]string{{"a", "1"}}}, "h\na  1\n"},
		"an empty first cell":  {Table{Rows: [][]string{{"", "1"}, {"b", "2"}}}, "   1\nb  2\n"},
		"an empty last cell":   {Table{Rows: [][]string{{"a", "1"}, {"b", ""}}}, "a  1\nb\n"},
	}
	for name, tt := range tests {
		if got := tt.table.Text(Screen{Width: 80}); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func FuzzATableStaysOnTheScreenAndKeepsItsWords(f *testing.F) {
	f.Add("three attempts, no jitter", "31 %", 20)
	f.Add("a 1 2 3", "", 0)
	f.Add("", "x", -5)
	f.Fuzz(func(t *testing.T, first, second string, width int) {
		if strings.ContainsAny(first+second, "\x1b\n") || strings.Join(strings.Fields(second), " ") != second {
			t.Skip("no cells")
		}
		table := Table{Rows: [][]string{{first, second}}}
		got := table.Text(Screen{Width: width})
		most := max(width, widest(hang(table.Rows[0], 0))+len(between)+Columns(second))
		for line := range strings.Lines(got) {
			if n := Columns(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("%q, %q in %d columns: got a line of %d, want at most %d", first, second, width, n, most)
			}
		}
		count := func(s string) int { return len(strings.Join(strings.Fields(s), "")) }
		if count(got) != count(first+" "+second) {
			t.Errorf("%q, %q in %d columns: got %q, with other text", first, second, width, got)
		}
	})
}
