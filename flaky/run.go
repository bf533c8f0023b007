package flaky

import "container/list"

// The bounds of what a handler keeps.
const (
	maxRuns     = 10000
	maxArrivals = 50000 // of all runs together
	maxRunLog   = 10000 // of one run, the newest
)

// A run is requests that are counted and logged apart from those of other runs.
type run struct {
	id     string
	script *script
	counts []int64 // requests so far, for each rule of the script
	log    ring
	place  *list.Element // in runs.recent; nil for the requests that belong to no run, which are never forgotten
}

// play begins a script.
func (r *run) play(s *script) {
	r.script, r.counts = s, make([]int64, len(s.rules))
}

// next takes the step that answers a request, nil if the script has none for the path.
func (r *run) next(path string) *step {
	i := r.script.match(path)
	if i < 0 {
		return nil
	}
	r.counts[i]++
	return r.script.rules[i].step(r.counts[i])
}

// runs is every run that is not forgotten. Its owner locks it.
type runs struct {
	none    *run // requests that belong to no run
	byID    map[string]*run
	recent  list.List // of *run, the one used last in front
	entries int       // in the logs of all
	seq     uint64    // of the arrival that came last
}

func (rs *runs) init(s *script) {
	rs.none, rs.byID = &run{}, map[string]*run{}
	rs.none.play(s)
}

// get returns a run, a new one with the script s if there is none. Using it keeps it from being forgotten.
func (rs *runs) get(id string, s *script) *run {
	if id == "" {
		return rs.none
	}
	r := rs.byID[id]
	if r != nil {
		rs.recent.MoveToFront(r.place)
		return r
	}
	if len(rs.byID) >= maxRuns {
		rs.forget()
	}
	r = &run{id: id}
	r.play(s)
	r.place = rs.recent.PushFront(r)
	rs.byID[id] = r
	return r
}

// add appends to the log of a run that get has just returned.
func (rs *runs) add(r *run, rec *record) {
	rs.seq++
	rec.seq = rs.seq
	rs.entries -= r.log.len()
	r.log.add(rec)
	rs.entries += r.log.len()
	for rs.entries > maxArrivals { // which this run and those of no run alone cannot be
		rs.forget()
	}
}

// forget drops the run that was not used for longest. A request of it that is still being served ends as if nothing
// had happened.
func (rs *runs) forget() {
	r := rs.recent.Remove(rs.recent.Back()).(*run)
	delete(rs.byID, r.id)
	rs.entries -= r.log.len()
}

// log returns the arrivals of a run, nil if it is not known.
func (rs *runs) log(id string) []*record {
	r := rs.none
	if id != "" {
		r = rs.byID[id]
	}
	if r == nil {
		return nil
	}
	return r.log.appendTo(nil)
}

// all returns the arrivals of all runs, one run after another.
func (rs *runs) all() []*record {
	list := rs.none.log.appendTo(make([]*record, 0, rs.entries))
	for _, r := range rs.byID {
		list = r.log.appendTo(list)
	}
	return list
}

// A ring holds the newest maxRunLog records.
type ring struct {
	records []*record
	oldest  int // index of the one that is overwritten next, once it is full
}

func (g *ring) len() int { return len(g.records) }

func (g *ring) add(rec *record) {
	if len(g.records) < maxRunLog {
		g.records = append(g.records, rec)
		return
	}
	g.records[g.oldest] = rec
	g.oldest = (g.oldest + 1) % maxRunLog
}

// appendTo appends the records in their order.
func (g *ring) appendTo(to []*record) []*record {
	return append(append(to, g.records[g.oldest:]...), g.records[:g.oldest]...)
}
