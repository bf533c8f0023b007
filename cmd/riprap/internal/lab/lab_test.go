package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

// run runs the subcommand and returns what it printed.
func run(t *testing.T, ctx context.Context, args string) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = Run(ctx, strings.Fields(args), &out, io.Discard)
	return out.String(), err
}

func TestEveryScenarioCanBeSimulated(t *testing.T) {
	for i := range studies {
		st := &studies[i]
		if err := st.Check(); err != nil {
			t.Errorf("%s: %v", st.Name, err)
		}
		if _, err := findFigure(st.figure); err != nil {
			t.Errorf("%s: %v", st.Name, err)
		}
		names := map[string]bool{}
		for _, c := range st.candidates {
			if names[c.Name] || c.Name == "" || c.About == "" {
				t.Errorf("%s: policy %q has no name of its own, or says nothing about itself", st.Name, c.Name)
			}
			names[c.Name] = true
		}
		if !names[ours.Name] && st.Name != "threads" {
			t.Errorf("%s: riprap itself does not take part", st.Name)
		}
	}
}

func TestListNamesEveryScenarioAndPolicy(t *testing.T) {
	out, err := run(t, t.Context(), "list")
	if err != nil {
		t.Fatal(err)
	}
	for i := range studies {
		if !strings.Contains(out, studies[i].Name+": ") {
			t.Errorf("lab list does not have the scenario %s", studies[i].Name)
		}
		for _, c := range studies[i].candidates {
			if !strings.Contains(out, "\n  "+c.Name+" ") {
				t.Errorf("lab list does not have the policy %s of %s", c.Name, studies[i].Name)
			}
		}
	}
}

const small = "outage --for 100s --seeds 2 --policies at-once,riprap,finagle"

func TestEveryTableSaysWhatIsNotRiprap(t *testing.T) {
	text, err := run(t, t.Context(), "compare "+small)
	if err != nil {
		t.Fatal(err)
	}
	_, rivals, ok := strings.Cut(text, "\nnot riprap:\n")
	if !ok || !strings.HasPrefix(rivals, "finagle ") {
		t.Errorf("compare: finagle does not stand below \"not riprap:\" in\n%s", text)
	}
	if text, _ = run(t, t.Context(), "run outage --for 100s --seeds 1 --policies finagle"); !strings.Contains(text, "(not riprap)") {
		t.Errorf("run does not say that finagle is not riprap:\n%s", text)
	}

	text, _ = run(t, t.Context(), "compare --csv "+small)
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 4 {
		t.Fatalf("compare --csv: %v, %d lines, want a head and three", err, len(lines))
	}
	for _, line := range lines[1:] {
		if got, want := line[3] == "not riprap", line[2] == "finagle"; got != want {
			t.Errorf("compare --csv: %q is said to be decided by %q", line[2], line[3])
		}
	}

	text, _ = run(t, t.Context(), "compare --json "+small)
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	for _, row := range d.Rows {
		if got, want := row.Riprap, row.Policy != "finagle"; got != want {
			t.Errorf("compare --json: %q has riprap %v", row.Policy, got)
		}
	}

	for _, args := range []string{"compare " + small, "compare --figure lost " + small, "compare --rate 100,200 " + small} {
		file := filepath.Join(t.TempDir(), "picture.svg")
		if _, err := run(t, t.Context(), args+" --svg "+file); err != nil {
			t.Fatal(err)
		}
		picture, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(picture, new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%s: the picture: %v", args, err)
		}
		if n := strings.Count(string(picture), "finagle (not riprap)"); n == 0 {
			t.Errorf("%s: the picture does not say that finagle is not riprap", args)
		}
	}
}

func TestRunIsNotFineUnlessTheServiceRecovers(t *testing.T) {
	if _, err := run(t, t.Context(), "run outage --for 300s --seeds 2"); err != nil {
		t.Errorf("riprap: %v, want nil", err)
	}
	if _, err := run(t, t.Context(), "run outage --for 300s --seeds 2 --policies at-once"); !errors.Is(err, exit.ErrNotFine) {
		t.Errorf("at-once: %v, want ErrNotFine", err)
	}
	if _, err := run(t, t.Context(), "compare outage --for 300s --seeds 2 --policies at-once"); err != nil {
		t.Errorf("a comparison: %v, want nil: it judges nobody", err)
	}
}

var errFull = errors.New("no space left on device")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestAnErrorOfWritingNamesTheCommand(t *testing.T) {
	for _, args := range []string{"-h", "help", "list", "run -h", "compare -h", "run outage --for 100s --seeds 1", "compare contention --seeds 1 --json"} {
		err := Run(t.Context(), strings.Fields(args), fullDisk{}, io.Discard)
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "riprap lab: ") {
			t.Errorf("riprap lab %s onto a full disk: %v, want riprap lab: %v", args, err, errFull)
		}
	}
}
