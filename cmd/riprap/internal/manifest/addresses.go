package manifest

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// address reads HOST:PORT, or one of the words.
func (r *reader) address(to *string, words ...string) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		want := list(append([]string{"HOST:PORT, such as 127.0.0.1:7070"}, words...))
		text, ok := r.scalar(n, path, want)
		if !ok {
			return
		}
		for _, word := range words {
			if text == word {
				*to = text
				return
			}
		}
		_, port, err := net.SplitHostPort(text)
		if number, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || number > math.MaxUint16 {
			r.failf(follow(n), "%s: want %s, got %q", path[len(path)-1], want, short(text))
			return
		}
		*to = text
	}
}

// target reads the address of a service.
func (r *reader) target(to *string) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		const want = "http://, https:// or h2c:// and HOST:PORT"
		text, ok := r.scalar(n, path, want)
		if !ok {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c" || u.Hostname() == "":
			r.hush(follow(n), "to: want "+want+", such as http://127.0.0.1:9000")
		case u.Port() != "" && !isPort(u.Port()):
			r.hush(follow(n), "to: want a port from 1 to 65535")
		case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			r.hush(follow(n), "to: want an address and perhaps a path: no user, no query")
		default:
			*to = text
		}
	}
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// host reads the name that a service is called by: that of a Host field.
func (r *reader) host(to *string) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		const want = "a name such as payments.example, perhaps with a port"
		text, ok := r.scalar(n, path, want)
		if !ok {
			return
		}
		u, err := url.Parse("//" + text)
		if err != nil || u.Host != text || u.Hostname() == "" || u.Port() != "" && !isPort(u.Port()) {
			r.failf(follow(n), "%s: want %s, got %q", path[len(path)-1], want, short(text))
			return
		}
		*to = text
	}
}

// together finds what does not go together among the proxies of a file.
func (r *reader) together() {
	t := taken{}
	if r.Proxying.Admin != none {
		t.take(r.Proxying.Admin, "the admin's")
	}
	for _, p := range r.Proxies {
		if of := t.take(p.Listen, fmt.Sprintf("%q's", short(p.Service))); of != "" {
			r.failf(r.places[key([]string{"services", p.Service, "proxy", "listen"})], "listen: %s is %s address already", short(p.Listen), of)
		}
		if node, ok := r.places[key([]string{"services", p.Service + hop})]; ok {
			r.failf(node, "service %q: that is what the proxy in front of %q is called in the chain", short(p.Service+hop), short(p.Service))
		}
	}
}

// taken is whose each address is.
type taken map[string]string

// take gives an address to somebody, unless it is another's already. A host that stands for all of this machine's, such as
// 0.0.0.0, takes the port of each.
func (t taken) take(address, who string) (other string) {
	host, port, err := net.SplitHostPort(address)
	number, _ := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 { // nothing, or any port that is free
		return ""
	}
	if port = strconv.FormatUint(number, 10); host == "" || strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	const all, some = "*", "?" // which are no hosts
	ip, err := netip.ParseAddr(host)
	if ip = ip.Unmap(); err == nil {
		host = ip.String()
	}
	own, others := net.JoinHostPort(strings.ToLower(host), port), all+port
	if err == nil && ip.IsUnspecified() {
		own, others = all+port, some+port
	}
	for _, key := range []string{own, others} {
		if other = t[key]; other != "" {
			return other
		}
	}
	t[own], t[some+port] = who, who
	return ""
}
