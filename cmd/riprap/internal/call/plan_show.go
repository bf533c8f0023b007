package call

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// text is the plan for people.
func (p *plan) text(on terminal.Screen) string {
	var b strings.Builder
	say := func(format string, args ...any) {
		for i, line := range terminal.Wrap(fmt.Sprintf(format, args...), on.Width-2) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(&b, line)
		}
	}
	fmt.Fprintln(&b, on.Palette.Strong(fmt.Sprintf("%s %s: nothing is sent, this is what could be", p.method, p.service())))
	fmt.Fprintln(&b)
	if len(p.steps) > 0 {
		t := terminal.Table{Header: []string{"retry", "wait at least", "on average", "at most", fmt.Sprintf("of %d callers", callers)}}
		for i, s := range p.steps {
			t.Add(fmt.Sprint(i+1), told(s.least), told(s.mean), told(s.most), perSecond(s.rate))
		}
		b.WriteString(t.Text(on))
		if p.attempts-1 > len(p.steps) {
			fmt.Fprintln(&b, "and so on")
		}
		fmt.Fprintln(&b)
		say("The last column: requests a second at the busiest moment, of %d such callers whose attempts all fail together and at once.", callers)
		if p.policy.MaxWait > 0 {
			say("A server that asks for a wait gets it and up to a fifth more; if it asks for more than %s, that is the end (--max-wait).", short(p.policy.MaxWait))
		} else {
			say("A server that asks for a wait gets it and up to a fifth more, however long (--max-wait none).")
		}
	}
	if !p.repeatable() {
		say("A %s without a key is sent again only if it surely was not processed; with --key also after failures that leave that open.", p.method)
	}
	if p.follow {
		say("Each redirect, %d at most, is a request with attempts of its own. The budget and --timeout are for all of them.", hops-1)
	}
	say("%s", p.total())
	say("%s", p.load())
	return b.String()
}

func (p *plan) service() string { return p.url.Scheme + "://" + p.url.Host }

func perSecond(rate float64) string {
	if math.IsInf(rate, 1) {
		return "all at once"
	}
	return fmt.Sprintf("%.0f/s", significant(rate))
}

// significant keeps two digits, which is as much as can be told.
func significant(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/unit) * unit
}

// total says how long it can take.
func (p *plan) total() string {
	tries := counted(p.requests, "attempt") + " of " + short(p.policy.AttemptTimeout)
	long := tries
	switch both := told(plus(p.tried(), p.waits)); {
	case p.requests == 0:
		long = "nothing else bounds it"
	case p.policy.AttemptTimeout < 0:
		long = "nothing else bounds an attempt"
	case p.waits == 0:
	case p.asked < 0:
		long += fmt.Sprintf(" and waits of %s take %s, and nothing else bounds what the server may ask for", told(p.waits), both)
	case p.asked > p.waits:
		long += fmt.Sprintf(" and waits of %s take %s, and %s if the server asks for the longest waits that it may", told(p.waits), both, told(p.through))
	default:
		long += fmt.Sprintf(" and waits of %s", told(p.waits))
	}
	body := ""
	if p.timeout < 0 {
		body = ". The body may take longer, if something of it comes every " + short(p.readTimeout)
		if p.readTimeout < 0 {
			body = ". Nothing bounds the body"
		}
	}
	switch {
	case p.worst == 0:
		return "Worst total: no bound: " + long + body + "."
	case p.cut():
		return fmt.Sprintf("Worst total: %s, cut by --timeout: %s.", told(p.worst), long)
	default:
		return fmt.Sprintf("Worst total: %s: %s%s.", told(p.worst), long, body)
	}
}

// load says how many requests and bytes it can make.
func (p *plan) load() string {
	if p.requests == 0 {
		return fmt.Sprintf("Largest load: no limit was found within %s; --attempts, --budget or --timeout sets one.", counted(most, "attempt"))
	}
	one := counted(p.requests, "request")
	if p.requests > 1 {
		one += " (" + p.limit + ")"
	}
	if p.body.size > 0 {
		one += fmt.Sprintf(" and %d bytes uploaded", int64(p.requests)*p.body.size)
	}
	return fmt.Sprintf("Largest load: %s by one call, %d requests by %d callers. Each process has a budget of its own, so nothing limits them together.",
		one, p.requests*callers, callers)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// planJSON is the plan for programs. Times are in seconds. What has no bound is null.
type planJSON struct {
	Format   int        `json:"format"` // of this document; grows when a field changes its meaning
	Method   string     `json:"method"`
	Service  string     `json:"service"`
	Keyless  bool       `json:"sent_again_only_if_unprocessed"`
	Attempts *int       `json:"attempts"` // of one hop
	Limit    string     `json:"limited_by,omitempty"`
	Retries  []stepJSON `json:"retries"` // the first twelve of one hop
	Worst    *float64   `json:"worst_total_seconds"`
	Cut      bool       `json:"cut_by_timeout"`
	Waits    *float64   `json:"longest_waits_seconds"` // drawn by ourselves
	Asked    *float64   `json:"longest_waits_asked_seconds"`
	Requests *int       `json:"most_requests"`
	Bytes    *int64     `json:"most_bytes_uploaded"`
	Callers  int        `json:"callers"`
	All      *int       `json:"most_requests_of_callers"`
}

type stepJSON struct {
	Least float64  `json:"least_seconds"`
	Mean  float64  `json:"mean_seconds"`
	Most  float64  `json:"most_seconds"`
	Rate  *float64 `json:"most_requests_per_second"` // of the callers; null if they come all at once
}

func (p *plan) json() (string, error) {
	d := planJSON{
		Format: 1, Method: p.method, Service: p.service(), Keyless: !p.repeatable(), Limit: p.limit,
		Retries: []stepJSON{}, Callers: callers, Cut: p.cut(),
	}
	for _, s := range p.steps {
		j := stepJSON{Least: seconds(s.least), Mean: seconds(s.mean), Most: seconds(s.most)}
		if !math.IsInf(s.rate, 1) {
			j.Rate = new(math.Round(s.rate))
		}
		d.Retries = append(d.Retries, j)
	}
	if p.worst > 0 {
		d.Worst = new(seconds(p.worst))
	}
	if p.requests > 0 {
		d.Attempts, d.Requests, d.All = &p.attempts, &p.requests, new(p.requests*callers)
		d.Bytes, d.Waits = new(int64(p.requests)*p.body.size), new(seconds(p.waits))
		if p.asked >= 0 {
			d.Asked = new(seconds(p.asked))
		}
	}
	text, err := json.Marshal(d)
	return string(text) + "\n", err
}

// seconds keeps six decimals.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
