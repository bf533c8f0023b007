package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

// The real thing: two services on loopback, two storms, in real time.
func TestTheServiceRecoversWithRiprap(t *testing.T) {
	var stdout, stderr bytes.Buffer
	var d document
	var err error
	for range 4 { // a machine that is too busy for the scenario's traffic proves nothing, and says so
		stdout.Reset()
		stderr.Reset()
		err = Run(t.Context(), []string{"-json"}, &stdout, &stderr)
		d = parse(t, stdout.String())
		if err == nil || len(d.Sides) != 2 || d.Sides[1].Figures.Late <= busy.Seconds() {
			break
		}
	}
	if err != nil {
		t.Errorf("riprap demo: got error %v, want none", err)
	}
	if !d.Complete || d.Recovered == nil || !*d.Recovered || len(d.Sides) != 2 {
		t.Fatalf("riprap demo: got complete %v, recovered %v, %d sides: %s", d.Complete, d.Recovered, len(d.Sides), d.Verdict)
	}
	arrivals := len(standard(300).arrivals(1))
	for _, side := range d.Sides {
		f := side.Figures
		if f.Late > busy.Seconds() {
			continue // neither its traffic nor its connects are the scenario's
		}
		if f.Made < arrivals-100 || f.Made > arrivals {
			t.Errorf("%s: got %d calls, want the scenario's %d but for the last", side.Name, f.Made, arrivals)
		}
		if f.Refused == 0 || f.Throttled == 0 || f.Retries == 0 || f.Worked == 0 {
			t.Errorf("%s: got %d refused, %d answered 429, %d retries, %d worked on, want some of each", side.Name, f.Refused, f.Throttled, f.Retries, f.Worked)
		}
		// What the callers count and what the service counts is the same, but for what net/http sends anew by itself
		// after the crash, and for connects that took longer than an attempt may.
		if sent := float64(f.Made + f.Retries); float64(f.Sent) < 0.8*sent || float64(f.Sent) > 1.2*sent {
			t.Errorf("%s: got %d requests by the service's count, %.0f by the callers'", side.Name, f.Sent, sent)
		}
	}
	// The budget's deposits are a fifth of the calls at most, and its reserve is ten.
	if f := d.Sides[1].Figures; f.Retries > f.Made/5+10 {
		t.Errorf("riprap: got %d retries for %d calls, more than its budget", f.Retries, f.Made)
	}
	if got := stderr.String(); !strings.Contains(got, "\nnaive ") || !strings.Contains(got, "\nriprap ") {
		t.Errorf("progress: got no line about each side:\n%s", got)
	}
}

func TestADemoThatIsStoppedSaysWhatItKnows(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout bytes.Buffer
	err := Run(ctx, nil, &stdout, stopAt{"naive   ", stop})
	if !errors.Is(err, exit.ErrNotFine) || exit.Code(err) != exit.NotFine {
		t.Errorf("stopped after a second: got error %v, want ErrNotFine", err)
	}
	got := stdout.String()
	if !strings.HasPrefix(got, "Stopped after ") || !strings.Contains(got, "not known") || strings.Contains(got, "riprap  ") {
		t.Errorf("stopped after a second: got\n%s", got)
	}
}

func TestADemoThatIsStoppedBeforeItBeginsEndsAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var stdout bytes.Buffer
	if err := Run(ctx, nil, &stdout, io.Discard); !errors.Is(err, exit.ErrNotFine) {
		t.Errorf("stopped before it began: got error %v, want ErrNotFine", err)
	}
	if want := "Stopped after 0.0 s of 22.0 s: no verdict. This is what is known so far.\n"; stdout.String() != want {
		t.Errorf("stopped before it began: got %q, want %q", &stdout, want)
	}
}

// stopAt calls stop once what it stands for has been written.
type stopAt struct {
	text string
	stop func()
}

func (s stopAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.stop()
	}
	return len(p), nil
}
