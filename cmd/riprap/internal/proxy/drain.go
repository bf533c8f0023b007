package proxy

import (
	"context"
	"errors"
)

var errEnded = errors.New("the proxy ends")

// end lets requests under way finish, and cuts those that take too long.
func (p *process) end() {
	p.ready.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), p.config.Drain)
	defer cancel()
	for _, v := range p.servers {
		v.http.Shutdown(ctx)
	}
	p.say("ended")
}

// close gives back what the process holds.
func (p *process) close() {
	p.cut(errEnded)
	for _, v := range p.servers {
		v.http.Close()
		v.listener.Close()
	}
	if p.store != nil {
		p.store.Close()
	}
}
