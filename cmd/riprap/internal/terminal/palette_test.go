package terminal

import "testing"

func TestAPalettePaintsOrLeavesTextAlone(t *testing.T) {
	paints := map[string]struct {
		paint func(Palette, string) string
		want  string
	}{
		"Retries": {Palette.Retries, "\x1b[38;5;172mtext\x1b[0m"},
		"Good":    {Palette.Good, "\x1b[38;5;37mtext\x1b[0m"},
		"Bad":     {Palette.Bad, "\x1b[38;5;203mtext\x1b[0m"},
		"Quiet":   {Palette.Quiet, "\x1b[2mtext\x1b[0m"},
		"Strong":  {Palette.Strong, "\x1b[1mtext\x1b[0m"},
	}
	for name, tt := range paints {
		if got := tt.paint(true, "text"); got != tt.want {
			t.Errorf("with colors, %s of text: got %q, want %q", name, got, tt.want)
		}
		if got := tt.paint(false, "text"); got != "text" {
			t.Errorf("without colors, %s of text: got %q, want it alone", name, got)
		}
		for _, blank := range []string{"", "   "} {
			if got := tt.paint(true, blank); got != blank {
				t.Errorf("with colors, %s of %q: got %q, want it alone", name, blank, got)
			}
		}
	}
}
