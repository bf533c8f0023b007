package lab

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

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
