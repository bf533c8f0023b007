package audit

import (
	"encoding/json"
	"math"
	"time"

	"github.com/riprap-go/riprap/audit"
)

// document is the report for programs. Times are in seconds. The command holds no values, only the program's name and
// placeholders.
type document struct {
	Format  int        `json:"format"` // of this document; grows when a field changes its meaning
	Client  string     `json:"client"`
	Command string     `json:"command"`
	Started time.Time  `json:"started"`
	Seconds float64    `json:"seconds"`
	Slowest float64    `json:"slowest_seconds"`
	Rules   []ruleJSON `json:"rules"`
}

type ruleJSON struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Verdict  audit.Verdict `json:"verdict"`
	Seen     string        `json:"seen"`
	Evidence []string      `json:"evidence"`
	Why      string        `json:"why"`
	Source   string        `json:"source"`
	Fix      string        `json:"fix"`
	Required bool          `json:"required"`
}

func (r *report) json() (string, error) {
	d := document{
		Format:  1,
		Client:  r.name,
		Command: r.program.String(),
		Started: r.Started.UTC(),
		Seconds: round(r.Elapsed),
		Slowest: round(r.Slowest),
		Rules:   []ruleJSON{},
	}
	for _, f := range r.Findings {
		evidence := []string{}
		for _, e := range f.Evidence {
			evidence = append(evidence, clean(e))
		}
		d.Rules = append(d.Rules, ruleJSON{f.ID, f.Title, f.Verdict, clean(f.Seen), evidence, f.Why, f.Source, f.Fix, r.requires(f.ID)})
	}
	text, err := json.Marshal(d)
	return string(text) + "\n", err
}

// round keeps milliseconds.
func round(d time.Duration) float64 { return math.Round(d.Seconds()*1e3) / 1e3 }
