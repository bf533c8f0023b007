package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/riprap-go/riprap/idempotency"
)

// reload reads the configuration again, and goes on with the old one if the new one is not good.
func (p *process) reload(ctx context.Context) {
	c, err := p.load()
	if err == nil {
		err = p.apply(ctx, c)
	}
	if err != nil {
		p.say("not reloaded: %v", err)
		return
	}
	p.announce()
	p.say("reloaded")
}

// apply makes the proxy do what a configuration says. An error leaves it as it was.
func (p *process) apply(ctx context.Context, c *configuration) error {
	if err := p.openStore(ctx, c); err != nil {
		return err
	}
	var keys idempotency.Store
	if p.store != nil {
		keys = p.store
	}
	services := map[string]*running{}
	for _, f := range c.fronts {
		if old := p.services[f.Service]; old != nil && old.sum == f.sum {
			services[f.Service] = old
			continue
		}
		s, err := NewService(f.Proxy, keys, p.watch)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Service, err)
		}
		services[f.Service] = &running{s, f.sum}
	}
	var servers []*server
	for _, f := range c.fronts {
		l, err := bind(ctx, f.Listen)
		if err != nil {
			for _, v := range servers {
				v.listener.Close()
			}
			return err
		}
		v := newServer(f.site(), l, p.base, p.errorLog())
		v.certificate.Store(f.certificate)
		v.answer(services[f.Service])
		servers = append(servers, v)
	}
	p.config, p.services = c, services
	p.servers = slices.Concat(p.servers, servers)
	for _, v := range servers {
		v.start()
	}
	return nil
}

// openStore opens the store that the configuration needs.
func (p *process) openStore(ctx context.Context, c *configuration) (err error) {
	if p.store == nil && c.needsKeys() {
		p.store, err = openStore(ctx, c.Store)
	}
	return err
}
