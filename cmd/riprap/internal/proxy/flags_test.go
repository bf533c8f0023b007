package proxy

import (
	"errors"
	"flag"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

func TestFlagsDescribeAService(t *testing.T) {
	args := []string{
		"--listen", ":7070", "--to", "http://127.0.0.1:9000", "--name", "payments", "--host", "payments.internal",
		"--require-key", "POST /charge", "--require-key", "POST /refund", "--accept-key", "PUT /orders/", "--scope", "header:X-Customer",
		"--store", "keys.db", "--upstream-keys", "--lease", "2m", "--retention", "48h",
		"--route", "GET /reports/", "--adaptive", "--attempts", "2", "--timeout", "20s", "--attempt-timeout", "none",
		"--connect-timeout", "1s", "--silence", "none", "--max-in-flight", "10", "--max-connections", "none",
		"--max-header", "8KiB", "--max-body", "1MiB", "--max-keyed-body", "2MiB", "--max-replay", "1KiB",
		"--tls-cert", "cert.pem", "--tls-key", "key.pem", "--ca", "ca.pem", "--trust", "10.0.0.0/8, ::1", "--admin", ":7071", "--drain", "5s",
	}
	q, err := parse(args, nil)
	if err != nil {
		t.Fatalf("parse(%q) = %v, want no error", args, err)
	}
	want := manifest.Proxy{
		Service: "payments", Listen: "127.0.0.1:7070", To: "http://127.0.0.1:9000", Host: "payments.internal",
		TLSCert: "cert.pem", TLSKey: "key.pem", CA: "ca.pem",
		Policy:         riprap.Policy{MaxAttempts: 2, Timeout: 20 * time.Second, AttemptTimeout: -1},
		ConnectTimeout: time.Second, Silence: -1, Adaptive: true, MaxReplay: 1 << 10,
		Routes:     []manifest.Route{{Match: "GET /reports/"}},
		RequireKey: []string{"POST /charge", "POST /refund"}, AcceptKey: []string{"PUT /orders/"}, Scope: "header:X-Customer",
		UpstreamKeys: true, Lease: 2 * time.Minute, Retention: 48 * time.Hour, MaxKeyedBody: 2 << 20,
		Trust:     []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		MaxHeader: 8 << 10, MaxBody: 1 << 20, MaxConnections: -1, MaxInFlight: 10,
	}
	if !reflect.DeepEqual(q.proxy, want) {
		t.Errorf("parse(%q):\ngot  %+v\nwant %+v", args, q.proxy, want)
	}
	if want := (manifest.Proxying{Admin: "127.0.0.1:7071", Store: "keys.db", Drain: 5 * time.Second}); q.own != want || q.file != "" {
		t.Errorf("parse(%q): got %+v and file %q, want %+v and no file", args, q.own, q.file, want)
	}
}

func TestNobodyIsTrustedIfNoneIs(t *testing.T) {
	q, err := parse([]string{"--listen", ":0", "--to", "http://a", "--trust", "none"}, nil)
	if err != nil || q.proxy.Trust == nil || len(q.proxy.Trust) > 0 {
		t.Errorf("parse(--trust none): got %#v, %v, want an empty list, which is not the default", q.proxy.Trust, err)
	}
}

func TestWithoutFlagsAFileDescribesTheServices(t *testing.T) {
	for _, test := range []struct {
		args []string
		want request
	}{
		{nil, request{file: "riprap.yaml"}},
		{[]string{"shop.yaml"}, request{file: "shop.yaml"}},
		{[]string{"--admin", "none", "shop.yaml", "--drain", "none", "--store", "x.db"}, request{file: "shop.yaml", own: manifest.Proxying{Admin: "none", Store: "x.db", Drain: -1}}},
		{[]string{"--", "-shop.yaml"}, request{file: "-shop.yaml"}},
	} {
		q, err := parse(test.args, nil)
		if err != nil || q.file != test.want.file || q.own != test.want.own {
			t.Errorf("parse(%q) = %+v, %v, want %+v", test.args, q, err, test.want)
		}
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	usual := []string{"--listen", ":0", "--to", "http://a"}
	keyed := append(usual, "--require-key", "POST /charge", "--scope", "single-tenant")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--to", "http://a"}, "--listen is missing"},
		{[]string{"--listen", ":0"}, "--to is missing"},
		{[]string{"--listen", "7070", "--to", "http://a"}, `--listen "7070": want HOST:PORT, such as 127.0.0.1:7070`},
		{[]string{"--listen", "http://127.0.0.1:7070", "--to", "http://a"}, "want HOST:PORT, not a URL"},
		{[]string{"--listen", ":65536", "--to", "http://a"}, `want a port from 0 to 65535, got "65536"`},
		{append(usual, "--admin", "7071"), `--admin "7071": want HOST:PORT`},
		{append(usual, "--admin", "off"), `--admin "off": want HOST:PORT, such as 127.0.0.1:7070, or none`},
		{append(usual, "--require-key", "POST /charge"), "--scope is missing"},
		{append(usual, "--accept-key", "POST /charge"), "--scope is missing"},
		{append(usual, "--require-key", "POST charge"), "want METHOD /PATH"},
		{append(usual, "--require-key", "GET /charge"), "a GET needs no key"},
		{append(usual, "--route", "GET reports"), "want METHOD /PATH"},
		{append(usual, "--route", "GET /a", "--route", "GET /a"), `--route: pattern "GET /a" is there twice`},
		{append(usual, "--route", "/{a}/b", "--route", "/b/{a}"), `--route: pattern "/b/{a}" conflicts with "/{a}/b": some requests match both`},
		{append(keyed, "--accept-key", "POST /charge"), `--accept-key: pattern "POST /charge" is there twice`},
		{append(keyed, "--accept-key", "/{a}/b", "--accept-key", "PATCH /b/{a}"), `pattern "PATCH /b/{a}" conflicts with "/{a}/b"`},
		{append(usual, "--scope", "single-tenant"), "--scope is about keys, and no request has one"},
		{append(usual, "--store", "x.db"), "--store is about keys"},
		{append(usual, "--lease", "1m"), "--lease is about keys"},
		{append(usual, "--require-key", "POST /charge", "--scope", "header:X Customer"), "no field has such a name"},
		{append(usual, "--require-key", "POST /charge", "--scope", "header:"), "no field has such a name"},
		{append(keyed, "--store", ""), "--store is empty"},
		{append(keyed, "--lease", "0s"), "want more than nothing"},
		{append(keyed, "--retention", "1d"), "want a duration"},
		{append(usual, "--timeout", "5"), "did you mean 5s?"},
		{append(usual, "--timeout", "soon"), "10s or 1m30s, or none"},
		{append(usual, "--timeout", "-5s"), "want more than nothing"},
		{append(usual, "--drain", "0s"), "want more than nothing"},
		{append(usual, "--attempts", "0"), "want a whole number from 1 on, or none"},
		{append(usual, "--max-in-flight", "1e3"), "want a whole number from 1 on, or none"},
		{append(usual, "--max-body", "12"), "a number without a unit"},
		{append(usual, "--trust", "10.0.0.0/33"), `"10.0.0.0/33" is no network`},
		{append(usual, "--tls-cert", "x"), "--tls-cert and --tls-key belong together"},
		{append(usual, "--tls-key", "x"), "--tls-cert and --tls-key belong together"},
		{append(usual, "--name", "a\nb"), "want a name that can be printed"},
		{append(usual, "--name", ""), "want a name that can be printed"},
		{append(usual, "riprap.yaml"), "--listen beside a file"},
		{[]string{"--adaptive", "riprap.yaml"}, "--adaptive beside a file"},
		{[]string{"a.yaml", "b.yaml"}, `unexpected argument "b.yaml"`},
		{[]string{"-"}, "stdin cannot be"},
		{[]string{""}, "got an empty one"},
		{[]string{"--lisen", ":0"}, "did you mean --listen?"},
		{[]string{"--requirekey=x"}, "did you mean --require-key?"},
	} {
		if q, err := parse(test.args, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("parse(%q) = %+v, %v, want an error with %q", test.args, q, err, test.want)
		} else if strings.Contains(err.Error(), ".go:") || strings.Contains(err.Error(), "?,") {
			t.Errorf("parse(%q) = %v, want words for people", test.args, err)
		}
	}
}

func TestHelpShowsEachFlag(t *testing.T) {
	var help strings.Builder
	q, err := parse([]string{"-h"}, &help)
	if !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("parse(-h) = %+v, %v, want flag.ErrHelp", q, err)
	}
	new(request).flags().VisitAll(func(f *flag.Flag) {
		if !strings.Contains(help.String(), "\n  -"+f.Name+" ") && !strings.Contains(help.String(), "\n  -"+f.Name+"\n") {
			t.Errorf("help: nothing of -%s in\n%s", f.Name, &help)
		}
	})
}

func FuzzWhatIsTypedIsRefusedOrUnderstood(f *testing.F) {
	f.Add("--listen=:0\n--to=http://a\n--require-key=POST /x\n--scope=single-tenant")
	f.Add("--trust=10.0.0.0/8,none\n--max-body=9223372036854775807GiB\nfile")
	f.Fuzz(func(t *testing.T, typed string) {
		q, err := parse(strings.Split(typed, "\n"), &strings.Builder{})
		if err != nil {
			return
		}
		if (q.file == "") == (q.proxy.Listen == "") {
			t.Errorf("parse(%q): file %q and listen %q, want one of them", typed, q.file, q.proxy.Listen)
		}
		if q.proxy.MaxBody < -1 || q.proxy.Policy.Timeout < -1 || q.own.Drain < -1 {
			t.Errorf("parse(%q): %+v, want nothing below -1", typed, q)
		}
	})
}
