package lab

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPictureThatCannotBeDrawnLosesNothing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "picture.svg")
	text, err := run(t, t.Context(), "compare outage --for 100s --seeds 1 --policies riprap --svg "+missing)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(text, "answers") {
		t.Errorf("a file that cannot be written: %v and %q, want that error below the report", err, text)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	file := filepath.Join(t.TempDir(), "picture.svg")
	for args, want := range map[string]string{"": "Stopped after 0 of 8", "--json": `"complete":false`} {
		text, err := run(t, stopped, "run outage "+args+" --svg "+file)
		if err == nil || !strings.Contains(err.Error(), "no picture") || !strings.Contains(text, want) {
			t.Errorf("stopped, %s: %v and %q, want no picture, and a report with %q", args, err, text, want)
		}
	}
}

func TestBarsOfAProbabilityHaveItsInterval(t *testing.T) {
	for figure, want := range map[string]int{"recovered": 2, "lost": 0} {
		q, err := parse("compare", strings.Fields("outage --for 100s --seeds 1 --policies at-once,riprap --svg x.svg --figure "+figure), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		intervals := 0
		for _, bar := range q.report(t.Context(), io.Discard).bars().Bars {
			if bar.Low < bar.High && bar.Low <= bar.Value && bar.Value <= bar.High {
				intervals++
			}
		}
		if intervals != want {
			t.Errorf("%s: %d bars with an interval, want %d", figure, intervals, want)
		}
	}
}
