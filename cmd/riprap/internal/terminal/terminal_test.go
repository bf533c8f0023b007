package terminal

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/term"
)

func TestWhatIsNoTerminalGetsNoColors(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := Screen{Width: 80}
	if on := Look(f); on != want {
		t.Errorf("Look at a file: got %+v, want %+v", on, want)
	}
	if on := Look(new(bytes.Buffer)); on != want {
		t.Errorf("Look at a buffer: got %+v, want %+v", on, want)
	}
}

func TestATerminalGetsColorsUnlessTheyAreNotWanted(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !term.IsTerminal(int(f.Fd())) {
		t.Skip("this system gives out no terminal to try")
	}
	defer f.Close()
	tests := map[string]struct {
		term, noColor string
		want          Screen
	}{
		"any terminal":        {"xterm", "", Screen{Terminal: true, Width: 80, Palette: true}},
		"NO_COLOR is set":     {"xterm", "1", Screen{Terminal: true, Width: 80}},
		"the dumb terminal":   {"dumb", "", Screen{Width: 80}},
		"one without a name":  {"", "", Screen{Terminal: true, Width: 80, Palette: true}},
		"dumb and not wanted": {"dumb", "1", Screen{Width: 80}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", tt.term)
			t.Setenv("NO_COLOR", tt.noColor)
			if got := Look(f); got != tt.want {
				t.Errorf("Look with TERM=%q NO_COLOR=%q: got %+v, want %+v", tt.term, tt.noColor, got, tt.want)
			}
		})
	}
}

func TestAScreenIsNeitherSqueezedNorStretchedWithoutEnd(t *testing.T) {
	for columns, want := range map[int]int{-1: 80, 0: 80, 1: 60, 60: 60, 61: 61, 100: 100, 120: 120, 121: 120, 500: 120} {
		if got := usable(columns); got != want {
			t.Errorf("usable(%d) = %d, want %d", columns, got, want)
		}
	}
}
