package lab

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

var update = flag.Bool("update", false, "write the golden files anew")

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
