package proxy

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/riprap-go/riprap/cmd/riprap/internal/flags"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

const (
	defaultAdmin = "127.0.0.1:7071"
	defaultStore = "riprap-keys.db"
	defaultDrain = 30 * time.Second
)

// A request is what somebody has typed.
type request struct {
	file  string         // "" if the flags describe the service
	proxy manifest.Proxy // then
	own   manifest.Proxying

	routes []string // of the proxy
}

// forFile are the flags that may stand beside a file. They say more than it.
var forFile = []string{"admin", "store", "drain"}

// parse makes a request of arguments. Flags may stand before and behind the file.
func parse(args []string, help io.Writer) (*request, error) {
	q := &request{}
	set := q.flags()
	files, err := flags.Parse(set, args)
	if errors.Is(err, flag.ErrHelp) {
		usage(set, help)
	}
	if err != nil {
		return nil, err
	}
	var describing []string
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) {
		given[f.Name] = true
		if !slices.Contains(forFile, f.Name) {
			describing = append(describing, "--"+f.Name)
		}
	})
	switch {
	case len(files) > 1:
		return nil, fmt.Errorf("unexpected argument %q: want one file", files[1])
	case len(files) > 0 && len(describing) > 0:
		return nil, fmt.Errorf("%s beside a file: %s describes its services itself, so only --admin, --store and --drain may stand beside it",
			describing[0], manifest.Printable(files[0]))
	case len(files) > 0 && files[0] == "":
		return nil, errors.New("want the name of a file, got an empty one")
	case len(files) > 0 && files[0] == "-":
		return nil, errors.New("the file is read again at SIGHUP, and stdin cannot be: want the name of a file")
	}
	if given["store"] && q.own.Store == "" {
		return nil, errors.New("--store is empty: want postgres://… or a SQLite file")
	}
	if q.own.Admin, err = address("--admin", q.own.Admin, none); err != nil {
		return nil, err
	}
	if len(describing) > 0 {
		return q, q.check(given)
	}
	q.file = manifest.Name
	if len(files) > 0 {
		q.file = files[0]
	}
	return q, nil
}

// check looks at the flags that describe a service.
func (q *request) check(given map[string]bool) (err error) {
	p := &q.proxy
	for _, pattern := range q.routes {
		p.Routes = append(p.Routes, manifest.Route{Match: pattern})
	}
	switch {
	case p.Listen == "":
		return errors.New("--listen is missing: want the HOST:PORT that clients call, such as --listen 127.0.0.1:7070")
	case p.To == "":
		return errors.New("--to is missing: want the URL of the service, such as --to http://127.0.0.1:9000")
	case p.Service == "" || strings.ContainsFunc(p.Service, func(c rune) bool { return !unicode.IsPrint(c) }):
		return fmt.Errorf("--name %q: want a name that can be printed", p.Service)
	case (len(p.RequireKey) > 0 || len(p.AcceptKey) > 0) && p.Scope == "":
		return errors.New("--scope is missing: say whose keys they are, --scope header:NAME; or --scope single-tenant if everybody may see every answer")
	case len(p.RequireKey)+len(p.AcceptKey) == 0:
		for _, name := range []string{"scope", "store", "lease", "retention", "max-keyed-body"} {
			if given[name] {
				return fmt.Errorf("--%s is about keys, and no request has one: want --require-key 'METHOD /PATH' or --accept-key too", name)
			}
		}
	}
	for name, size := range map[string]int64{"max-header": p.MaxHeader, "max-keyed-body": p.MaxKeyedBody} {
		if size < 0 {
			return fmt.Errorf("--%s none: so much is held in memory for each request, which must have a limit: want a size such as 64KiB", name)
		}
	}
	switch {
	case given["lease"] && p.Lease < time.Millisecond:
		return errors.New("--lease: want 1ms at least")
	case given["retention"] && p.Retention < time.Second:
		return errors.New("--retention: want 1s at least")
	}
	if p.Listen, err = address("--listen", p.Listen); err != nil {
		return err
	}
	if err := manifest.CheckTogether(manifest.UnsafeMethods, slices.Concat(p.RequireKey, p.AcceptKey)); err != nil {
		return fmt.Errorf("--require-key, --accept-key: %w", err)
	}
	if err := manifest.CheckTogether(nil, q.routes); err != nil {
		return fmt.Errorf("--route: %w", err)
	}
	if (p.TLSCert == "") != (p.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key belong together: want both, or none")
	}
	if name, ok := strings.CutPrefix(p.Scope, "header:"); ok && !token.MatchString(name) {
		return fmt.Errorf("--scope %q: no field has such a name: want header:NAME, such as header:X-Customer", p.Scope)
	}
	return nil
}

// token is what the name of a field is (RFC 9110 section 5.6.2).
var token = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

func (q *request) flags() *flag.FlagSet {
	p, own := &q.proxy, &q.own
	f := flag.NewFlagSet("riprap proxy", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&p.Listen, "listen", "", "`HOST:PORT` that clients call; no host is this machine only, and\n0.0.0.0 is every network")
	f.StringVar(&p.To, "to", "", "`URL` of the service: http://, https:// or h2c://HOST:PORT")
	f.StringVar(&p.Service, "name", "service", "what metrics and logs call the service")
	f.StringVar(&p.Host, "host", "", "Host `NAME` that the service gets (default: the client's)")

	f.Var(patterns{&p.RequireKey, true}, "require-key", "`PATTERN` of requests that need an Idempotency-Key and are run once,\nsuch as 'POST /charge'; may be repeated")
	f.Var(patterns{&p.AcceptKey, true}, "accept-key", "`PATTERN` of requests that may carry one, and are run once if they do;\nmay be repeated")
	f.StringVar(&p.Scope, "scope", "", "whose keys they are: `header:NAME`, or single-tenant")
	f.StringVar(&own.Store, "store", "", "where keys are kept: a SQLite `FILE` or postgres://…\n(default: "+defaultStore+" in this folder)")
	f.BoolVar(&p.UpstreamKeys, "upstream-keys", false, "the service honors keys itself: a keyed request may reach it twice")
	f.Var((*positive)(&p.Lease), "lease", "how long a request holds its key without a sign of life (`duration`;\ndefault: 1m)")
	f.Var((*positive)(&p.Retention), "retention", "how long an answer is kept for its key (`duration`; default: 24h)")

	f.Var(patterns{&q.routes, false}, "route", "`PATTERN` of requests that get a budget and a bound of their own;\nmay be repeated")
	f.BoolVar(&p.Adaptive, "adaptive", false, "learn from each route how long an attempt may take")
	f.Var((*count)(&p.Policy.MaxAttempts), "attempts", "most attempts of what may be repeated, the first one included (`N`;\ndefault: 3)")
	f.Var((*limit)(&p.Policy.Timeout), "timeout", "for all attempts, to the header of the answer (`duration` or none;\ndefault: 30s)")
	f.Var((*limit)(&p.Policy.AttemptTimeout), "attempt-timeout", "for one attempt, to the header (`duration` or none;\ndefault: such that all attempts fit)")
	f.Var((*limit)(&p.ConnectTimeout), "connect-timeout", "for a connection to the service (`duration` or none; default: 2s)")
	f.Var((*limit)(&p.Silence), "silence", "longest pause within a body (`duration` or none; default: 30s)")

	f.Var((*count)(&p.MaxInFlight), "max-in-flight", "most requests at once; more get a 503 (`N` or none; default: 1024)")
	f.Var((*count)(&p.MaxConnections), "max-connections", "most connections of clients; more wait (`N` or none; default: 10000)")
	f.Var((*size)(&p.MaxHeader), "max-header", "of a request (`SIZE`; default: 64KiB)")
	f.Var((*size)(&p.MaxBody), "max-body", "of a request (`SIZE` or none; default: none)")
	f.Var((*size)(&p.MaxKeyedBody), "max-keyed-body", "of a request with a key (`SIZE`; default: 1MiB)")
	f.Var((*size)(&p.MaxReplay), "max-replay", "largest body that may be sent again (`SIZE` or none; default: 64KiB)")

	f.StringVar(&p.TLSCert, "tls-cert", "", "`FILE` with the certificate to speak TLS with, read again at SIGHUP")
	f.StringVar(&p.TLSKey, "tls-key", "", "`FILE` with its key")
	f.StringVar(&p.CA, "ca", "", "`FILE` with the roots that the service's certificate is checked by\n(default: the system's)")
	f.Var((*prefixes)(&p.Trust), "trust", "whose X-Forwarded-For, deadlines and retry marks are believed\n(`CIDR[,CIDR]` or none; default: loopback and private networks)")
	f.StringVar(&own.Admin, "admin", "", "`HOST:PORT` of metrics, state and health, or none\n(default: "+defaultAdmin+")")
	f.Var((*limit)(&own.Drain), "drain", "how long requests under way may take once it ends (`duration` or none;\ndefault: 30s)")
	return f
}

func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, `usage: riprap proxy [flags] [FILE]

Stands in front of a service in any language: timeouts, retries of what may be
repeated, budgets, deadlines, and idempotency keys by which a request is run
once. For one service:

  riprap proxy --listen 127.0.0.1:7070 --to http://127.0.0.1:9000 \
    --require-key 'POST /charge' --scope header:X-Customer

Without --listen and --to it stands in front of each service of FILE that has a
"proxy", by default %s of this folder. --admin, --store and --drain may
stand beside a file and say more than it.

SIGHUP reads the file and certificates again; a file with mistakes changes
nothing. SIGTERM ends it: requests under way are finished first.

`, manifest.Name)
	f.SetOutput(w)
	f.PrintDefaults()
	fmt.Fprint(w, `
exit codes: 0 it served until it was stopped, 1 it could not, or a rule of
riprap check is broken at a service, 2 usage, or the file is wrong
`)
}

// fill takes for each setting what the flags say, what the file says, or the default.
func fill(flags, file manifest.Proxying) manifest.Proxying {
	return manifest.Proxying{
		Admin: cmp.Or(flags.Admin, file.Admin, defaultAdmin),
		Store: cmp.Or(flags.Store, file.Store, defaultStore),
		Drain: cmp.Or(flags.Drain, file.Drain, defaultDrain),
	}
}
