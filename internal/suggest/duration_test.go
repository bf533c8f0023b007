package suggest

import (
	"testing"
	"time"
)

func TestANumberWithoutAUnitIsAskedForIt(t *testing.T) {
	for text, want := range map[string]string{
		"5": "did you mean 5s?", "0.5": "did you mean 0.5s?", "soon": "want a duration such as 500ms, 10s or 1m30s",
		"": "want a duration such as 500ms, 10s or 1m30s", "5 s": "want a duration such as 500ms, 10s or 1m30s",
	} {
		d := Duration(time.Minute)
		if err := d.Set(text); err == nil || err.Error() != want || d != Duration(time.Minute) {
			t.Errorf("Set(%q): got %v and the value %s, want %s and no change", text, err, d.String(), want)
		}
	}
	var d Duration
	if err := d.Set("1m30s"); err != nil || d.String() != "1m30s" {
		t.Errorf("Set(1m30s): got %v and the value %s", err, d.String())
	}
}
