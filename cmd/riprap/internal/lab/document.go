package lab

import (
	"encoding/json"
	"math"
)

// document is the report for programs. Times are in seconds, shares between 0 and 1. What is not known is null.
type document struct {
	Format    int       `json:"format"` // of this document; grows when a field changes its meaning
	Verdict   string    `json:"verdict"`
	Complete  bool      `json:"complete"` // false if it was stopped early
	Again     string    `json:"again"`    // the command that gives the same figures
	Scenario  string    `json:"scenario"`
	About     string    `json:"about,omitempty"` // unless flags have changed what it says
	FirstSeed uint64    `json:"first_seed"`
	Seeds     int       `json:"seeds"`
	Rows      []rowJSON `json:"rows"`
}

type rowJSON struct {
	Policy   string              `json:"policy"`
	Riprap   bool                `json:"riprap"` // false: something else than riprap decides too
	About    string              `json:"about"`
	List     string              `json:"list,omitempty"` // which value of the list
	Setting  string              `json:"setting"`        // the scenario's figures, in words
	Seeds    int                 `json:"seeds"`          // that were simulated
	Figures  map[string]*float64 `json:"figures"`
	MeanWait []float64           `json:"mean_waits_seconds"`
	Series   json.RawMessage     `json:"series"` // of the first seed
}

func (r *report) json() (string, error) {
	d := document{
		Format:    1,
		Verdict:   r.verdict(),
		Complete:  r.simulated() == r.wanted(),
		Again:     r.repeated,
		Scenario:  r.study.Name,
		FirstSeed: r.seed,
		Seeds:     r.seeds,
		Rows:      []rowJSON{},
	}
	if !r.changed {
		d.About = r.study.About
	}
	for _, g := range r.groups {
		for _, s := range g.rows {
			row := rowJSON{
				Policy:   s.candidate.Name,
				Riprap:   s.candidate.Rival == nil,
				About:    s.candidate.About,
				List:     g.label,
				Setting:  describe(s.scenario, s),
				Seeds:    s.seeds,
				Figures:  map[string]*float64{},
				MeanWait: []float64{},
			}
			for _, f := range figures {
				row.Figures[f.name] = nil
				if x := f.value(s); !math.IsNaN(x) {
					row.Figures[f.name] = new(round(x))
				}
			}
			for _, w := range s.waits {
				row.MeanWait = append(row.MeanWait, round(w.Mean().Seconds()))
			}
			if s.seeds > 0 {
				row.Series = s.seriesJSON()
			}
			d.Rows = append(d.Rows, row)
		}
	}
	text, err := json.Marshal(d)
	return string(text) + "\n", err
}

// round keeps six decimals, more than a simulation can tell.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
