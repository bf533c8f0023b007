package demo

import (
	"encoding/json"
	"strings"
	"testing"
)

// parse reads a document back and checks what holds for every one.
func parse(t *testing.T, text string) document {
	t.Helper()
	var d document
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("the document is no JSON of its own format: %v\n%s", err, text)
	}
	if decoder.More() || !strings.HasSuffix(text, "}\n") {
		t.Errorf("got more than one document, or no line end")
	}
	for _, side := range d.Sides {
		f, s := side.Figures, side.Series
		bins := int(f.Elapsed/s.Step + 0.5)
		for name, list := range map[string][]int{
			"calls_made": s.Made, "retries": s.Retries, "requests_arrived": s.Arrived, "requests_refused": s.Refused,
			"requests_answered_429": s.Throttled, "requests_answered_503": s.Overflowed, "requests_worked_on": s.Worked,
			"requests_worked_on_in_vain": s.Wasted, "calls_answered": s.Answered, "calls_failed": s.Failed, "most_requests_waiting": s.Waiting,
			"calls_unknown": s.Unknown, "calls_in_flight": s.InFlight, "answers_lost": s.Unheard,
		} {
			if len(list) != bins {
				t.Errorf("%s: got %d steps of %s, want %d", side.Name, len(list), name, bins)
			}
		}
		if f.Answered+f.Failed+f.Unknown+f.Open != f.Made {
			t.Errorf("%s: got %d answered, %d failed, %d unknown, %d open of %d calls, want a sum", side.Name, f.Answered, f.Failed, f.Unknown, f.Open, f.Made)
		}
		if a := f.Account; d.Complete && (a.Charged > a.Charges || a.Twice > a.Charged || a.ChargedFailed > f.Failed || a.ChargedUnsure > f.Unknown) {
			t.Errorf("%s: got an account of more than there is: %+v", side.Name, a)
		}
		if got := total(s.Arrived) + total(s.Refused); got != f.Sent {
			t.Errorf("%s: got %d requests sent, %d in the series", side.Name, f.Sent, got)
		}
		if f.AnsweredShare < 0 || f.AnsweredShare > 1 || f.Wasted > f.Worked {
			t.Errorf("%s: got answered share %v, %d of %d worked on in vain", side.Name, f.AnsweredShare, f.Wasted, f.Worked)
		}
	}
	return d
}

func total(values []int) int {
	sum := 0
	for _, v := range values {
		sum += v
	}
	return sum
}

func TestTheReportForProgramsHasTheFiguresOfTheOneForPeople(t *testing.T) {
	r := example()
	text, err := r.json()
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, text)
	if d.Verdict != r.verdict() || !d.Complete || d.Recovered == nil || !*d.Recovered {
		t.Errorf("got verdict %q, complete %v, recovered %v", d.Verdict, d.Complete, d.Recovered)
	}
	naive, riprap := d.Sides[0].Figures, d.Sides[1].Figures
	if naive.HealthyAfter != nil || *naive.Recovered {
		t.Errorf("naive: got healthy after %v, recovered %v, want null and false", naive.HealthyAfter, *naive.Recovered)
	}
	if riprap.HealthyAfter == nil || *riprap.HealthyAfter != 0 || !*riprap.Recovered || *riprap.EndShare != 1 {
		t.Errorf("riprap: got healthy after %v, recovered %v, at the end %v, want 0, true, 1", riprap.HealthyAfter, *riprap.Recovered, *riprap.EndShare)
	}
	if d.Twice == nil || *d.Twice != 0 || naive.Account.Twice != 500 || naive.Account.ChargedFailed != 900 {
		t.Errorf("got %v charged twice, naive %+v, want 0, 500 and 900 charged and failed", d.Twice, naive.Account)
	}
	if d.Scenario.CallsPerSecond != 100 || d.Scenario.Capacity != 111.1111 || len(d.Scenario.Faults) != 4 {
		t.Errorf("got the scenario %+v", d.Scenario)
	}
}

func TestAStoppedRunLeavesOpenWhatIsNotKnown(t *testing.T) {
	r := example()
	r.Sides = r.Sides[:1]
	r.Sides[0].Series = r.Sides[0].Series[:30]
	r.Sides[0].Figures = measure(r.Scenario, r.Sides[0].Series, r.Sides[0].Figures.Account)
	text, err := r.json()
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, text)
	f := d.Sides[0].Figures
	if d.Complete || d.Recovered != nil || d.Twice != nil || f.Recovered != nil || f.EndShare != nil || f.HealthyAfter != nil {
		t.Errorf("stopped after 3 s: got complete %v, recovered %v, figures %+v, want false and nulls", d.Complete, d.Recovered, f)
	}
}
