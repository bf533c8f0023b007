package manifest

import (
	"math"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap"
)

// policy reads what a caller does. Its keys are those of the policy's JSON form.
func (r *reader) policy(p *riprap.Policy) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		r.object(n, path, "a policy",
			field{"maxAttempts", r.count(&p.MaxAttempts, 1)},
			field{"timeout", r.limit(&p.Timeout)},
			field{"attemptTimeout", r.limit(&p.AttemptTimeout)},
			field{"minAttempt", r.limit(&p.MinAttempt)},
			field{"latency", func(n *yaml.Node, path []string) {
				p.Latency = &riprap.Latency{}
				r.latency(p.Latency)(n, path)
			}},
			field{"backoff", r.backoff(&p.Backoff)},
			field{"maxWait", r.limit(&p.MaxWait)},
			field{"budget", func(n *yaml.Node, path []string) {
				if follow(n).Value == none { // nil: every retry is granted
					return
				}
				p.Budget = &riprap.Budget{}
				r.budget(p.Budget)(n, path)
			}},
		)
	}
}

func (r *reader) latency(l *riprap.Latency) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		r.object(n, path, "a latency", field{"factor", r.number(&l.Factor, 1, word{none, -1})}, field{"min", r.limit(&l.Min)})
	}
}

func (r *reader) backoff(b *riprap.Backoff) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		r.object(n, path, "a backoff",
			field{"base", r.duration(&b.Base)},
			field{"max", r.duration(&b.Max)},
			field{"factor", r.number(&b.Factor, 1)},
			field{"jitter", r.jitter(&b.Jitter)},
		)
	}
}

func (r *reader) budget(b *riprap.Budget) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		r.object(n, path, "a budget",
			field{"ratio", r.number(&b.Ratio, 0, word{none, -1}, word{unlimited, math.Inf(1)})},
			field{"reserve", r.count(&b.Reserve, 1)},
			field{"window", r.duration(&b.Window)},
		)
	}
}

func (r *reader) jitter(j *riprap.Jitter) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		var name string
		if r.text(&name)(n, path); name == "" || j.UnmarshalText([]byte(name)) == nil {
			return
		}
		names := []string{riprap.Full.String(), riprap.Equal.String(), riprap.Decorrelated.String(), riprap.None.String()}
		if near := nearest(name, names); near != "" {
			r.failf(n, "no jitter is called %q, did you mean %s?", short(name), near)
			return
		}
		r.failf(n, "no jitter is called %q: want %s", short(name), list(names))
	}
}
