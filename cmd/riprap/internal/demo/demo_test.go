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

// The real thing: all services on loopback, two storms, in real time.
func TestWithRiprapTheServiceRecoversAndNobodyIsChargedTwice(t *testing.T) {
	var stdout, stderr bytes.Buffer
	var d document
	var err error
	tooBusy := false
	for range 3 { // a machine that is too busy for the scenario's traffic proves nothing, and says so
		stdout.Reset()
		stderr.Reset()
		err = Run(t.Context(), []string{"-json", "-callers", "100"}, &stdout, &stderr) // the race detector takes its time
		d = parse(t, stdout.String())
		if len(d.Sides) != 2 {
			t.Fatalf("riprap demo: got error %v, %d sides: %s", err, len(d.Sides), d.Verdict)
		}
		// This holds on any machine, however busy.
		f := d.Sides[1].Figures
		if a := f.Account; a.Twice != 0 || a.Most > 1 || a.ChargedFailed != 0 || a.UnchargedPaid != 0 || f.Unknown < f.Unheard {
			t.Errorf("riprap: got the account %+v with %d told unknown for %d answers lost, want nobody charged twice or told that it failed", a, f.Unknown, f.Unheard)
		}
		if tooBusy = err != nil && f.Late > busy.Seconds(); !tooBusy {
			break
		}
	}
	if tooBusy {
		t.Skipf("this machine is too busy: %s", d.Verdict)
	}
	if err != nil {
		t.Errorf("riprap demo: got error %v, want none", err)
	}
	if !d.Complete || d.Recovered == nil || !*d.Recovered || d.Twice == nil || *d.Twice != 0 {
		t.Fatalf("riprap demo: got complete %v, recovered %v, charged twice %v: %s", d.Complete, d.Recovered, d.Twice, d.Verdict)
	}
	arrivals := len(standard(100).arrivals(1))
	for _, side := range d.Sides {
		f := side.Figures
		if f.Late > busy.Seconds() {
			continue // neither its traffic nor its connects are the scenario's
		}
		if f.Made < arrivals-20 || f.Made > arrivals {
			t.Errorf("%s: got %d clicks, want the scenario's %d but for the last", side.Name, f.Made, arrivals)
		}
		if f.Refused == 0 || f.Throttled == 0 || f.Retries == 0 || f.Worked == 0 {
			t.Errorf("%s: got %d refused, %d answered 429, %d retries, %d worked on, want some of each", side.Name, f.Refused, f.Throttled, f.Retries, f.Worked)
		}
		// Each request has an attempt of its own in the layer above, but for what net/http sends anew by itself.
		if sent := float64(f.Made + f.Retries); float64(f.Sent) > 1.05*sent {
			t.Errorf("%s: got %d requests by the service's count, more than the %.0f that the layers sent", side.Name, f.Sent, sent)
		}
		if a := f.Account; a.Charges < f.Worked || a.Charges > f.Worked+f.Worked/20+5 || a.UnchargedPaid != 0 {
			t.Errorf("%s: got %d charges for %d requests worked on, %d paid without a charge", side.Name, a.Charges, f.Worked, a.UnchargedPaid)
		}
	}
	if f := d.Sides[0].Figures; f.Late <= busy.Seconds() && (f.Account.Twice == 0 || f.Account.ChargedFailed == 0) {
		t.Errorf("naive: got %d charged twice, %d charged and told that it failed, want some of each", f.Account.Twice, f.Account.ChargedFailed)
	}
	// The deposits of a layer's budget are a fifth of its calls at most, and its reserve is ten. There are four layers.
	if f := d.Sides[1].Figures; f.Retries > 4*(f.Made/5+10) {
		t.Errorf("riprap: got %d retries for %d clicks, more than the layers' budgets", f.Retries, f.Made)
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
	if want := "Stopped after 0.0 s of 28.0 s: no verdict. This is what is known so far.\n"; stdout.String() != want {
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
