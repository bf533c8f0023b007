package terminal

import "testing"

func TestWideCharactersTakeTwoColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "決済": 4, "한국": 4, "ｶﾅ": 2, "！": 2, "😀": 2, "→ ↑ │": 5, "שלום": 4,
		Palette(true).Bad("決"): 2,
	} {
		if got := Columns(text); got != want {
			t.Errorf("Columns(%q) = %d, want %d", text, got, want)
		}
	}
}
