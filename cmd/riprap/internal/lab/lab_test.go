package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

var update = flag.Bool("update", false, "write the golden files anew")

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

func TestJSONHoldsTheFiguresAndTheSeries(t *testing.T) {
	text, err := run(t, t.Context(), "run outage --for 100s --seeds 3 --json --policies no-retries")
	if !errors.Is(err, exit.ErrNotFine) {
		t.Errorf("err %v, want ErrNotFine: the service has not recovered after 30 s", err)
	}
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if !d.Complete || d.Seeds != 3 || len(d.Rows) != 1 || d.Rows[0].Seeds != 3 {
		t.Fatalf("complete %v, %d seeds, %d rows, want a row of 3 seeds", d.Complete, d.Seeds, len(d.Rows))
	}
	row := d.Rows[0]
	if p := row.Figures["recovered"]; p == nil || *p != 0 {
		t.Errorf("recovered %v, want 0", p)
	}
	if p := row.Figures["recovery_seconds"]; p != nil {
		t.Errorf("recovery_seconds %v, want null: it never recovered", *p)
	}
	if p := row.Figures["attempts_per_call"]; p == nil || *p != 1 {
		t.Errorf("attempts_per_call %v, want 1", p)
	}
	var series struct {
		Step  float64 `json:"step_seconds"`
		Calls []int   `json:"calls_made"`
	}
	if err := json.Unmarshal(row.Series, &series); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range series.Calls {
		sum += n
	}
	if want := 280 * 100; series.Step != 1 || len(series.Calls) != 100 || math.Abs(float64(sum-want)) > 4*math.Sqrt(float64(want)) {
		t.Errorf("the series has %d steps of %v s and %d calls, want 100 of 1 s and about %d", len(series.Calls), series.Step, sum, want)
	}
}

func TestCSVOfARunIsItsSeries(t *testing.T) {
	text, _ := run(t, t.Context(), "run outage --for 100s --seeds 1 --csv")
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 101 {
		t.Fatalf("%v, %d lines, want a head and a line for each of 100 s", err, len(lines))
	}
	if lines[0][4] != "second" || lines[100][4] != "99" {
		t.Errorf("column %q ends with %q, want second and 99", lines[0][4], lines[100][4])
	}

	document, _ := run(t, t.Context(), "run outage --for 100s --seeds 1 --json")
	var d struct {
		Rows []struct{ Series map[string]any }
	}
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		t.Fatal(err)
	}
	for i, name := range lines[0][5:] {
		list, _ := d.Rows[0].Series[name].([]any)
		if len(list) != 100 || fmt.Sprint(list[70]) != lines[71][5+i] {
			t.Errorf("after 70 s the column %s has %s, which is not what --json has under this name", name, lines[71][5+i])
		}
	}
	if all := len(d.Rows[0].Series); all != len(lines[0][5:])+1 {
		t.Errorf("--json has %d lists and a step, --csv %d columns of a series", all-1, len(lines[0][5:]))
	}
}

func TestReportsLookAsTheyShould(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		on   terminal.Screen
	}{
		"compare-80":       {"compare " + small, terminal.Screen{Width: 80}},
		"compare-120":      {"compare " + small, terminal.Screen{Width: 120, Palette: true}},
		"compare-list":     {"compare flaky --for 5s --seeds 2 --fails 0.1,0.5 --policies at-once,riprap,breaker-10", terminal.Screen{Width: 80}},
		"run-80":           {"run outage --for 200s --seeds 2", terminal.Screen{Width: 80}},
		"run-no-trigger":   {"run flaky --for 5s --seeds 2 --policies riprap,call-bucket-10", terminal.Screen{Width: 80}},
		"run-narrow-color": {"run collapse --seeds 2 --policies at-once", terminal.Screen{Width: 60, Palette: true}},
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(c.args)
			q, err := parse(args[0], args[1:], io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			got := q.report(t.Context(), io.Discard).text(c.on)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("riprap lab %s is not as in %s (go test -update writes it). got\n%s\nwant\n%s", c.args, file, got, want)
			}
		})
	}
}

func TestSameSeedsGiveTheSameReportOnAnyNumberOfProcessors(t *testing.T) {
	const args = "compare --json " + small
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, err := run(t, t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GOMAXPROCS(7)
	if many, _ := run(t, t.Context(), args); many != one {
		t.Errorf("the report of seven processors is not that of one")
	}
	if other, _ := run(t, t.Context(), args+" --seed 2"); other == one {
		t.Errorf("the report of other seeds is the same")
	}
}

func TestStoppedEarlyItPrintsWhatThereIs(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	q, err := parse("compare", strings.Fields("outage --for 100s --seeds 1000 --policies at-once,riprap"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	trials := q.groups[0].trials
	var done atomic.Int64
	var r report
	r.request, r.stopped = q, true
	q.groups[0].rows = simulate(ctx, trials, 1, q.seeds, func() {
		if done.Add(1) == 6 { // a simulation or two more may be under way
			stop()
		}
	})
	if n := r.simulated(); n < 6 || n > 6+runtime.GOMAXPROCS(0) {
		t.Errorf("%d simulations after the stop, want 6 and what was under way", n)
	}
	for _, s := range r.all() {
		if s.seeds < 2 {
			t.Errorf("%s has %d seeds: the rows must progress together", s.candidate.Name, s.seeds)
		}
	}
	text := r.text(terminal.Screen{Width: 80})
	if !strings.HasPrefix(text, "Stopped after ") || !strings.Contains(text, "at-once ") {
		t.Errorf("the report of a stopped comparison is\n%s", text)
	}
	if document, err := r.json(); err != nil || !strings.Contains(document, `"complete":false`) {
		t.Errorf("its JSON, %v, does not say that it is not complete", err)
	}

	if text, err := run(t, ctx, "compare outage"); !errors.Is(err, exit.ErrNotFine) || !strings.Contains(text, "Nothing is known") {
		t.Errorf("stopped before it began: %v and %q", err, text)
	}
}

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

func TestVerdictAnswersWhatWasAsked(t *testing.T) {
	const mine = " --policy mine:attempts=4,base=100ms,budget=none"
	for args, want := range map[string][]string{
		"compare outage --for 200s --seeds 1 --policies riprap,at-once" + mine:           {"mine: the service never recovered, in 1 seed. riprap: "},
		"compare outage --for 200s --seeds 1 --policies at-once" + mine:                  {"In all 2 rows the service recovers in no seed."},
		"compare outage --for 300s --seeds 1 --policies at-once,no-retries":              {"The service recovers in 1 of 2 rows in every seed, in 1 in no seed."},
		"run outage --for 100s --seeds 1 --rate 500":                                     {"never recovered", "500 calls/s are more than the 300/s that the service can serve"},
		"run outage --for 200s --seeds 1 --rate 500 --capacity 800 --trigger down:9s+5s": {"healthy as soon as", "capacity 800/s, down from 9 s to 14 s"},
	} {
		text, _ := run(t, t.Context(), args)
		text = strings.Join(strings.Fields(text), " ") // lines are broken anywhere
		if document, _ := run(t, t.Context(), args+" --json"); strings.Contains(args, "--capacity") == strings.Contains(document, "a queue that serves 300/s") {
			t.Errorf("riprap lab %s --json: what is said about the scenario has to be there unless flags change it", args)
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("riprap lab %s does not say %q but %s", args, part, text)
			}
		}
		for _, never := range []string{"network that holds", "can serve, whatever"} {
			if strings.Contains(text, never) && strings.Contains(args, "--capacity") {
				t.Errorf("riprap lab %s says %q, which its flags have changed", args, never)
			}
		}
	}
}

func TestWithoutATriggerNoTableSpeaksOfRecovery(t *testing.T) {
	for i := range studies {
		if studies[i].Length == 0 {
			continue
		}
		args := " " + studies[i].Name + " --trigger none --for 20s --seeds 1 --policies " + studies[i].candidates[0].Name
		for _, verb := range []string{"compare", "run"} {
			text, err := run(t, t.Context(), verb+args)
			for _, no := range []string{"NaN", "never recovered", "trigger was"} {
				if strings.Contains(text, no) {
					t.Errorf("riprap lab %s: %v, %q in\n%s", verb+args, err, no, text)
				}
			}
		}
	}
}

func TestClientsOfASingleCallAreNotJudgedByRecovery(t *testing.T) {
	text, err := run(t, t.Context(), "run contention --seeds 2 --policies full --trigger down:1s+1s")
	if err != nil || !strings.HasPrefix(text, "full: 100.00 % of the calls answered") {
		t.Errorf("all calls are answered after the trigger: %v and %s", err, text)
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

func TestWithoutATriggerNothingIsSaidOfARecovery(t *testing.T) {
	for _, verb := range []string{"compare", "run"} {
		text, err := run(t, t.Context(), verb+" outage --trigger none --for 30s --seeds 2 --policies riprap")
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"never", "NaN", "0 % ("} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s without a trigger says %q:\n%s", verb, wrong, text)
			}
		}
	}
}

func TestWilsonInterval(t *testing.T) {
	// The figures of the formula, by hand.
	for _, c := range []struct {
		yes, n    int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {28, 100, 0.2014, 0.3749}} {
		low, high := wilson(c.yes, c.n)
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("wilson(%d, %d) = %.4f, %.4f, want %.4f, %.4f", c.yes, c.n, low, high, c.low, c.high)
		}
	}
}

func TestDescribeNamesWhatWasChanged(t *testing.T) {
	q, err := parse("run", strings.Fields("outage --rate 100 --processes 7 --timeout 2s --for 90s --trigger slow:20s+10s*4 --server lifo"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := q.groups[0].trials[0].scenario
	got := describe(s)
	for _, want := range []string{"100 calls/s", "7 processes", "2 s for an attempt, ", "slow ×4 from 20 s to 30 s", "90 s in all"} {
		if !strings.Contains(got, want) {
			t.Errorf("describe: %q does not have %q", got, want)
		}
	}
	if last := s.Services[0]; last.Admission != (sim.Admission{LIFO: true}) {
		t.Errorf("admission %+v, want LIFO", last.Admission)
	}
}

func TestATimeoutIsSaidOfNoPolicyThatHasItsOwn(t *testing.T) {
	const args = " threads --for 5s --seeds 1 --timeout 150s --policies 100s,10s,riprap-1s --policy mine:timeout=2s"
	for flags, want := range map[string]string{
		"compare" + args:                            "150 s for an attempt unless the policy says otherwise (10s, riprap-1s, mine), ",
		"compare --rate 10,20" + args:               "unless the policy says otherwise (10s, riprap-1s, mine), ",
		"compare --json" + args:                     `"setting":"1000 calls/s, 150 s for an attempt unless the policy says otherwise (riprap-1s), `,
		"run threads --for 5s --policies 100s":      ", 100 s for an attempt, ",
		"run threads --for 5s --policies 1s --json": "100 s for an attempt unless the policy says otherwise (1s), ",
	} {
		text, _ := run(t, t.Context(), flags)
		if text = strings.Join(strings.Fields(text), " "); !strings.Contains(text, want) {
			t.Errorf("riprap lab %s does not say %q but %s", flags, want, text)
		}
	}
}

func TestDurationsHaveOneSpelling(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1: "0.000001 ms", 500 * time.Microsecond: "0.5 ms", 10 * ms: "10 ms", 999 * ms: "999 ms", sec: "1 s", 1500 * ms: "1.5 s",
		70 * sec: "70 s", 100 * time.Hour: "360000 s",
	} {
		if got := duration(d); got != want {
			t.Errorf("duration(%v) = %q, want %q", d, got, want)
		}
	}
}
