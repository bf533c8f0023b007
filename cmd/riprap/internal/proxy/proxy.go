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
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// The live heap of a proxy is a few MB, which Go would collect many times a second. This takes some tens of MB more, and a sixth less
// time for each request.
const gcPercent = 800

// Run is the subcommand. It serves until ctx is done. SIGHUP makes it read its configuration again.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var help strings.Builder
	q, err := parse(args, &help)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err := io.WriteString(stdout, help.String())
		return err
	case err != nil:
		return told(mistake{err})
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	defer exit.OutlivePipe()() // the reader of the log may end before the proxy
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	c, err := q.load()
	if err != nil {
		return told(err)
	}
	p := newProcess(q, stderr)
	defer p.close()
	if err := p.apply(ctx, c); err != nil {
		return told(err)
	}
	p.announce()
	for {
		select {
		case <-hangup:
			p.reload(ctx)
		case err := <-p.broken:
			p.end()
			return told(err)
		case <-ctx.Done():
			p.end()
			return nil
		}
	}
}

// A fileError is what is wrong in the file. It speaks for itself: the flags are not to blame.
type fileError struct{ manifest.Errors }

func (e *fileError) Unwrap() []error {
	return []error{e.Errors, &exit.UsageError{Command: "riprap proxy", Err: e.Errors}}
}

// told makes the error of the subcommand.
func told(err error) error {
	if wrong, ok := errors.AsType[manifest.Errors](err); ok {
		return &fileError{wrong}
	}
	if wrong, ok := errors.AsType[mistake](err); ok {
		return &exit.UsageError{Command: "riprap proxy", Err: wrong.error}
	}
	if wrong, ok := errors.AsType[*keystore.ConfigError](err); ok {
		return &exit.UsageError{Command: "riprap proxy", Err: wrong}
	}
	return fmt.Errorf("riprap proxy: %w", err)
}

// A process is a proxy at work. Its configuration is changed by one goroutine.
type process struct {
	*request
	stderr io.Writer
	log    *slog.Logger
	admin  *admin
	ready  atomic.Bool
	broken chan error // why a listener takes no connections any more

	patience  context.Context // for requests under way, when servers end
	impatient context.CancelFunc
	dismissed sync.WaitGroup // servers that end while others go on

	store       *keystore.Store // nil as long as no pattern needs keys
	reaping     sync.WaitGroup
	reapUntil   context.Context
	stopReaping context.CancelFunc

	mu       sync.Mutex // guards what metrics look at
	config   *configuration
	services map[string]*running // by name
	replaced []*Service          // by others of their name, perhaps with requests under way
	servers  []*server
	former   []*server // that have no address any more
}

// A running service is the handler of a front.
type running struct {
	*Service
	sum string // of the front
}

func newProcess(q *request, stderr io.Writer) *process {
	p := &process{request: q, stderr: stderr, log: slog.New(slog.NewTextHandler(stderr, nil)), broken: make(chan error, 1)}
	p.patience, p.impatient = context.WithCancel(context.Background())
	p.reapUntil, p.stopReaping = context.WithCancel(context.Background())
	p.admin = newAdmin(adminSources{version: version(), snapshots: p.snapshots, connections: p.connections, ready: p.ready.Load})
	return p
}

// reapInterval is how often keys are deleted that are kept for longer than they should be.
const reapInterval = 5 * time.Minute

func (p *process) reap() {
	p.reaping.Go(func() { p.store.ReapEvery(p.reapUntil, reapInterval) })
}

// say prints a line for people. None of it does anything to a terminal.
func (p *process) say(format string, args ...any) {
	io.WriteString(p.stderr, strings.Map(func(c rune) rune {
		if c != '\n' && !unicode.IsGraphic(c) {
			return unicode.ReplacementChar
		}
		return c
	}, fmt.Sprintf("riprap proxy: "+format+"\n", args...)))
}

// announce says where the proxy is, and that it takes requests.
func (p *process) announce() {
	for _, text := range p.config.warnings {
		p.say("warning: %s", text)
	}
	for _, v := range p.servers {
		if v.service == "" {
			p.say("admin on %s", v.url())
			if !v.listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
				p.say("warning: other machines can reach the admin listener, which asks nobody who they are")
			}
			continue
		}
		p.say("%s on %s to %s", v.service, v.url(), p.services[v.service].config.To)
	}
	if !p.ready.Swap(true) {
		p.say("ready")
	}
}

// snapshots are those of all services, those that were replaced too as long as they have something to do.
func (p *process) snapshots(now time.Time) (list []Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.services {
		list = append(list, s.Snapshot(now))
	}
	p.replaced = slices.DeleteFunc(p.replaced, func(s *Service) bool {
		old := s.Snapshot(now)
		if old.InFlight > 0 {
			list = append(list, Snapshot{Service: old.Service, To: old.To, InFlight: old.InFlight, Waiting: old.Waiting})
		}
		return old.InFlight == 0
	})
	return list
}

// connections is how many connections of clients a service has.
func (p *process) connections(service string) (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range slices.Concat(p.servers, p.former) {
		if v.service == service {
			n += v.turn.open.Load()
		}
	}
	return n
}

// version is this program's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}

// plural is a number with its word.
func plural(n int64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + several
}
