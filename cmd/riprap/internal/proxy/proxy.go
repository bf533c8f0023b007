// Package proxy is "riprap proxy": riprap for services in any language. A [Service] is the handler in front of one; Run puts
// each on an address of its own and keeps it there, through reloads, until it is told to end.
package proxy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
)

// Run is the subcommand. It serves until ctx is done. SIGHUP makes it read its configuration again.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var help strings.Builder
	q, err := parse(args, &help)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err := io.WriteString(stdout, help.String())
		return err
	case err != nil:
		return &exit.UsageError{Command: "riprap proxy", Err: err}
	}
	defer exit.OutlivePipe()() // a reader of the log that ends does not end the proxy
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	c, err := q.load()
	if err != nil {
		return err
	}
	p := newProcess(q, stderr)
	defer p.close()
	if err := p.apply(ctx, c); err != nil {
		return err
	}
	p.announce()
	for {
		select {
		case <-hangup:
			p.reload(ctx)
		case <-ctx.Done():
			p.end()
			return nil
		}
	}
}

// A process is a proxy at work.
type process struct {
	*request
	stderr io.Writer
	log    *slog.Logger
	base   context.Context // of all requests; its end cuts them
	cut    context.CancelCauseFunc
	ready  atomic.Bool
	store  *keystore.Store // nil as long as no pattern needs keys
	reaper sync.WaitGroup
	watch  Watch

	mu       sync.Mutex
	config   *configuration
	services map[string]*running // by name
	former   []*Service          // replaced, perhaps with requests under way
	servers  []*server
	leaving  sync.WaitGroup // servers that have no address any more
}

// A running service is the handler of a front.
type running struct {
	*Service
	sum string // of the front
}

func newProcess(q *request, stderr io.Writer) *process {
	p := &process{request: q, stderr: stderr, log: slog.New(slog.NewTextHandler(stderr, nil)), services: map[string]*running{}}
	p.base, p.cut = context.WithCancelCause(context.Background())
	return p
}

// say prints a line for people.
func (p *process) say(format string, args ...any) {
	fmt.Fprintf(p.stderr, "riprap proxy: "+format+"\n", args...)
}

// announce says where the proxy is.
func (p *process) announce() {
	for _, v := range p.servers {
		if v.service == "" {
			p.say("admin on %s", v.url())
			continue
		}
		p.say("%s on %s to %s", v.service, v.url(), p.services[v.service].config.To)
	}
	p.ready.Store(true)
	p.say("ready")
}
