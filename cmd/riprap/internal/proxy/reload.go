package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/idempotency"
)

// reload reads the configuration again, and goes on with the old one if the new one is not good.
func (p *process) reload(ctx context.Context) {
	c, err := p.load()
	if err == nil {
		err = p.apply(ctx, c)
	}
	p.admin.reloaded(time.Now(), err)
	if err != nil {
		p.say("not reloaded: %v", err)
		return
	}
	p.announce()
	p.say("reloaded")
}

// apply makes the proxy do what a configuration says. An error leaves it as it was. First comes all that can fail, then what
// cannot.
func (p *process) apply(ctx context.Context, c *configuration) (err error) {
	keys, err := p.storeFor(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && keys != nil && keys != p.store {
			keys.Close()
		}
	}()
	services, err := p.servicesFor(c, keys)
	if err != nil {
		return err
	}
	sites, err := p.sitesFor(ctx, c)
	if err != nil {
		return err
	}

	list := []manifest.Proxy{}
	for _, f := range c.fronts {
		list = append(list, f.Proxy)
	}
	p.admin.configure(list)
	p.enter(c, services, keys)
	p.move(c, sites)
	return nil
}

// storeFor returns the store that a configuration needs, nil if it needs none.
func (p *process) storeFor(ctx context.Context, c *configuration) (*keystore.Store, error) {
	switch {
	case p.store == nil && c.needsKeys():
		return openStore(ctx, c.Store)
	case p.store != nil && c.needsKeys() && c.Store != p.config.Store:
		return nil, errors.New("the store is another one now, and what runs by a key of the old one would not be found in it: end the proxy and start it again")
	}
	return p.store, nil
}

// servicesFor makes the handlers that a configuration needs. One for which nothing changes is kept, with its budgets and with what
// it has learned.
func (p *process) servicesFor(c *configuration, keys *keystore.Store) (map[string]*running, error) {
	var store idempotency.Store
	if keys != nil {
		store = keys
	}
	services := map[string]*running{}
	for _, f := range c.fronts {
		if old := p.services[f.Service]; old != nil && old.sum == f.sum {
			services[f.Service] = old
			continue
		}
		s, err := NewService(f.Proxy, store, p.admin.watch())
		if err != nil {
			return nil, mistake{fmt.Errorf("%s%s: %w", f.at, f.Service, err)}
		}
		services[f.Service] = &running{s, f.sum}
	}
	return services, nil
}

// A spot is a site and the listener of its address.
type spot struct {
	site
	listener *net.TCPListener
	old      *server // that has the address; nil if it is a new one
}

// sitesFor takes the addresses that a configuration needs and that are not taken yet.
func (p *process) sitesFor(ctx context.Context, c *configuration) (spots []spot, err error) {
	taken := map[string]*server{}
	for _, v := range p.servers {
		taken[v.address()] = v
	}
	for _, s := range c.sites() {
		if old := taken[s.address()]; old != nil {
			spots = append(spots, spot{s, old.listener, old})
			continue
		}
		l, err := bind(ctx, s.listen)
		if err != nil {
			for _, q := range spots {
				if q.old == nil {
					q.listener.Close()
				}
			}
			return nil, fmt.Errorf("%s: %w", cmp.Or(s.service, "admin"), err)
		}
		spots = append(spots, spot{s, l, nil})
	}
	return spots, nil
}

// enter makes the configuration the one in force.
func (p *process) enter(c *configuration, services map[string]*running, keys *keystore.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, old := range p.services {
		if services[name] != old {
			p.replaced = append(p.replaced, old.Service)
		}
	}
	p.config, p.services = c, services
	if p.store == nil && keys != nil {
		p.store = keys
		p.reap()
	}
}

// move lets the servers answer for the configuration: those that there are, and new ones. Those that nobody needs any more
// end, once the others answer.
func (p *process) move(c *configuration, spots []spot) {
	var servers, given []*server
	kept := map[*server]bool{}
	for _, q := range spots {
		v := q.old
		if v == nil || v.site != q.site {
			v = newServer(q.site, q.listener, p.errorLog())
		}
		v.certificate.Store(c.certificate(q.service))
		v.answer(p.handlerOf(q.service))
		switch {
		case q.old == nil:
			v.start(p.broken)
		case q.old != v: // the address stays, and no connection is refused
			q.old.turn.Close()
			<-q.old.served
			v.start(p.broken)
			given = append(given, q.old)
		}
		kept[q.old] = true
		servers = append(servers, v)
	}
	for _, v := range p.servers {
		if !kept[v] {
			v.turn.Close()
			v.listener.Close()
			given = append(given, v)
		}
	}
	p.mu.Lock()
	p.servers = servers
	p.mu.Unlock()
	p.dismiss(given, c.Drain)
	for _, s := range p.replaced {
		s.CloseIdleConnections()
	}
}

// handlerOf is what answers for a service, or on the admin listener.
func (p *process) handlerOf(service string) http.Handler {
	if service == "" {
		return p.adminHandler()
	}
	return p.services[service]
}
