package terminal

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTextStandsAtTheLeftOrTheRightOfItsColumns(t *testing.T) {
	const p Palette = true
	tests := map[string]struct{ text, pad, left string }{
		"shorter":             {"abc", "abc  ", "  abc"},
		"as wide":             {"abcde", "abcde", "abcde"},
		"wider":               {"abcdef", "abcdef", "abcdef"},
		"none":                {"", "     ", "     "},
		"runes of many bytes": {"▁█×", "▁█×  ", "  ▁█×"},
		"painted":             {p.Bad("abc"), p.Bad("abc") + "  ", "  " + p.Bad("abc")},
	}
	for name, tt := range tests {
		if got := Pad(tt.text, 5); got != tt.pad {
			t.Errorf("%s: Pad(%q, 5) = %q, want %q", name, tt.text, got, tt.pad)
		}
		if got := Left(tt.text, 5); got != tt.left {
			t.Errorf("%s: Left(%q, 5) = %q, want %q", name, tt.text, got, tt.left)
		}
	}
}

func TestWrapBreaksAtBlanks(t *testing.T) {
	const p Palette = true
	tests := map[string]struct {
		text  string
		width int
		want  []string
	}{
		"it fits":                         {"one two", 7, []string{"one two"}},
		"one too narrow":                  {"one two", 6, []string{"one", "two"}},
		"nothing":                         {"", 10, []string{""}},
		"only blanks":                     {" \n ", 10, []string{""}},
		"runs of blanks":                  {" one \n  two ", 10, []string{"one two"}},
		"a wide word":                     {"a wideword b", 4, []string{"a", "wideword", "b"}},
		"a number and its unit":           {"after 12 s it", 8, []string{"after", "12 s it"}},
		"runes of many bytes":             {"2× ▁▂▃ ▄▅▆", 10, []string{"2× ▁▂▃ ▄▅▆"}},
		"no width at all":                 {"one two", 0, []string{"one", "two"}},
		"a color takes no columns":        {p.Good("one two"), 7, []string{p.Good("one two")}},
		"each line has its color":         {p.Good("one two") + " three", 3, []string{p.Good("one"), p.Good("two"), "three"}},
		"a painted number and its unit":   {"after " + p.Bad("12") + " s", 8, []string{"after", p.Bad("12") + " s"}},
		"a color and nothing to paint it": {unpainted + " a", 8, []string{unpainted + " a"}},
	}
	for name, tt := range tests {
		if got := Wrap(tt.text, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("%s: Wrap(%q, %d) = %q, want %q", name, tt.text, tt.width, got, tt.want)
		}
	}
}

func FuzzWrapKeepsEveryWordAndItsWidth(f *testing.F) {
	f.Add("the service hangs for 0.6 s, then its process is gone", 20)
	f.Add("1 2 3 a", 2)
	f.Add("", -1)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if strings.Contains(text, "\x1b") {
			t.Skip("colors are carried from line to line")
		}
		lines := Wrap(text, width)
		if got, want := strings.Fields(strings.Join(lines, " ")), strings.Fields(text); !slices.Equal(got, want) {
			t.Errorf("Wrap(%q, %d): got the words %q, want %q", text, width, got, want)
		}
		for _, line := range lines {
			words := strings.Split(line, " ")
			for _, word := range words[:len(words)-1] {
				if Columns(line) > width && !endsInDigit(word) {
					t.Errorf("Wrap(%q, %d): got %q of %d columns, want it broken after %q", text, width, line, Columns(line), word)
				}
			}
		}
	})
}

func TestASharePastRoundingIsNotCalledWhole(t *testing.T) {
	for share, want := range map[float64]string{0: "0 %", 0.001: "under 1 %", 0.009: "under 1 %", 0.305: "31 %", 0.954: "95 %", 0.991: "over 99 %", 0.996: "over 99 %", 1: "100 %", 2.5: "250 %"} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
}

func FuzzPercentSaysNoneAndAllOnlyOfNoneAndAll(f *testing.F) {
	for _, share := range []float64{0, math.SmallestNonzeroFloat64, 0.00999, 0.01, 0.99, math.Nextafter(1, 0), 1} {
		f.Add(share)
	}
	f.Fuzz(func(t *testing.T, share float64) {
		if share < 0 || share > 1 || share != share {
			t.Skip("no share")
		}
		got := Percent(share)
		if (got == "0 %") != (share == 0) || (got == "100 %") != (share == 1) {
			t.Errorf("Percent(%v) = %q", share, got)
		}
	})
}
