package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/chain"
)

const routed = `services:
  catalog:
    lease: 10m
    retention: 24h
    proxy:
      listen: 127.0.0.1:7070
      to: http://127.0.0.1:9000
      routes:
        - GET /items/
        - match: GET /reports/
          policy: {timeout: 1m, attemptTimeout: 25s}
        - match: POST /import
          policy: {timeout: 5m, attemptTimeout: 5m}
        - {match: /slow, policy: {maxAttempts: 5}}
`

func TestARouteWithAPolicyIsACallOfTheProxy(t *testing.T) {
	f := parsed(t, routed)
	hop := f.Chain.Services[0]
	if hop.Name != "catalog (proxy)" || len(hop.Calls) != 4 {
		t.Fatalf("the proxy is %+v, want one that calls catalog by its own policy and by three of routes", hop)
	}
	for i, want := range []struct {
		route    string
		attempts int
		timeout  time.Duration
		line     int
	}{{"", 3, 30 * time.Second, 5}, {"GET /reports/", 3, time.Minute, 11}, {"POST /import", 1, 5 * time.Minute, 13}, {"/slow", 5, 30 * time.Second, 14}} {
		c := hop.Calls[i]
		if c.To != "catalog" || c.Policy.MaxAttempts != want.attempts || c.Policy.Timeout != want.timeout || c.Policy.Budget == nil {
			t.Errorf("call %d is %+v, want %d attempts in %v and a budget", i, c, want.attempts, want.timeout)
		}
		if got := f.Route(chain.Hop{From: "catalog (proxy)", Call: i, Service: "catalog"}); got != want.route {
			t.Errorf("call %d is for %q, want %q", i, got, want.route)
		}
		if at := f.FindingPlace(chain.Finding{Service: "catalog (proxy)", Call: i, Field: "policy.maxWait"}); at.Line != want.line {
			t.Errorf("what call %d leaves out is shown in line %d, want %d", i, at.Line, want.line)
		}
	}
	if got := f.Route(chain.Hop{From: "gateway", Call: 1, Service: "catalog (proxy)"}); got != "" {
		t.Errorf("a call of the gateway is for the route %q, want none", got)
	}
	found := chain.Check(&f.Chain)
	if len(found) != 1 || found[0].Rule != "attempts-do-not-fit" || f.FindingPlace(found[0]) != (Place{11, 11, 6}) || !f.AtProxy(found[0]) {
		t.Errorf("got %+v, want that three attempts of 25s do not fit into a minute, and no word about what is sent once", found)
	}
}

func TestWhatAServiceThatHonorsKeysIsSentMayBeSentAgain(t *testing.T) {
	f := parsed(t, strings.Replace(routed, "      routes:", "      upstreamKeys: true\n      routes:", 1))
	for i, c := range f.Chain.Services[0].Calls {
		if !c.Keyed || c.Policy.MaxAttempts == 1 {
			t.Errorf("call %d is %+v, want one with a key that may be repeated", i, c)
		}
	}
}

func TestAProxyWithoutPatternsForKeysLeavesThemToItsService(t *testing.T) {
	for keys, keeper := range map[string]string{
		"": "catalog", "      acceptKey: [POST /orders]\n      scope: single-tenant\n": "catalog (proxy)", "      requireKey: [POST /orders]\n      scope: single-tenant\n": "catalog (proxy)",
	} {
		f := parsed(t, routed+keys)
		for _, s := range f.Chain.Services {
			if keeps := s.Lease == 10*time.Minute && s.Retention == 24*time.Hour; keeps != (s.Name == keeper) {
				t.Errorf("with %q %s has lease %v and retention %v, want them at %s", keys, s.Name, s.Lease, s.Retention, keeper)
			}
		}
		for _, field := range []string{"lease", "retention"} {
			if at := f.FindingPlace(chain.Finding{Service: keeper, Call: -1, Field: field}); at.Line != map[string]int{"lease": 3, "retention": 4}[field] {
				t.Errorf("with %q the %s of %s is shown in line %d, want where it is written", keys, field, keeper, at.Line)
			}
		}
	}
}

func TestAServiceMayNotBeCalledLikeAProxy(t *testing.T) {
	got := wrong("services:\n  a: {proxy: {listen: \"h:1\", to: \"http://h\"}}\n  a (proxy): {limit: 3s}\n")
	if want := `3:3: service "a (proxy)": that is what the proxy in front of "a" is called in the chain`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	parsed(t, "services: {b (proxy): }")
}
