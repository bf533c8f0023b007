package riphttp

import (
	"cmp"
	"slices"
	"time"

	"github.com/riprap-go/riprap"
)

// A Snapshot is what a Transport knows of a service that it calls, for display.
type Snapshot struct {
	Name    string                 // of the destination
	Retries int                    // that the budget has left, math.MaxInt if it is unlimited
	Latency riprap.LatencySnapshot // zero without a Latency
}

// Snapshots returns what the Transport knows, at the time now, of the services that it called lately, in the order of their
// names. Those are at most 4096; one that was not called for an hour or two is forgotten.
func (t *Transport) Snapshots(now time.Time) []Snapshot {
	d := &t.destinations
	d.mu.RLock()
	all := make([]*destination, 0, len(d.table))
	for _, dest := range d.table {
		all = append(all, dest)
	}
	d.mu.RUnlock()

	list := make([]Snapshot, len(all))
	for i, dest := range all {
		list[i] = Snapshot{Name: dest.name, Retries: dest.policy.Budget.Left(now)}
		if l := dest.policy.Latency; l != nil {
			list[i].Latency = l.Snapshot(now)
		}
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
