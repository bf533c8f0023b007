package demo

import (
	"encoding/json"
	"math"
)

// document is the report for programs. Times are in seconds, shares between 0 and 1. What is not known is null.
type document struct {
	Format    int          `json:"format"` // of this document; grows when a field changes its meaning
	Verdict   string       `json:"verdict"`
	Complete  bool         `json:"complete"` // false if the demo was stopped early
	Recovered *bool        `json:"recovered"`
	Seed      uint64       `json:"seed"`
	Scenario  scenarioJSON `json:"scenario"`
	Sides     []sideJSON   `json:"sides"`
}

type scenarioJSON struct {
	Callers        int         `json:"callers"`
	CallsPerSecond float64     `json:"calls_per_second"`
	Capacity       float64     `json:"capacity_per_second"`
	Queue          int         `json:"queue_requests"`
	Length         float64     `json:"length_seconds"`
	Attempts       int         `json:"attempts"`
	AttemptTimeout float64     `json:"attempt_timeout_seconds"`
	Patience       float64     `json:"patience_seconds"`
	Backoff        float64     `json:"backoff_seconds"`
	Faults         []faultJSON `json:"faults"`
}

type faultJSON struct {
	Kind       kind    `json:"kind"`
	From       float64 `json:"from_seconds"`
	For        float64 `json:"for_seconds"`
	Hangs      float64 `json:"hangs_seconds,omitempty"`
	RetryAfter float64 `json:"retry_after_seconds,omitempty"`
}

type sideJSON struct {
	Name    string      `json:"name"`
	Figures figuresJSON `json:"figures"`
	Series  seriesJSON  `json:"series"`
}

type figuresJSON struct {
	Elapsed       float64  `json:"elapsed_seconds"`
	Made          int      `json:"calls_made"`
	Answered      int      `json:"calls_answered"`
	Failed        int      `json:"calls_failed"`
	Open          int      `json:"calls_open"`
	AnsweredShare float64  `json:"answered_share"`
	EndShare      *float64 `json:"answered_share_at_end"`
	Recovered     *bool    `json:"recovered"`
	HealthyAfter  *float64 `json:"healthy_after_outage_seconds"`
	WorstLoad     float64  `json:"worst_load_of_capacity"`
	Sent          int      `json:"requests_sent"`
	SentPerCall   float64  `json:"requests_sent_per_call"`
	Retries       int      `json:"retries"`
	Refused       int      `json:"requests_refused"`
	Throttled     int      `json:"requests_answered_429"`
	Overflowed    int      `json:"requests_answered_503"`
	Worked        int      `json:"requests_worked_on"`
	Wasted        int      `json:"requests_worked_on_in_vain"`
	Waiting       int      `json:"most_requests_waiting"`
	Late          float64  `json:"latest_call_seconds"` // made or worked on too late by, because the machine was busy
}

// seriesJSON holds one number for each step of time in every list.
type seriesJSON struct {
	Step       float64 `json:"step_seconds"`
	Made       []int   `json:"calls_made"`
	Retries    []int   `json:"retries"`
	Arrived    []int   `json:"requests_arrived"`
	Refused    []int   `json:"requests_refused"`
	Throttled  []int   `json:"requests_answered_429"`
	Overflowed []int   `json:"requests_answered_503"`
	Worked     []int   `json:"requests_worked_on"`
	Wasted     []int   `json:"requests_worked_on_in_vain"`
	Answered   []int   `json:"calls_answered"`
	Failed     []int   `json:"calls_failed"`
	Waiting    []int   `json:"most_requests_waiting"`
}

func (r report) json() (string, error) {
	s := r.Scenario
	d := document{
		Format:   1,
		Verdict:  r.verdict(),
		Complete: r.whole(),
		Seed:     r.Seed,
		Scenario: scenarioJSON{
			Callers:        s.Callers,
			CallsPerSecond: round(s.rate()),
			Capacity:       round(s.capacity()),
			Queue:          s.waiting(),
			Length:         s.Length.Seconds(),
			Attempts:       s.Attempts,
			AttemptTimeout: s.AttemptTimeout.Seconds(),
			Patience:       s.Patience.Seconds(),
			Backoff:        s.Backoff.Seconds(),
		},
		Sides: []sideJSON{},
	}
	if d.Complete {
		d.Recovered = new(r.fine())
	}
	for _, f := range s.Faults {
		d.Scenario.Faults = append(d.Scenario.Faults, faultJSON{f.Kind, f.From.Seconds(), f.For.Seconds(), f.Hangs.Seconds(), f.Asks.Seconds()})
	}
	for _, o := range r.Sides {
		d.Sides = append(d.Sides, sideJSON{o.Name, o.Figures.json(), o.Series.json()})
	}
	text, err := json.Marshal(d)
	return string(text) + "\n", err
}

func (f figures) json() figuresJSON {
	j := figuresJSON{
		Elapsed:       f.Elapsed.Seconds(),
		Made:          f.Made,
		Answered:      f.Answered,
		Failed:        f.Failed,
		Open:          f.Open,
		AnsweredShare: round(f.AnsweredShare),
		WorstLoad:     round(f.WorstLoad),
		Sent:          f.Sent,
		SentPerCall:   round(f.SentPerCall),
		Retries:       f.Retries,
		Refused:       f.Refused,
		Throttled:     f.Throttled,
		Overflowed:    f.Overflowed,
		Worked:        f.Worked,
		Wasted:        f.Wasted,
		Waiting:       f.Waiting,
		Late:          f.Late.Seconds(),
	}
	if f.Whole {
		j.EndShare, j.Recovered = new(round(f.EndShare)), new(f.Recovered)
	}
	if f.Again {
		j.HealthyAfter = new(f.HealthyAfter.Seconds())
	}
	return j
}

func (b series) json() seriesJSON {
	return seriesJSON{
		Step:       step.Seconds(),
		Made:       b.each(made),
		Retries:    b.each(retried),
		Arrived:    b.each(arrived),
		Refused:    b.each(refused),
		Throttled:  b.each(throttled),
		Overflowed: b.each(overflowed),
		Worked:     b.each(worked),
		Wasted:     b.each(wasted),
		Answered:   b.each(answered),
		Failed:     b.each(failed),
		Waiting:    b.each(longest),
	}
}

// round keeps four decimals, more than the demo can measure.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
