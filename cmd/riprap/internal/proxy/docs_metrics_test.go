package proxy

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// section returns the part of docs/metrics.md below a heading or a line, up to the end of its first table.
func section(t *testing.T, below string) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), below)
	if !ok {
		t.Fatalf("docs/metrics.md has no %q", below)
	}
	table := strings.Index(rest, "|---")
	return rest[:table+strings.Index(rest[table:]+"\n\n", "\n\n")]
}

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// rows are the first cells of a table.
func rows(t *testing.T, below string) []string {
	var list []string
	for _, m := range firstCell.FindAllStringSubmatch(section(t, below), -1) {
		list = append(list, m[1])
	}
	return list
}

func TestDocsListEveryMetricThatIsExported(t *testing.T) {
	a := newAdmin(adminSources{version: "v1.2.3", snapshots: busySnapshots})
	a.configure(twoServices)
	a.ended(visitTo("payments", ""))
	families, err := a.metrics.Gather()
	if err != nil {
		t.Fatalf("Gather() = %v, want no error", err)
	}
	var got []string
	for _, f := range families {
		if name := f.GetName(); !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			var labels []string
			for _, l := range f.Metric[0].Label {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			kind := strings.ToLower(f.GetType().String())
			got = append(got, fmt.Sprintf("%s | %s | %v | %s", name, kind, labels, f.GetHelp()))
		}
	}
	var want []string
	for line := range strings.Lines(section(t, "## Metrics")) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 6 && strings.HasPrefix(cells[1], " `") {
			labels := strings.FieldsFunc(cells[3], func(r rune) bool { return r == ' ' || r == ',' })
			slices.Sort(labels)
			want = append(want, fmt.Sprintf("%s | %s | %v | %s", strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2]), labels, strings.TrimSpace(cells[4])))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, m := range got {
		if !slices.Contains(want, m) {
			t.Errorf("docs/metrics.md lacks\n\t%s", m)
		}
	}
	for _, m := range want {
		if !slices.Contains(got, m) {
			t.Errorf("docs/metrics.md has what is not exported:\n\t%s", m)
		}
	}
}

func TestDocsListEveryWord(t *testing.T) {
	for below, want := range map[string][]string{
		"A **reason**":         reasonWords.words,
		"of these **kinds**":   kindWords.words,
		"What is **notable**,": notableWords.words,
	} {
		if got := rows(t, below); !slices.Equal(got, want) {
			t.Errorf("docs/metrics.md has, below %q,\n\t%q, want\n\t%q", below, got, want)
		}
	}
	outcomes := section(t, "An **outcome**")
	for _, failure := range Failures {
		if !strings.Contains(outcomes, "`"+failure+"`") {
			t.Errorf("docs/metrics.md lacks the outcome %q", failure)
		}
	}
}

func TestDocsListEveryFieldOfTheState(t *testing.T) {
	want := fields(reflect.TypeFor[state](), "")
	for i, name := range want {
		if _, count, ok := strings.Cut(name, ".counts."); ok {
			want[i] = "….counts." + count
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	got := slices.Sorted(slices.Values(rows(t, "## State")))
	if !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md has the fields\n\t%q, want\n\t%q", got, want)
	}
}

// fields are the names of all fields in the JSON form of a type.
func fields(of reflect.Type, prefix string) []string {
	var list []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = prefix + name
		list = append(list, name)
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner, name = inner.Elem(), name+"[]"
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			list = append(list, fields(inner, name+".")...)
		}
	}
	return list
}
