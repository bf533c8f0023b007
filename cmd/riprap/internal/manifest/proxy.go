package manifest

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/riprap-go/riprap"
)

// A Proxy is how "riprap proxy" stands in front of one service. Sizes are bytes. Of a limit, zero means the proxy's default
// and negative means none.
type Proxy struct {
	Service string // whom it stands in front of
	Listen  string // host:port
	To      string // http://, https:// or h2c://HOST[:PORT][/PATH]
	Host    string // the Host field sent; "" means the client's

	TLSCert, TLSKey string // files in PEM form; "" means that it listens without TLS
	CA              string // file in PEM form with the roots that the service's certificate is checked by; "" means the system's

	Policy         riprap.Policy // up to the header of the service's answer; see Effective
	ConnectTimeout time.Duration
	Silence        time.Duration // longest pause of either side within a body
	Adaptive       bool          // each route learns its own attempt bound
	MaxReplay      int64         // largest request body that may be sent again
	Routes         []Route       // the most specific that matches holds; what matches none is one route by itself

	RequireKey   []string // patterns of requests that must carry an Idempotency-Key and are run once
	AcceptKey    []string // patterns of requests that may carry one, and are run once if they do
	Scope        string   // "header:NAME" or "single-tenant"; required if there is a pattern above
	UpstreamKeys bool     // the service honors keys itself: a keyed request may reach it more than once
	Lease        time.Duration
	Retention    time.Duration
	MaxKeyedBody int64
	MaxAnswer    int64 // largest answer that is kept

	Trust []netip.Prefix // whose X-Forwarded-*, deadline and attempt fields are believed; nil means loopback and private addresses, empty nobody

	MaxHeader      int64
	MaxBody        int64
	MaxConnections int
	MaxInFlight    int
}

// A Route is a set of requests that the proxy treats alike: they share a budget, and a bound if that is learned.
type Route struct {
	Match  string         // a pattern of http.ServeMux: [METHOD ]/PATH
	Policy *riprap.Policy // nil means the proxy's
}

// Proxying is what the proxies of a file have in common.
type Proxying struct {
	Admin string        // host:port of the admin listener; "" means the default, "none" none
	Store string        // of the idempotency keys: a SQLite file or postgres://…; "" means the default
	Drain time.Duration // how long a proxy that ends waits for the requests under way; negative means forever
}

// What a proxy takes for zero figures. Two proxies, one behind the other, then keep within the ten calls that a chain allows.
const (
	proxyAttempts  = 3
	proxyTimeout   = 30 * time.Second
	endlessAttempt = 10 * time.Second // where there is no total
)

// Effective returns a policy of a proxy with the figures that it takes for zero: three attempts, 30 seconds in all, and for each
// attempt what is left of them for it when the waits between them are as long as they may be.
func Effective(p riprap.Policy) riprap.Policy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, proxyAttempts)
	p.Timeout = cmp.Or(p.Timeout, proxyTimeout)
	if p.AttemptTimeout != 0 {
		return p
	}
	p.AttemptTimeout = endlessAttempt
	if p.Timeout > 0 && p.MaxAttempts > 0 && p.MaxAttempts <= 100 {
		left, wait := p.Timeout, time.Duration(0)
		for n := 1; n < p.MaxAttempts; n++ {
			wait = p.Backoff.Delay(n, wait, 0) // with zero drawn it is the longest
			left -= wait
		}
		if each := (left / time.Duration(p.MaxAttempts)).Truncate(time.Millisecond); each > 0 {
			p.AttemptTimeout = each
		}
	}
	return p
}
