//go:build unix

package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

// A fifo is open for writing as long as any of the processes lives that got it: its reader sees them end.
func fifo(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ended fails the test if there are writers left.
func ended(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err != nil {
		t.Errorf("a child of the process still runs: %v", err)
	}
}

func TestAProcessIsKilledWithItsChildren(t *testing.T) {
	name := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	p := programOf("exec 3>"+name+"; sleep 60 & sleep 60", "", "p", "{url}")
	go func() { over <- p.call(ctx, audit.Call{Method: "POST", Calls: 1}) }()
	f, err := os.Open(name) // waits for the shell
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	if err := <-over; err == nil {
		t.Error("call of a process that is killed: got no error")
	}
	ended(t, f)
}

func TestNothingIsLeftBehindByAProcessThatEnds(t *testing.T) {
	for name, line := range map[string]string{
		"its child keeps stderr":       "sleep 60 &",
		"its child has its own output": "sleep 60 >/dev/null 2>&1 &",
	} {
		t.Run(name, func(t *testing.T) {
			name := fifo(t)
			over := make(chan error, 1)
			p := programOf("exec 3>"+name+"; "+line, "", "p", "{url}")
			go func() { over <- p.call(t.Context(), audit.Call{Method: "POST", Calls: 1}) }()
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := <-over; err != nil {
				t.Errorf("call: got %v, want no error", err)
			}
			ended(t, f)
		})
	}
}

func TestAProcessGetsItsEnvironment(t *testing.T) {
	t.Setenv("RIPRAP_AUDIT_TEST", "passed on")
	out := t.TempDir() + "/out"
	line := `printf %s "$RIPRAP_AUDIT_TEST" >` + out
	if err := programOf(line, "", "p", "{url}").call(t.Context(), audit.Call{Method: "POST", Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); string(got) != "passed on" {
		t.Errorf("a variable of ours in the process: got %q (%v), want %q", got, err, "passed on")
	}
}

func TestAnAuditThatIsStoppedSaysSoAndLeavesNothingBehind(t *testing.T) {
	name := fifo(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := make(chan error, 1)
	var stdout, stderr bytes.Buffer
	go func() {
		over <- Run(ctx, []string{"--", "sh", "-c", "exec 3>" + name + "; sleep 60", "{url}"}, &stdout, &stderr)
	}()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel(errors.New("somebody wants to go home"))
	err = <-over
	if want := "riprap audit: stopped: somebody wants to go home"; err == nil || err.Error() != want || exit.Code(err) != exit.NotFine {
		t.Errorf("got error %v with exit code %d, want %s with %d", err, exit.Code(err), want, exit.NotFine)
	}
	ended(t, f)
}
