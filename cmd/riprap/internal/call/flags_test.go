package call

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

func TestArgumentsThatMakeNoSenseAreUsageErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	tests := []struct {
		args []string
		want string
	}{
		{nil, "want a URL"},
		{[]string{"a", "b"}, "want one URL, got 2 arguments that are no flags: a value with blanks needs quotes"},
		{[]string{"ftp://h.test"}, "the URL begins with neither http:// nor https://"},
		{[]string{"http://"}, "the URL has no host"},
		{[]string{"http://:80"}, "the URL has no host"},
		{[]string{"http://h.test:x"}, "the URL makes no sense (it may hold secrets and is not shown)"},
		{[]string{"h.test/%zz"}, "the URL makes no sense (it may hold secrets and is not shown)"},
		{[]string{"h.test", "--timout", "3s"}, "no flag --timout: did you mean --timeout?"},
		{[]string{"h.test", "--att=3"}, "no flag --att: did you mean --attempts?"},
		{[]string{"h.test", "--frobnicate"}, "no flag --frobnicate"},
		{[]string{"h.test", "-timeout", "3s"}, "no flag -timeout: did you mean --timeout?"},
		{[]string{"h.test", "-q"}, "no flag -q"},
		{[]string{"h.test", "-k"}, "no flag -k: certificates are always checked"},
		{[]string{"h.test", "-sk"}, "no flag -k: certificates are always checked"},
		{[]string{"h.test", "-uuser:p4ss"}, "no flag -u: write user:password@ in front of the host"},
		{[]string{"h.test", "--retry", "3"}, "no flag --retry: --attempts counts the first try too"},
		{[]string{"h.test", "--data-binary", "@x"}, "no flag --data-binary: -d sends a file as it is"},
		{[]string{"h.test", "-As3cret"}, "no flag -A: it is -H 'User-Agent: …' here"},
		{[]string{"h.test", "-sb", "s3cret"}, "no flag -b: it is -H 'Cookie: …' here"},
		{[]string{"h.test", "-G"}, "no flag -G: write the query into the URL"},
		{[]string{"h.test", "-T", "x"}, "no flag -T: it is -X PUT -d @FILE here"},
		{[]string{"h.test", "-O"}, "no flag -O: it is -o FILE here"},
		{[]string{"h.test", "-w%{http_code}"}, "no flag -w: --json says on stderr what came back, its status too"},
		{[]string{"h.test", "-v"}, "no flag -v: stderr says what came of each attempt, and -i prints the header"},
		{[]string{"h.test", "--compressed"}, "no flag --compressed: a body comes as it was sent; ask with -H 'Accept-Encoding: gzip' and unpack it"},
		{[]string{"--json", "{}", "h.test"}, "want one URL, got 2 arguments that are no flags: --json takes no value, " +
			"JSON is sent by -d '…' -H 'Content-Type: application/json'"},
		{[]string{"h.test", "-H"}, "-H, --header: want a value"},
		{[]string{"h.test", "--key"}, "--key: want a value"},
		{[]string{"h.test", "--json=maybe"}, "--json: it takes no value"},
		{[]string{"h.test", "---"}, "a flag is written -x or --name"},
		{[]string{"h.test", "--attempts", "0"}, `--attempts "0": want a number from 1 on, or none`},
		{[]string{"h.test", "--attempts", "many"}, `--attempts "many": want a number from 1 on, or none`},
		{[]string{"h.test", "--budget", "-1"}, `--budget "-1": want a number from 1 on, or none`},
		{[]string{"h.test", "-m", "5"}, `-m, --timeout "5": did you mean 5s? Want a duration, or none`},
		{[]string{"h.test", "-m", "-5s"}, `-m, --timeout "-5s": want a duration such as 500ms, 10s or 1m30s, or none`},
		{[]string{"h.test", "--max-wait", "0"}, `--max-wait "0": want more than nothing, or none`},
		{[]string{"h.test", "--backoff", "1s"}, `--backoff "1s": did you mean 1s..10s? Want the wait at first and at most`},
		{[]string{"h.test", "--backoff", "20s"}, `--backoff "20s": did you mean 20s..20s? Want the wait at first and at most`},
		{[]string{"h.test", "--backoff", "fast"}, `--backoff "fast": want the wait at first and at most, such as 500ms..10s`},
		{[]string{"h.test", "--backoff", "10s..1s"}, `--backoff "10s..1s": did you mean 1s..10s? The first wait is above the longest`},
		{[]string{"h.test", "--backoff", "0..1s"}, `--backoff "0..1s": a wait of nothing at first would not grow: want more, such as 500ms..10s`},
		{[]string{"h.test", "--backoff", "1..2s"}, `--backoff "1..2s": did you mean 1s? Want a duration`},
		{[]string{"h.test", "--backoff", "1s..x"}, `--backoff "1s..x": want a duration such as 500ms, 10s or 1m30s`},
		{[]string{"h.test", "--jitter", "ful"}, `--jitter "ful": did you mean full?`},
		{[]string{"h.test", "--jitter", "deco"}, `--jitter "deco": did you mean decorrelated?`},
		{[]string{"h.test", "--jitter", "always"}, `--jitter "always": want full, equal, decorrelated or none`},
		{[]string{"h.test", "--key", ""}, "--key: want auto or a value"},
		{[]string{"h.test", "--key", "a\nb"}, "--key: a header cannot hold this value"},
		{[]string{"h.test", "--key", "a", "-H", "idempotency-key: b"}, "--key: -H has one already"},
		{[]string{"h.test", "-H", "A: 1", "-H", "s3cret"}, "-H, the header number 2: want 'Name: value'"},
		{[]string{"h.test", "-H", "A b: 1"}, "-H, the header number 1: want 'Name: value'"},
		{[]string{"h.test", "-H", "A: s3cret\r\nB: 1"}, "-H A: a header cannot hold this value"},
		{[]string{"h.test", "-H", "content-length: 3"}, "-H Content-Length: it follows from the body"},
		{[]string{"h.test", "-X", "post"}, "-X post: did you mean POST? Methods are not the same in small letters"},
		{[]string{"h.test", "-X", "GET IT"}, `-X "GET IT": want a method`},
		{[]string{"h.test", "-X", ""}, `-X "": want a method`},
		{[]string{"h.test", "-I", "-X", "GET"}, "-I and -X exclude each other: -I is -X HEAD -i"},
		{[]string{"h.test", "-I", "-d", "x"}, "-I and -d exclude each other: a HEAD has no body"},
		{[]string{"h.test", "-S"}, "-S: errors are shown anyway, without -s"},
		{[]string{"h.test", "-o", ""}, "-o: want the name of a file"},
		{[]string{"h.test", "-d", "@"}, "-d @: want the name of a file behind @, or - for stdin"},
		{[]string{"h.test", "-d", "@-", "-d", "@-"}, "-d @-: stdin can be read only once"},
		{[]string{"h.test", "-d", "@" + missing}, "-d @FILE: open " + missing + ": no such file or directory"},
		{[]string{"h.test", "-d", "@."}, "-d @FILE: . is a directory"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			_, err := parse(t.Context(), tt.args, strings.NewReader(""))
			if err == nil || err.Error() != tt.want {
				t.Errorf("parse(%q): got error %v, want %s", tt.args, err, tt.want)
			}
		})
	}
}

func TestWrongUsagePrintsNothingAndSendsNothing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := Run(t.Context(), []string{"--jitter", "x"}, &stdout, &stderr)
	if _, ok := errors.AsType[*exit.UsageError](err); !ok || exit.Code(err) != 2 || stdout.Len()+stderr.Len() > 0 {
		t.Errorf("got error %v, stdout %q, stderr %q, want a usage error alone", err, &stdout, &stderr)
	}
}

func parsed(t *testing.T, args ...string) *order {
	t.Helper()
	o, err := parse(t.Context(), args, strings.NewReader("in"))
	if err != nil {
		t.Fatalf("parse(%q): got error %v, want none", args, err)
	}
	return o
}

func TestFlagsAreThoseOfCurlAndThePolicy(t *testing.T) {
	o := parsed(t, "-sSLi", "h.test:8080/a?b=c", "-XPUT", "-da=1", "-o", "out", "-m3s", "--attempts=7", "--attempt-timeout", "0",
		"--connect-timeout", "none", "--read-timeout", "1m", "--backoff", "1s..4s", "--jitter", "equal", "--max-wait", "none", "--budget", "none")
	if got := o.url.String(); got != "http://h.test:8080/a?b=c" {
		t.Errorf("got the URL %s, want the one given, by http", got)
	}
	if !o.silent || !o.errors || !o.follow || !o.include || o.method != "PUT" || o.file != "out" {
		t.Errorf("got %+v, want what the flags say", o)
	}
	want := riprap.Policy{
		MaxAttempts: 7, Timeout: -1, AttemptTimeout: -1, MaxWait: -1,
		Backoff: riprap.Backoff{Base: time.Second, Max: 4 * time.Second, Jitter: riprap.Equal},
		Budget:  &riprap.Budget{Ratio: math.Inf(1)},
	}
	if !reflect.DeepEqual(o.policy, want) {
		t.Errorf("got the policy %+v, want %+v", o.policy, want)
	}
	if o.timeout != 3*time.Second || o.connectTimeout != -1 || o.readTimeout != time.Minute {
		t.Errorf("got the bounds %v, %v, %v, want 3s, none, 1m", o.timeout, o.connectTimeout, o.readTimeout)
	}
}

func TestDefaultsAreThoseThatTheHelpNames(t *testing.T) {
	o := parsed(t, "https://h.test")
	got := []any{o.method, o.policy.MaxAttempts, o.timeout, o.policy.AttemptTimeout, o.connectTimeout, o.readTimeout, o.policy.Backoff, o.policy.MaxWait, o.retries}
	want := []any{"GET", 4, 30 * time.Second, 10 * time.Second, 2 * time.Second, 30 * time.Second,
		riprap.Backoff{Base: 500 * time.Millisecond, Max: 10 * time.Second}, time.Minute, 10}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	help := usage()
	for _, text := range []string{"(default 4)", "(default 30s)", "(default 10s)", "(default 2s)", "(default 500ms..10s)", "(default full)", "(default 1m)"} {
		if !strings.Contains(strings.Join(strings.Fields(help), " "), text) {
			t.Errorf("got no %q in\n%s", text, help)
		}
	}
}

func TestHelpShowsTheFlagsIn80Columns(t *testing.T) {
	for _, flag := range []string{"-h", "--help"} {
		var stdout, stderr bytes.Buffer
		if err := Run(t.Context(), []string{flag}, &stdout, &stderr); err != nil || stderr.Len() > 0 {
			t.Fatalf("riprap call %s: got error %v and stderr %q, want none", flag, err, &stderr)
		}
		if !strings.Contains(stdout.String(), "--attempt-timeout DURATION") {
			t.Errorf("riprap call %s: got no --attempt-timeout in\n%s", flag, &stdout)
		}
		for line := range strings.Lines(stdout.String()) {
			if n := len([]rune(strings.TrimRight(line, " \n"))); n > 80 {
				t.Errorf("riprap call %s: got a line of %d columns: %s", flag, n, line)
			}
		}
	}
}

func TestHeadersAreThoseOfCurl(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want http.Header
		host string
	}{
		{nil, http.Header{"Accept": {"*/*"}, "User-Agent": {"riprap"}}, ""},
		{[]string{"-H", "accept:text/plain", "-H", "X-A: 1", "-H", "x-a: 2"},
			http.Header{"Accept": {"text/plain"}, "User-Agent": {"riprap"}, "X-A": {"1", "2"}}, ""},
		{[]string{"-H", "Accept:", "-H", "User-Agent:", "-H", "X-Empty;"},
			http.Header{"User-Agent": {""}, "X-Empty": {""}}, ""},
		{[]string{"-H", "Host: other.test", "-d", "x"},
			http.Header{"Accept": {"*/*"}, "User-Agent": {"riprap"}, "Content-Type": {"application/x-www-form-urlencoded"}}, "other.test"},
		{[]string{"-H", "Content-Type: application/json", "-d", "x", "--key", "k1"},
			http.Header{"Accept": {"*/*"}, "User-Agent": {"riprap"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k1"}}, ""},
	} {
		o := parsed(t, append(tt.args, "h.test")...)
		if !reflect.DeepEqual(o.header, tt.want) || o.host != tt.host {
			t.Errorf("%q: got %v and the host %q, want %v and %q", tt.args, o.header, o.host, tt.want, tt.host)
		}
	}
}

func TestUserAndPasswordBecomeAHeaderAndLeaveTheURL(t *testing.T) {
	o := parsed(t, "http://u:p%40ss@h.test/x")
	user, password, _ := (&http.Request{Header: o.header}).BasicAuth()
	if user != "u" || password != "p@ss" || o.url.String() != "http://h.test/x" {
		t.Errorf("got %s, %s and %s, want u, p@ss and the URL without them", user, password, o.url)
	}
	o = parsed(t, "http://u:p@h.test/x", "-H", "Authorization: Bearer b")
	if got := o.header.Get("Authorization"); got != "Bearer b" {
		t.Errorf("got Authorization: %s, want the one given", got)
	}
}

func TestKeyIsOneForACallAndOnlyWhereItIsNeeded(t *testing.T) {
	for args, want := range map[string]string{"-d x --key auto": "made", "-d x --key mine": "mine", "--key auto": "", "--key mine": "mine"} {
		h := script(t, "503*2, 200")
		keys := map[string]bool{}
		r := inMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys[r.Header.Get("Idempotency-Key")] = true
			h.ServeHTTP(w, r)
		}), "URL "+args)
		made := len(keys) == 1 && !keys[""] && !keys["auto"]
		if r.code(t) != 0 || want == "made" && !made || want != "made" && (len(keys) != 1 || !keys[want]) {
			t.Errorf("%s: got exit code %d and the keys %v, want 0 and %q", args, r.code(t), keys, want)
		}
	}
	if a, b := parsed(t, "h.test", "--key", "auto"), parsed(t, "h.test", "--key", "auto"); a.autoKey == b.autoKey {
		t.Errorf("two calls got the same key")
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{"none", "0", "5", "1h2m3s", "1s..2s", "..", "-1s", "9223372036854775807ns", "1e9", "full", "deco"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var l limit
		if l.Set(text) == nil && l == 0 {
			t.Errorf("limit.Set(%q) = 0, which means the default", text)
		}
		var w wait
		if w.Set(text) == nil && w == 0 {
			t.Errorf("wait.Set(%q) = 0, which means the default", text)
		}
		var c count
		if c.Set(text) == nil && c == 0 {
			t.Errorf("count.Set(%q) = 0, which means the default", text)
		}
		var b backoff
		if b.Set(text) == nil && (b.Base <= 0 || b.Max < b.Base) {
			t.Errorf("backoff.Set(%q) = %v", text, b)
		}
		var j jitter
		if j.Set(text) == nil && j.String() != text {
			t.Errorf("jitter.Set(%q) = %v", text, j)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("A: 1", "http://h.test")
	f.Add("Host:", "u:p@h.test")
	f.Add("User-Agent;", "http://[::1%25en0]:1/")
	f.Fuzz(func(t *testing.T, header, address string) {
		o, err := parse(context.Background(), []string{"-H", header, "--", address}, nil)
		if err != nil {
			if len(address) > 8 && strings.Contains(err.Error(), address) {
				t.Errorf("the error shows the URL %q: %v", address, err)
			}
			return
		}
		for name, values := range o.header {
			if !isToken(name) || slices.ContainsFunc(values, func(v string) bool { return !isFieldValue(v) }) {
				t.Errorf("-H %q: got %q: %q", header, name, values)
			}
		}
	})
}
