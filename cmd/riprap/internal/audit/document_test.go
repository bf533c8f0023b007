package audit

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/golden"
)

func TestTheReportForPrograms(t *testing.T) {
	r := example()
	r.required = []string{"jitter", "key-new"}
	text, err := r.json()
	if err != nil {
		t.Fatal(err)
	}
	var indented strings.Builder
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		t.Fatalf("json: %v in %s", err, text)
	}
	e := json.NewEncoder(&indented)
	e.SetIndent("", "  ")
	if err := e.Encode(any); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "report.json", indented.String())
}

func TestTheReportForJUnit(t *testing.T) {
	r := example()
	r.required = []string{"jitter", "key-new"}
	text, err := r.xml()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "report.xml", text)
}

func TestJUnitFailuresAreThoseOfTheExitCode(t *testing.T) {
	for name, change := range map[string]func(*report){
		"all required": func(*report) {},
		"none":         func(r *report) { r.lax = true },
		"one":          func(r *report) { r.required = []string{"connections-reused"} },
		"one that passes": func(r *report) {
			r.required = []string{"retries-503"}
		},
	} {
		r := example()
		change(r)
		text, err := r.xml()
		if err != nil {
			t.Fatal(err)
		}
		var got suites
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
		failures, skipped := 0, 0
		for _, c := range got.Suite.Cases {
			if c.Failure != nil {
				failures++
			}
			if c.Skipped != nil {
				skipped++
			}
		}
		if want := len(r.offenders()); failures != want || got.Suite.Failures != want {
			t.Errorf("%s: got %d failures, and %d in the head, want %d", name, failures, got.Suite.Failures, want)
		}
		if skipped != got.Suite.Skipped || len(got.Suite.Cases) != got.Suite.Tests || got.Suite.Tests != len(r.Findings) {
			t.Errorf("%s: got %d cases, %d of them skipped, and a head that says %d and %d", name, len(got.Suite.Cases), skipped, got.Suite.Tests, got.Suite.Skipped)
		}
	}
}

func FuzzWhatAClientSaysIsValidXMLAndJSON(f *testing.F) {
	f.Add("\x1b[31mred\x00\x07", "\xff\xfe", "]]>")
	f.Add("<a b=\"c\">&amp;", "\u2028\ufffe\uffff", "\x7f\x85\u202e")
	f.Fuzz(func(t *testing.T, client, seen, evidence string) {
		for _, v := range []audit.Verdict{audit.Pass, audit.Fail, audit.Inconclusive, audit.NotApplicable} {
			r := example()
			r.name = client
			r.Findings[0].Verdict, r.Findings[0].Seen, r.Findings[0].Evidence = v, seen, []string{evidence}
			for _, lax := range []bool{false, true} {
				r.lax = lax
				text, err := r.xml()
				if err != nil {
					t.Fatalf("xml of %q, %q, %q: %v", client, seen, evidence, err)
				}
				d := xml.NewDecoder(strings.NewReader(text))
				for err == nil {
					_, err = d.Token()
				}
				if err != io.EOF || !utf8.ValidString(text) {
					t.Fatalf("xml of %q, %q, %q: %v in %q", client, seen, evidence, err, text)
				}
			}
			if text, err := r.json(); err != nil || !json.Valid([]byte(text)) {
				t.Fatalf("json of %q, %q, %q: %v, %q", client, seen, evidence, err, text)
			}
		}
	})
}
