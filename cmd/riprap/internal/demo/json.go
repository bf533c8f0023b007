package demo

import (
	"encoding/json"
	"math"
)

// document is the report for programs. Times are in seconds, shares between 0 and 1. What is not known is null.
type document struct {
	Format    int          `json:"format"` // of this document; grows when a field changes its meaning
	Verdict   string       `json:"verdict"`
	Complete  bool         `json:"complete"`            // false if the demo was stopped early
	Recovered *bool        `json:"recovered"`           // on riprap's side
	Twice     *int         `json:"calls_charged_twice"` // on riprap's side
	Seed      uint64       `json:"seed"`
	Scenario  scenarioJSON `json:"scenario"`
	Sides     []sideJSON   `json:"sides"`
}

// A call is a click with all that is sent for it; it is answered once the shopper is told that it is paid.
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
	Later      float64 `json:"answers_later_seconds,omitempty"`
	RetryAfter float64 `json:"retry_after_seconds,omitempty"`
}

type sideJSON struct {
	Name    string      `json:"name"`
	Figures figuresJSON `json:"figures"`
	Series  seriesJSON  `json:"series"`
}

type figuresJSON struct {
	Elapsed       float64     `json:"elapsed_seconds"`
	Made          int         `json:"calls_made"`
	Answered      int         `json:"calls_answered"`
	Failed        int         `json:"calls_failed"`
	Unknown       int         `json:"calls_unknown"`
	Open          int         `json:"calls_open"`
	AnsweredShare float64     `json:"answered_share"`
	EndShare      *float64    `json:"answered_share_at_end"`
	Recovered     *bool       `json:"recovered"`
	HealthyAfter  *float64    `json:"healthy_after_outage_seconds"`
	Account       accountJSON `json:"account"`
	InFlight      int         `json:"most_calls_in_flight"`
	WorstLoad     float64     `json:"worst_load_of_capacity"`
	Sent          int         `json:"requests_sent"` // to the payments service
	SentPerCall   float64     `json:"requests_sent_per_call"`
	Retries       int         `json:"retries"` // of all layers
	Refused       int         `json:"requests_refused"`
	Throttled     int         `json:"requests_answered_429"`
	Overflowed    int         `json:"requests_answered_503"`
	Worked        int         `json:"requests_worked_on"`
	Wasted        int         `json:"requests_worked_on_in_vain"`
	Unheard       int         `json:"answers_lost"`
	Waiting       int         `json:"most_requests_waiting"`
	Late          float64     `json:"latest_call_seconds"` // made or worked on too late by, because the machine was busy
}

// accountJSON is what the ledger says, compared with what the shoppers were told.
type accountJSON struct {
	Charges       int `json:"charges"`
	Charged       int `json:"calls_charged"`
	Twice         int `json:"calls_charged_twice"` // or more often
	Most          int `json:"most_charges_of_a_call"`
	ChargedFailed int `json:"calls_charged_and_failed"`
	ChargedUnsure int `json:"calls_charged_and_unknown"`
	ChargedOpen   int `json:"calls_charged_open"`
	UnchargedPaid int `json:"calls_answered_not_charged"`
}

// seriesJSON holds one number for each step of time in every list.
type seriesJSON struct {
	Step       float64 `json:"step_seconds"`
	Made       []int   `json:"calls_made"`
	Answered   []int   `json:"calls_answered"`
	Failed     []int   `json:"calls_failed"`
	Unknown    []int   `json:"calls_unknown"`
	InFlight   []int   `json:"calls_in_flight"` // at the end of the step
	Retries    []int   `json:"retries"`
	Arrived    []int   `json:"requests_arrived"`
	Refused    []int   `json:"requests_refused"`
	Throttled  []int   `json:"requests_answered_429"`
	Overflowed []int   `json:"requests_answered_503"`
	Worked     []int   `json:"requests_worked_on"`
	Wasted     []int   `json:"requests_worked_on_in_vain"`
	Unheard    []int   `json:"answers_lost"`
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
		riprap := r.Sides[len(r.Sides)-1].Figures
		d.Recovered, d.Twice = new(riprap.Recovered), new(riprap.Account.Twice)
	}
	for _, f := range s.Faults {
		d.Scenario.Faults = append(d.Scenario.Faults, faultJSON{f.Kind, f.From.Seconds(), f.For.Seconds(), f.Hangs.Seconds(), f.Later.Seconds(), f.Asks.Seconds()})
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
		Unknown:       f.Unknown,
		Open:          f.Open,
		AnsweredShare: round(f.AnsweredShare),
		Account:       accountJSON(f.Account),
		InFlight:      f.InFlight,
		WorstLoad:     round(f.WorstLoad),
		Sent:          f.Sent,
		SentPerCall:   round(f.SentPerCall),
		Retries:       f.Retries,
		Refused:       f.Refused,
		Throttled:     f.Throttled,
		Overflowed:    f.Overflowed,
		Worked:        f.Worked,
		Wasted:        f.Wasted,
		Unheard:       f.Unheard,
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
		Answered:   b.each(answered),
		Failed:     b.each(failed),
		Unknown:    b.each(doubted),
		InFlight:   b.inFlight(),
		Retries:    b.each(retried),
		Arrived:    b.each(arrived),
		Refused:    b.each(refused),
		Throttled:  b.each(throttled),
		Overflowed: b.each(overflowed),
		Worked:     b.each(worked),
		Wasted:     b.each(wasted),
		Unheard:    b.each(unheard),
		Waiting:    b.each(longest),
	}
}

// round keeps four decimals, more than the demo can measure.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
