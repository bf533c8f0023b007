package check

import (
	"encoding/json"
	"math"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// document is the report for programs.
type document struct {
	Format   int           `json:"format"` // of this document; grows when a field changes its meaning
	File     string        `json:"file"`
	Fine     bool          `json:"fine"` // no finding that decides the exit code
	Findings []findingJSON `json:"findings"`
	Hops     []hopJSON     `json:"hops"`
	Rules    []string      `json:"rules"` // all that were looked at
}

type findingJSON struct {
	Rule    string       `json:"rule"`
	Fails   bool         `json:"fails"` // it decides the exit code
	Service string       `json:"service"`
	To      string       `json:"to,omitempty"`
	Call    *int         `json:"call,omitempty"` // among those of the service, from 0
	Field   string       `json:"field,omitempty"`
	Line    int          `json:"line"`
	Column  int          `json:"column"`
	Text    string       `json:"text"`
	Why     string       `json:"why"`
	Fix     string       `json:"fix"`
	Figures []figureJSON `json:"figures"`
}

type figureJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type hopJSON struct {
	Depth   int      `json:"depth"`
	From    string   `json:"from,omitempty"`
	Call    *int     `json:"call,omitempty"`
	Service string   `json:"service"`
	Left    *float64 `json:"left_seconds"` // null: nothing bounds it
	Calls   int      `json:"calls"`
	Again   bool     `json:"again,omitempty"`
}

func (r *report) json() (string, error) {
	d := document{
		Format: 1, File: r.file.Name, Fine: r.failing() == 0,
		Findings: []findingJSON{}, Hops: []hopJSON{}, Rules: r.rules,
	}
	for _, f := range r.findings {
		at := r.place(f)
		one := findingJSON{
			Rule: f.Rule, Fails: r.fails(f.Rule), Service: f.Service, To: f.To, Call: index(f.Call), Field: f.Field,
			Line: at.Line, Column: at.Column, Text: f.Text, Why: f.Why, Fix: f.Fix, Figures: []figureJSON{},
		}
		for _, figure := range f.Figures {
			one.Figures = append(one.Figures, figureJSON(figure))
		}
		d.Findings = append(d.Findings, one)
	}
	for _, h := range r.hops {
		one := hopJSON{Depth: h.Depth, From: h.From, Call: index(h.Call), Service: h.Service, Calls: h.Calls, Again: h.Again}
		if h.Left != math.MaxInt64 {
			left := math.Round(h.Left.Seconds()*1e3) / 1e3
			one.Left = &left
		}
		d.Hops = append(d.Hops, one)
	}
	text, err := json.Marshal(d)
	return string(text) + "\n", err
}

// index is that of a call, nil if it is none.
func index(call int) *int {
	if call < 0 {
		return nil
	}
	return &call
}

// place is where what a finding speaks of is written.
func (r *report) place(f chain.Finding) manifest.Place { return r.file.FindingPlace(f) }
