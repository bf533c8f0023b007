package manifest

import (
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

func TestAProxyIsRead(t *testing.T) {
	f := parsed(t, `
proxy: {admin: none, store: keys.db, drain: 1m}
services:
  orders:
    proxy: {listen: "127.0.0.1:7071", to: "h2c://127.0.0.1:9001/base"}
  payments:
    lease: 90s
    retention: 48h
    proxy:
      listen: :7070
      to: https://payments.internal
      host: payments.example
      tlsCert: cert.pem
      tlsKey: key.pem
      ca: roots.pem
      policy: {maxAttempts: 2, timeout: 8s, budget: none}
      connectTimeout: 1s
      silence: none
      adaptive: true
      maxReplay: 64KiB
      routes:
        - GET /reports/
        - {match: "/slow", policy: {timeout: none, attemptTimeout: 5m}}
      requireKey: [POST /charge, "PUT /cards/{id}"]
      acceptKey: [/refund]
      scope: header:X-Customer
      upstreamKeys: true
      maxKeyedBody: 2MiB
      maxAnswer: 500kB
      trust: [10.0.0.0/8, "::1"]
      maxHeader: 1.5KiB
      maxBody: none
      maxConnections: 500
      maxInFlight: none
`)
	want := []Proxy{
		{Service: "orders", Listen: "127.0.0.1:7071", To: "h2c://127.0.0.1:9001/base"},
		{
			Service: "payments", Listen: ":7070", To: "https://payments.internal", Host: "payments.example",
			TLSCert: "cert.pem", TLSKey: "key.pem", CA: "roots.pem",
			Policy:         riprap.Policy{MaxAttempts: 2, Timeout: 8 * time.Second, Budget: &riprap.Budget{Ratio: math.Inf(1)}},
			ConnectTimeout: time.Second, Silence: -1, Adaptive: true, MaxReplay: 65536,
			Routes:     []Route{{Match: "GET /reports/"}, {Match: "/slow", Policy: &riprap.Policy{Timeout: -1, AttemptTimeout: 5 * time.Minute}}},
			RequireKey: []string{"POST /charge", "PUT /cards/{id}"}, AcceptKey: []string{"/refund"}, Scope: "header:X-Customer", UpstreamKeys: true,
			Lease: 90 * time.Second, Retention: 48 * time.Hour, MaxKeyedBody: 2 << 20, MaxAnswer: 500_000,
			Trust:     []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			MaxHeader: 1536, MaxBody: -1, MaxConnections: 500, MaxInFlight: -1,
		},
	}
	if !reflect.DeepEqual(f.Proxies, want) {
		t.Errorf("the proxies are\n%+v\nwant\n%+v", f.Proxies, want)
	}
	if want := (Proxying{Admin: "none", Store: "keys.db", Drain: time.Minute}); f.Proxying != want {
		t.Errorf("what they have in common is %+v, want %+v", f.Proxying, want)
	}
	if nobody := parsed(t, `services: {a: {proxy: {listen: "h:1", to: "http://h", trust: none}}}`).Proxies[0].Trust; nobody == nil || len(nobody) != 0 {
		t.Errorf("trust: none is %#v, want an empty list", nobody)
	}
}

func TestAnErrorInAProxySaysWhereItIs(t *testing.T) {
	const good = `listen: "127.0.0.1:1", to: "http://h"`
	for text, want := range map[string]string{
		`{}`:                                       `a proxy without "listen"`,
		`{listen: "h:1"}`:                          `a proxy without "to"`,
		`{listen: 7070, to: "http://h"}`:           `1:39: listen: want HOST:PORT`,
		`{listen: "h:70000", to: "http://h"}`:      `listen: want HOST:PORT`,
		`{listen: "h:1", to: "h:2"}`:               `to: want http://, https:// or h2c://`,
		`{listen: "h:1", to: "http://u:p4ss@h"}`:   `no user`,
		`{` + good + `, tlsCert: a}`:               `tlsCert and tlsKey go together`,
		`{` + good + `, requireKey: [POST /a]}`:    `needs a scope`,
		`{` + good + `, requireKey: []}`:           `requireKey: want a list`,
		`{` + good + `, requireKey: [GET /a]}`:     `a GET needs no key`,
		`{` + good + `, requireKey: [charge]}`:     `no pattern: want METHOD /PATH`,
		`{` + good + `, routes: ["/a{b"]}`:         `no pattern that can be looked for`,
		`{` + good + `, routes: [{policy: {}}]}`:   `a route without "match"`,
		`{` + good + `, scope: X-Customer}`:        `scope: want header:NAME`,
		`{` + good + `, scope: "header:a b"}`:      `scope: want header:NAME`,
		`{` + good + `, trust: [10.0.0.0/99]}`:     `trust: want a network`,
		`{` + good + `, maxBody: 5}`:               `a number without a unit`,
		`{` + good + `, maxBody: 5 parsecs}`:       `maxBody: want a size`,
		`{` + good + `, maxBody: -1KiB}`:           `maxBody: want a size`,
		`{` + good + `, policy: {latency: {}}}`:    `want adaptive: true`,
		`{` + good + `, requireKeys: [POST /a]}`:   `did you mean "requireKey"?`,
		`{` + good + `, maxAnswer: none}`:          `maxAnswer: so much is held in memory`,
		`{` + good + `, silence: 0s}`:              `silence: zero is nothing that could be meant`,
		`{` + good + `, maxInFlight: 0}`:           `maxInFlight: want a whole number from 1 on`,
		`{` + good + `, upstreamKeys: yes please}`: `upstreamKeys: want true or false`,
	} {
		_, err := Parse("f", []byte(`services: {payments: {proxy: `+text+`}}`))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`services: {a: {proxy: {listen: "h:1", to: "http://x"}}, b: {proxy: {listen: "h:1", to: "http://y"}}}`: `listen: h:1 is "a"'s address already`,
		`{proxy: {admin: "h:1"}, services: {a: {proxy: {listen: "h:1", to: "http://x"}}}}`:                     `listen: h:1 is the admin's address already`,
		`services: {a: {lease: 10us, proxy: {` + good + `, requireKey: [POST /a], scope: single-tenant}}}`:     `1:23: lease: want 1ms at least`,
		`services: {a: {proxy: {` + good + `, requireKey: [POST /a], scope: single-tenant}, retention: 10ms}}`: `retention: want 1s at least`,
		`{proxy: {admin: nowhere}, services: {a: }}`:                                                           `admin: want HOST:PORT, such as 127.0.0.1:7070 or none`,
		`services: {"a/b": {proxy: {` + good + `, requireKey: [POST /a], scope: single-tenant}}}`:              `has no / in it`,
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestWhatIsMissingIsToldWhereItsOtherHalfIs(t *testing.T) {
	for _, half := range []string{"tlsCert: cert.pem", "tlsKey: key.pem", "requireKey: [POST /charge]", "acceptKey: [POST /charge]"} {
		got := wrong("services:\n  payments:\n    proxy:\n      listen: 127.0.0.1:7070\n      to: http://127.0.0.1:9000\n      " + half + "\n")
		if !strings.HasPrefix(got, "6:") || strings.Contains(got, "\n") {
			t.Errorf("%s alone: got %q, want one error in its line, 6", half, got)
		}
	}
}

func TestTheFiguresOfAProxyFitTogether(t *testing.T) {
	for _, c := range []struct{ given, want riprap.Policy }{
		{riprap.Policy{}, riprap.Policy{MaxAttempts: 3, Timeout: 30 * time.Second, AttemptTimeout: 9500 * time.Millisecond}},
		{riprap.Policy{Timeout: 5 * time.Second}, riprap.Policy{MaxAttempts: 3, Timeout: 5 * time.Second, AttemptTimeout: 1166 * time.Millisecond}},
		{riprap.Policy{MaxAttempts: 1, Timeout: time.Minute}, riprap.Policy{MaxAttempts: 1, Timeout: time.Minute, AttemptTimeout: time.Minute}},
		{riprap.Policy{Timeout: -1}, riprap.Policy{MaxAttempts: 3, Timeout: -1, AttemptTimeout: 10 * time.Second}},
		{riprap.Policy{AttemptTimeout: -1}, riprap.Policy{MaxAttempts: 3, Timeout: 30 * time.Second, AttemptTimeout: -1}},
		{riprap.Policy{AttemptTimeout: time.Second, MaxAttempts: -1}, riprap.Policy{MaxAttempts: -1, Timeout: 30 * time.Second, AttemptTimeout: time.Second}},
		{riprap.Policy{Timeout: time.Second}, riprap.Policy{MaxAttempts: 3, Timeout: time.Second, AttemptTimeout: 10 * time.Second}}, // the waits alone take longer
	} {
		if got := Effective(c.given); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Effective(%+v) =\n%+v, want\n%+v", c.given, got, c.want)
		}
	}
}

func TestAProxyStandsInTheChain(t *testing.T) {
	f := parsed(t, `services:
  gateway:
    limit: 40s
    calls:
      - to: payments
        policy: {maxAttempts: 1, timeout: 35s, attemptTimeout: 35s}
  payments:
    limit: 9s
    lease: 1m
    retention: 24h
    proxy:
      listen: 127.0.0.1:7070
      to: http://127.0.0.1:9000
      requireKey: [POST /charge]
      scope: single-tenant
`)
	var path []string
	for _, h := range f.Chain.Hops() {
		path = append(path, h.Service)
	}
	if got := strings.Join(path, " → "); got != "gateway → payments (proxy) → payments" {
		t.Errorf("the chain is %s, want the proxy before its service", got)
	}
	if found := chain.Check(&f.Chain); len(found) > 0 {
		t.Errorf("the proxy's own figures are not fine: %+v", found)
	}
	for _, s := range f.Chain.Services {
		if keeps := s.Name == "payments (proxy)"; (s.Retention > 0) != keeps || (s.Lease > 0) != keeps {
			t.Errorf("%s keeps keys for %v, want only the proxy to keep them", s.Name, s.Retention)
		}
	}
}

func TestAFindingAboutAProxyIsShownInItsBlock(t *testing.T) {
	f := parsed(t, `services:
  payments:
    lease: 1s
    retention: 24h
    limit: 20s
    proxy:
      listen: 127.0.0.1:7070
      to: http://127.0.0.1:9000
      policy: {attemptTimeout: 20s}
      requireKey: [POST /charge]
      scope: single-tenant
      upstreamKeys: true
`)
	for _, c := range []struct {
		finding chain.Finding
		line    int
		at      bool
	}{
		{chain.Finding{Service: "payments (proxy)", To: "payments", Field: "policy.attemptTimeout"}, 9, true},
		{chain.Finding{Service: "payments (proxy)", To: "payments", Field: "policy.maxAttempts"}, 9, true},
		{chain.Finding{Service: "payments (proxy)", Call: -1, Field: "lease"}, 3, true},
		{chain.Finding{Service: "payments (proxy)", To: "payments", Field: "keyed"}, 12, true},
		{chain.Finding{Service: "payments", Call: -1, Field: "limit"}, 5, true},
		{chain.Finding{Service: "gateway", To: "payments (proxy)"}, 1, false},
	} {
		if at := f.FindingPlace(c.finding); at.Line != c.line {
			t.Errorf("%+v is shown in line %d, want %d", c.finding, at.Line, c.line)
		}
		if got := f.AtProxy(c.finding); got != c.at {
			t.Errorf("AtProxy(%+v) = %v, want %v", c.finding, got, c.at)
		}
	}
	if found := chain.Check(&f.Chain); len(found) == 0 {
		t.Error("three attempts of 20s within 30s are fine, want a finding")
	}
}

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]int64{"1B": 1, "64KiB": 65536, "1MiB": 1 << 20, "2GiB": 2 << 30, "500kB": 500_000, "1.5 KiB": 1536, "none": -1,
		"": 0, "64": 0, "KiB": 0, "-1KiB": 0, "1e3KiB": 1024000, "0B": 0, "NaNB": 0, "InfB": 0, "9999999999GiB": 0, "1kib": 0} {
		if got, err := ParseSize(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}
