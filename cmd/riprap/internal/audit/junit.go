package audit

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/riprap-go/riprap/audit"
)

// The XML that CI systems know from JUnit. It says what the exit code says: a failure of a rule that is not required is one that is
// skipped.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   suite    `xml:"testsuite"`
}

type suite struct {
	Name      string     `xml:"name,attr"`
	Tests     int        `xml:"tests,attr"`
	Failures  int        `xml:"failures,attr"`
	Errors    int        `xml:"errors,attr"`
	Skipped   int        `xml:"skipped,attr"`
	Time      string     `xml:"time,attr"`
	Timestamp string     `xml:"timestamp,attr"`
	Cases     []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string `xml:"name,attr"`
	Class   string `xml:"classname,attr"`
	Failure *note  `xml:"failure"`
	Skipped *note  `xml:"skipped"`
	Output  string `xml:"system-out,omitempty"`
}

type note struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func (r *report) xml() (string, error) {
	s := suite{
		Name:      "riprap audit of " + clean(r.name),
		Tests:     len(r.Findings),
		Time:      fmt.Sprintf("%.3f", r.Elapsed.Seconds()),
		Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"),
	}
	for _, f := range r.Findings {
		c := testcase{Name: f.ID, Class: "riprap audit"}
		switch {
		case f.Verdict == audit.Fail && r.requires(f.ID):
			s.Failures++
			c.Failure = &note{clean(f.Seen), "rule", explained(f)}
		case f.Verdict == audit.Fail:
			s.Skipped++
			c.Skipped = &note{Message: "fails, but is not required: " + clean(f.Seen)}
			c.Output = explained(f)
		case f.Verdict == audit.Pass:
			c.Output = clean(f.Seen)
		default:
			s.Skipped++
			c.Skipped = &note{Message: string(f.Verdict) + ": " + clean(f.Seen)}
		}
		s.Cases = append(s.Cases, c)
	}
	text, err := xml.MarshalIndent(suites{Suite: s}, "", "  ")
	return xml.Header + string(text) + "\n", err
}

// writable reports what would keep a report from being written into a file, before there is one: an audit is too long to find
// out at its end. A report that is there stays as it is.
func writable(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // a pipe waits for its reader
	}
	flags := os.O_WRONLY
	_, err = os.Lstat(name)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	err = f.Close()
	if fresh {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// explained is what stands behind a failure.
func explained(f audit.Finding) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%s: %s\n", label, clean(text)) }
	line("rule", f.Title)
	line("seen", f.Seen)
	for _, e := range f.Evidence {
		line("evidence", e)
	}
	line("why", f.Why)
	line("source", f.Source)
	line("fix", f.Fix)
	return b.String()
}
