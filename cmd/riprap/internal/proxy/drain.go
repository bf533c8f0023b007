package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var errEnded = errors.New("the proxy ends")

const (
	// For so long clients may still send on the connections that they have, and are told to take another one next time. To
	// close a connection at once would lose a request that is on its way.
	parting = 500 * time.Millisecond

	cutTime = 2 * time.Second // for requests that were cut, to say so to their clients

	look = 5 * time.Millisecond // how often to look whether something has come to its end
)

// drain ends a server whose turn is over: requests under way are finished until ctx is done, the rest is cut. It returns how
// many were cut.
func (v *server) drain(ctx context.Context) (cut int64) {
	defer v.cut(errEnded)
	defer v.http.Close()
	v.leaving.Store(true)
	patience, cancel := context.WithTimeout(ctx, parting)
	wait(patience, func() bool { return v.turn.open.Load() == 0 })
	cancel()
	err := v.http.Shutdown(ctx) // closes what is idle; it does not know of connections that were taken over
	if err == nil && wait(ctx, func() bool { return v.underWay.Load() == 0 }) {
		return 0
	}
	if cut = v.underWay.Load(); cut > 0 {
		v.cut(errEnded)
		patience, cancel := context.WithTimeout(context.Background(), cutTime)
		defer cancel()
		wait(patience, func() bool { return v.underWay.Load() == 0 })
	}
	return cut
}

// baseKey is the key, in a request's context, of the context that all requests of its server are under.
type baseKey struct{}

// untilCut ends with its server what does not end with its client: the run of a key. What is cut becomes unknown at once, and
// not when its lease is over, and its client is told so.
func untilCut(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if base, ok := r.Context().Value(baseKey{}).(context.Context); ok {
			ctx, cancel := context.WithCancelCause(r.Context())
			defer cancel(nil)
			defer context.AfterFunc(base, func() { cancel(context.Cause(base)) })()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// wait waits until something is so, and returns false if ctx is done before.
func wait(ctx context.Context, so func() bool) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return so()
		case <-ticker.C:
		}
	}
	return true
}

// end lets requests under way finish, and cuts those that take too long.
func (p *process) end() {
	p.ready.Store(false)
	var services, admin []*server
	var left int64
	for _, v := range p.servers {
		if v.service == "" {
			admin = append(admin, v) // whoever watches can see how it ends
			continue
		}
		services = append(services, v)
		v.turn.Close()
		v.listener.Close()
		left += v.underWay.Load()
	}
	p.say("ending: %s under way", plural(left, "request is", "requests are"))
	if p.config.Drain > 0 {
		defer time.AfterFunc(p.config.Drain, p.impatient).Stop()
	}
	p.farewell(services, p.config.Drain)
	p.dismissed.Wait()
	p.impatient()
	for _, v := range admin {
		v.turn.Close()
		v.listener.Close()
	}
	p.farewell(admin, p.config.Drain) // at once: patience is over
	p.say("ended")
}

// farewell drains servers side by side and says how many requests were cut. Less than nothing is no limit.
func (p *process) farewell(servers []*server, within time.Duration) {
	ctx, cancel := context.WithCancel(p.patience)
	defer cancel()
	if within > 0 {
		defer time.AfterFunc(within, cancel).Stop()
	}
	var cut atomic.Int64
	var all sync.WaitGroup
	for _, v := range servers {
		all.Go(func() { cut.Add(v.drain(ctx)) })
	}
	all.Wait()
	if n := cut.Load(); n > 0 {
		p.say("cut %s after %v", plural(n, "request", "requests"), within)
	}
}

// dismiss lets servers end that the configuration has no use for. The process waits for them when it ends itself.
func (p *process) dismiss(servers []*server, within time.Duration) {
	if len(servers) == 0 {
		return
	}
	p.mu.Lock()
	p.former = append(p.former, servers...)
	p.mu.Unlock()
	p.dismissed.Go(func() {
		p.farewell(servers, within)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.former = slices.DeleteFunc(p.former, func(v *server) bool { return slices.Contains(servers, v) })
	})
}

// close gives back what the process holds.
func (p *process) close() {
	for _, v := range p.servers {
		v.turn.Close()
		v.listener.Close()
		v.http.Close()
	}
	p.stopReaping()
	p.reaping.Wait()
	if p.store != nil {
		p.store.Close()
	}
}
