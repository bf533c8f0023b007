package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A result is what an audit found, with all that it depends on.
type result struct {
	Peer          string          `json:"peer"`
	Configuration string          `json:"configuration"`
	Versions      string          `json:"versions"`
	Riprap        string          `json:"riprap"` // the SHA-256 of the command
	Command       string          `json:"command"`
	Post          string          `json:"post,omitempty"`
	Keyed         string          `json:"keyed,omitempty"`
	Flags         string          `json:"flags,omitempty"`
	Report        json.RawMessage `json:"report"` // as riprap audit printed it

	report *report // Report, parsed; nil if there is none yet
	taken  bool    // from an earlier run
}

// A report is what riprap audit --json prints, as far as the page needs it.
type report struct {
	Started time.Time `json:"started"`
	Rules   []finding `json:"rules"`
}

// A finding is what an audit says of one rule.
type finding struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Why      string   `json:"why"`
	Source   string   `json:"source"`
	Fix      string   `json:"fix"`
	Verdict  string   `json:"verdict"`
	Seen     string   `json:"seen"`
	Evidence []string `json:"evidence"`
}

// The verdicts.
const (
	pass          = "pass"
	fail          = "fail"
	inconclusive  = "inconclusive"
	notApplicable = "not applicable"
)

// parse reads what riprap audit printed.
func parse(data []byte) (*report, error) {
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("what riprap audit printed: %w", err)
	}
	if r.Started.IsZero() || len(r.Rules) == 0 {
		return nil, errors.New("riprap audit printed a report without a date or without rules")
	}
	for _, f := range r.Rules {
		switch f.Verdict {
		case pass, fail, inconclusive, notApplicable:
		default:
			return nil, fmt.Errorf("riprap audit says %q of %s", f.Verdict, f.ID)
		}
	}
	return &r, nil
}

// read returns a result that was kept.
func read(file string) (result, error) {
	var r result
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	r.report, err = parse(r.Report)
	r.taken = true
	return r, err
}

// keep writes the result to its file, whole or not at all.
func (r *result) keep() error {
	if err := os.MkdirAll(resultsDir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(resultsDir, "*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), filepath.Clean(r.file()))
}

// fits tells whether a kept result is what an audit of want would be about.
func (r result) fits(want result) bool {
	return r.Versions == want.Versions && r.Riprap == want.Riprap && r.Command == want.Command &&
		r.Post == want.Post && r.Keyed == want.Keyed && r.Flags == want.Flags
}

func hash(file string) (string, error) {
	data, err := os.ReadFile(file)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// tally counts the verdicts of a report.
func tally(r *report) string {
	count := map[string]int{}
	for _, f := range r.Rules {
		count[f.Verdict]++
	}
	return fmt.Sprintf("%d pass, %d fail, %d inconclusive, %d not applicable",
		count[pass], count[fail], count[inconclusive], count[notApplicable])
}
