package proxies

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A proxy is a "riprap proxy" that runs.
type proxy struct {
	*process
	url    string            // of its first service
	addr   string            // host:port of that
	urls   map[string]string // of each service
	admin  string            // URL
	args   []string
	killed bool
}

// stand puts a proxy in front of one service. What the test does not say, its flags do: ports are free ones, and the keys are
// in a file of the test's own.
func stand(t testing.TB, to string, flags ...string) *proxy {
	t.Helper()
	args := []string{"--to", to}
	if !slices.Contains(flags, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	keyed := slices.Contains(flags, "--require-key") || slices.Contains(flags, "--accept-key")
	if keyed && !slices.Contains(flags, "--store") {
		args = append(args, "--store", filepath.Join(t.TempDir(), "keys.db"))
	}
	return start(t, append(args, flags...)...)
}

// file puts a proxy in front of the services of a riprap.yaml.
func file(t testing.TB, text string, flags ...string) *proxy {
	t.Helper()
	name := filepath.Join(t.TempDir(), "riprap.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, append(flags, name)...)
}

// start starts a proxy and waits until it takes requests. At its end it must have noticed no race and no fault of its own.
func start(t testing.TB, args ...string) *proxy {
	t.Helper()
	program, err := command()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(args, "--admin") {
		args = append([]string{"--admin", "127.0.0.1:0"}, args...)
	}
	p := &proxy{process: run(t, program, append([]string{"proxy"}, args...)...), urls: make(map[string]string), args: args}
	for _, line := range p.says(t, "riprap proxy: ready") {
		words := strings.Fields(line)
		if len(words) < 5 || words[0] != "riprap" || words[3] != "on" {
			continue
		}
		switch name, at := words[2], words[4]; {
		case name == "admin" && len(words) == 5:
			p.admin = at
		default:
			p.urls[name] = at
			if p.url == "" {
				p.url = at
			}
		}
	}
	if u, err := url.Parse(p.url); err != nil || u.Host == "" {
		t.Fatalf("the proxy did not say where it listens:\n%s", p.out.String())
	} else {
		p.addr = u.Host
	}
	t.Cleanup(func() { p.mustBeWell(t) })
	return p
}

// again starts a proxy that was killed once more, at the same address.
func (p *proxy) again(t testing.TB) *proxy {
	t.Helper()
	args := slices.Clone(p.args)
	args[slices.Index(args, "--listen")+1] = p.addr
	return start(t, args...)
}

// kill9 kills the proxy.
func (p *proxy) kill9(t testing.TB) {
	t.Helper()
	p.killed = true
	p.kill(t)
}

// mustBeWell ends the proxy, if it was not killed, and looks at what it has written.
func (p *proxy) mustBeWell(t testing.TB) {
	if !p.killed && !p.gone() {
		if code := p.end(t); code != 0 {
			t.Errorf("riprap proxy after SIGTERM: got exit code %d, want 0", code)
		}
	}
	written := p.out.String()
	for _, bad := range []string{"DATA RACE", "panic", "superfluous", "goroutine "} {
		if strings.Contains(written, bad) {
			t.Errorf("riprap proxy wrote %q:\n%s", bad, written)
			return
		}
	}
	if t.Failed() && written != "" {
		t.Logf("riprap proxy %s wrote:\n%s", strings.Join(p.args, " "), written)
	}
}
