package lab

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

func TestMistakesAreUsageErrorsThatSayWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"":                                        "say what to do: list, run or compare",
		"foo":                                     `unknown verb "foo"`,
		"list all":                                `unexpected argument "all"`,
		"run":                                     "want the name of one scenario: contention, outage",
		"run outage layers":                       "want the name of one scenario",
		"run outge":                               `unknown scenario "outge": there are contention, outage`,
		"run outage --seeds 0":                    "-seeds 0: want 1 to",
		"run outage --seeds x":                    "invalid value",
		"run outage --nonsense":                   "-nonsense",
		"run outage --json --csv":                 "-json and -csv exclude each other",
		"run outage --policies foo":               `has no policy "foo": there are no-retries, at-once-2`,
		"run outage --policies riprap,":           `has no policy ""`,
		"run outage --policy base=1s":             "want NAME:key=value",
		"run outage --policy x:base=1":            "base=1: want a time such as 500ms",
		"run outage --policy x:bse=1s":            "bse=1s: unknown key: there are like, attempts, base",
		"run outage --policy x:attempts=0":        "attempts=0: want a number from 1",
		"run outage --policy x:factor=NaN":        "factor=NaN: want a number from 1",
		"run outage --policy x:jitter=some":       `jitter "some" is not full, equal`,
		"run outage --policy x:budget=a":          "budget=a: want none or RATIO/RESERVE/WINDOW",
		"run outage --policy x:like=foo":          `has no policy "foo"`,
		"run outage --policy x:base=1s,like=drop": "like=drop: want it before the other keys",
		"run outage --policy x:server=foo":        `"foo" is none of fifo, lifo`,
		"run outage --trigger slow":               "want KIND:FROM+FOR",
		"run outage --trigger slow:5s":            "want KIND:FROM+FOR",
		"run outage --trigger slow:5s+3s":         "slow needs a factor, such as slow:5s+3s*4",
		"run outage --trigger lost:5s+3s*2":       "a share of the answers, 1 at most",
		"run outage --trigger slow:5s+3s*0.5":     "with the factor 0.5 the service is faster",
		"run outage --trigger down:5s+3s*2":       "down has no factor: want down:5s+3s",
		"run outage --trigger cut:5s+3s*2":        "cut has no factor: want cut:5s+3s",
		"run outage --rate -5":                    `"-5" is not a number from 0`,
		"run outage --capacity 0":                 "-capacity 0: want 0.001 to",
		"run outage --trigger down:500s+95s":      "over at 9m55s of 10m0s: want 10s more",
		"run outage --for 75s":                    "over at 1m10s of 1m15s: want 10s more",
		"run flaky --capacity 5":                  "has no queue: outage, layers and threads have",
		"compare outage --svg x.svg":              "6 policies at most, and these are 23",
		"run outage --trigger gone:5s+3s":         `"gone" is none of down, cut`,
		"run outage --server foo":                 `-server "foo": "foo" is none of fifo`,
		"run outage --server room=x":              "room=x: want a number of places",
		"run outage --server drop=x":              "drop=x: want a time such as 20ms",
		"run outage --rate x":                     `-rate x: "x" is not a number`,
		"run outage --rate 1,2 --processes 3,4":   "are both lists",
		"run outage --processes 1.5":              "-processes 1.5: want a whole number",
		"run outage --layers 0":                   "-layers 0: want a whole number from 1",
		"run outage --layers 21":                  "want 20 at most",
		"run outage --fails 0.5":                  "no such chance, only flaky has",
		"run flaky --fails 1.5":                   "-fails 1.5: want 0 to 1",
		"run outage --timeout -1s":                "-timeout -1s: want no negative time",
		"run outage --for 0s":                     "has no end",
		"run contention --rate 5":                 "has no end",
		"run outage --figure lost":                "-figure: it is of a picture, and there is none without -svg",
		"run outage --policy x:budget=NaN":        "budget=NaN: want none or RATIO/RESERVE/WINDOW",
		"compare outage --figure foo":             `-figure: unknown figure "foo": there are recovered`,
	} {
		err := Run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if _, ok := errors.AsType[*exit.UsageError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("riprap lab %s: %v, want a usage error with %q", args, err, want)
		}
	}
}

// A setting that changes nothing would pass for one that makes no difference.
func TestWhatTheScenarioHasNothingOfIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"collapse --server lifo":              "no queue, so that it can only be cancels",
		"collapse --server room=5+cancels":    "can only be cancels",
		"collapse --server cancels":           "",
		"collapse --policy p:server=drop":     "can only be cancels",
		"flaky --server drop=20ms":            "the scenario flaky has no queue",
		"contention --server cancels":         "the scenario contention has no queue and no work",
		"contention --server fifo":            "",
		"contention --policy p:server=room=3": "the scenario contention has no queue",
		"layers --server lifo":                "",
		"flaky --trigger slow:1s+1s*4":        "never slow",
		"contention --trigger slow:0s+1s*4":   "never slow",
		"ramp --trigger slow:1s+1s*4":         "",
		"flaky --trigger down:1s+1s":          "",
		"outage --pause 1s":                   "want -clients too",
		"outage --pause 1s --clients 9":       "",
		"contention --pause 1s --for 9s":      "",
	} {
		_, err := parse("compare", strings.Fields(args), io.Discard)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("riprap lab compare %s: error %v, want one with %q, none if empty", args, err, want)
		}
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	for args, want := range map[string]string{
		"-h":         "usage: riprap lab list",
		"help":       "usage: riprap lab list",
		"run -h":     "usage: riprap lab run SCENARIO",
		"compare -h": "-processes",
	} {
		out, err := run(t, t.Context(), args)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("riprap lab %s: %v, %q, want %q in it", args, err, out, want)
		}
	}
}

func TestScenarioMayStandAnywhere(t *testing.T) {
	for _, args := range []string{"outage --seeds 3 --rate 5", "--seeds 3 outage --rate 5", "--seeds 3 --rate 5 outage"} {
		q, err := parse("run", strings.Fields(args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := q.groups[0].trials[0].scenario; got.Name != "outage" || got.Arrivals.Rate != 5 || q.seeds != 3 {
			t.Errorf("%s: scenario %s at %v/s with %d seeds, want outage at 5/s with 3", args, got.Name, got.Arrivals.Rate, q.seeds)
		}
	}
}

func TestFlagsChangeACopyOfTheScenario(t *testing.T) {
	before := studies[1].Scenario
	services, triggers := before.Services[0], before.Triggers[0]
	if _, err := parse("compare", strings.Fields("outage --layers 2 --server lifo --trigger down:5s+1s --timeout 9s"), io.Discard); err != nil {
		t.Fatal(err)
	}
	after := studies[1].Scenario
	if !reflect.DeepEqual(before, after) || after.Services[0] != services || after.Triggers[0] != triggers {
		t.Errorf("the scenario itself has changed to %+v", after)
	}
}

func TestListMakesAGroupForEachValue(t *testing.T) {
	q, err := parse("compare", strings.Fields("outage --rate 100,200 --processes 7 --policies riprap,lifo"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(q.groups) != 2 || q.list != "rate" {
		t.Fatalf("%d groups by %q, want 2 by rate", len(q.groups), q.list)
	}
	for i, rate := range []float64{100, 200} {
		g := q.groups[i]
		if s := g.trials[1].scenario; g.value != rate || s.Arrivals.Rate != rate || s.Processes != 7 || len(g.trials) != 2 {
			t.Errorf("group %d: value %v, %v calls/s, %d processes, %d policies; want %v, 7 and 2", i, g.value, s.Arrivals.Rate, s.Processes, len(g.trials), rate)
		}
	}
}

func TestClientsMakeArrivalsClosed(t *testing.T) {
	q, err := parse("run", strings.Fields("outage --clients 50 --pause 100ms"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := sim.Arrivals{Clients: 50, Pause: sim.Spread{Kind: sim.Exponential, Mean: 100 * ms}}
	if got := q.groups[0].trials[0].scenario.Arrivals; got != want {
		t.Errorf("arrivals %+v, want %+v", got, want)
	}
}

func TestTheCommandThatDoesItAgainIsQuotedForAShell(t *testing.T) {
	for arg, want := range map[string]string{
		"jitter-1s,riprap":  "jitter-1s,riprap",
		"x:base=1s,like=a":  "x:base=1s,like=a",
		"drop=20ms+lifo":    "drop=20ms+lifo",
		"slow:60s+10s*4":    "'slow:60s+10s*4'",
		"a b":               "'a b'",
		"":                  "''",
		"it's":              `'it'\''s'`,
		"#x":                "'#x'",
		"~":                 "'~'",
		"[a]{b}!c\\d`e`\nf": "'[a]{b}!c\\d`e`\nf'",
	} {
		if got := quoted([]string{arg}); got != want {
			t.Errorf("quoted %q = %s, want %s", arg, got, want)
		}
	}
}

func TestPolicyOfYourOwn(t *testing.T) {
	q := &request{study: studies[1]}
	for text, want := range map[string]sim.Candidate{
		"x:": {Name: "x", Budget: &sim.Budget{}},
		"x:attempts=2,base=1s,max=5s,factor=3,jitter=equal,timeout=2s,total=9s": {Name: "x", Budget: &sim.Budget{},
			Policy: riprap.Policy{MaxAttempts: 2, Timeout: 9 * sec, AttemptTimeout: 2 * sec,
				Backoff: riprap.Backoff{Base: sec, Max: 5 * sec, Factor: 3, Jitter: riprap.Equal}}},
		"x:budget=none":          {Name: "x"},
		"x:budget=0.1":           {Name: "x", Budget: &sim.Budget{Ratio: 0.1}},
		"x:budget=0.1/5/20s":     {Name: "x", Budget: &sim.Budget{Ratio: 0.1, Reserve: 5, Window: 20 * sec}},
		"x:budget=0/0":           {Name: "x", Budget: &sim.Budget{Ratio: -1, Reserve: -1}},
		"x:server=lifo+room=0":   {Name: "x", Budget: &sim.Budget{}, Admission: &sim.Admission{LIFO: true, Room: -1}},
		"x:server=drop=20ms":     {Name: "x", Budget: &sim.Budget{}, Admission: &sim.Admission{Drop: true, Margin: 20 * ms}},
		"x:like=at-once-2":       {Name: "x", Policy: riprap.Policy{MaxAttempts: 2, Backoff: atOnce}},
		"x:like=lifo,attempts=9": {Name: "x", Policy: riprap.Policy{MaxAttempts: 9, Backoff: atOnce}, Admission: &sim.Admission{LIFO: true}},
	} {
		got, err := q.parsePolicy(text)
		got.About = ""
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsePolicy(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestTriggersAreRead(t *testing.T) {
	for text, want := range map[string]sim.Trigger{
		"none":            {},
		"cut:60s+10s":     {Kind: sim.Cut, From: 60 * sec, For: 10 * sec, Factor: 1},
		"slow:0s+1m*2.5":  {Kind: sim.Slow, For: time.Minute, Factor: 2.5},
		"lost:1s+1s":      {Kind: sim.Lost, From: sec, For: sec, Factor: 1},
		"spike:1s+1s*0.5": {Kind: sim.Spike, From: sec, For: sec, Factor: 0.5},
	} {
		if got, err := parseTrigger(text); err != nil || got != want {
			t.Errorf("parseTrigger(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// Whatever is typed, it is either an error or a scenario that can be simulated.
func FuzzFlags(f *testing.F) {
	for _, seed := range []string{"", "outage", "outage --rate 1,2", "flaky --fails 0.5", "outage --policy x:budget=0.1/5/20s,like=lifo",
		"outage --trigger slow:60s+10s*4 --server drop=20ms+lifo+room=5", "contention --clients 10,20 --pause 5ms", "layers --layers 4 --for 10s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, verb := range []string{"run", "compare"} {
			q, err := parse(verb, strings.Fields(args), io.Discard)
			if err != nil {
				continue
			}
			if len(q.groups) == 0 || len(q.groups[0].trials) == 0 {
				t.Fatalf("riprap lab %s %s: no error, and nothing to simulate", verb, args)
			}
			for _, g := range q.groups {
				for _, trial := range g.trials {
					if err := trial.scenario.Check(); err != nil {
						t.Fatalf("riprap lab %s %s: no error, but %v", verb, args, err)
					}
				}
			}
		}
	})
}
