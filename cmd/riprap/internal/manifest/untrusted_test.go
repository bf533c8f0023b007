package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/riprap-go/riprap/chain"
)

// bombs are small files that stand for very much, and files that are very deep.
func bombs() map[string]string {
	var merges, lists strings.Builder
	merges.WriteString("x-0: &m0 {limit: 3s}\n")
	for i := range 40 {
		fmt.Fprintf(&merges, "x-%d: &m%d {<<: [*m%d, *m%d]}\n", i+1, i+1, i, i)
	}
	merges.WriteString("services: {a: *m40}\n")

	lists.WriteString("services:\n  a0:\n    calls: &calls [")
	for range 1000 {
		lists.WriteString("{}, ")
	}
	lists.WriteString("]\n")
	for i := range 1000 {
		fmt.Fprintf(&lists, "  a%d: {calls: *calls}\n", i+1)
	}

	var laughs strings.Builder
	laughs.WriteString("x-0: &l0 [lol]\n")
	for i := range 30 {
		fmt.Fprintf(&laughs, "x-%d: &l%d [*l%d, *l%d, *l%d, *l%d]\n", i+1, i+1, i, i, i, i)
	}
	laughs.WriteString("services: {a: {calls: *l30}}\n")

	var calls strings.Builder
	calls.WriteString("services: {b: &b {calls: [&c {to: b, policy: &p {maxAttempts: 2}}" + strings.Repeat(", *c", 1<<14) + "]}")
	for i := range 50 {
		fmt.Fprintf(&calls, ", c%d: *b", i)
	}

	keys := "services: {a: &a {" + strings.Repeat("x: 1, ", 1000) + "}"
	for i := range 1000 {
		keys += fmt.Sprintf(", b%d: {<<: *a}", i)
	}
	return map[string]string{
		"merges of merges": merges.String(), "a list in many places": lists.String(), "lists of lists": laughs.String(), "keys in many places": keys + "}",
		"deep lists": strings.Repeat("[", 1<<17), "deep mappings": strings.Repeat("{a: ", 1<<15), "deep blocks": strings.Repeat("- ", 1<<16),
		"lists that end":            "services: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"one call, again and again": calls.String() + "}",
	}
}

func TestAliasesAndDepthAreBounded(t *testing.T) {
	for name, text := range bombs() {
		r := read("f", []byte(text))
		if r.keys > most+2000 { // each of so many services may still count one
			t.Errorf("%s: read %d keys, want little more than %d", name, r.keys, most)
		}
		if name == "merges of merges" {
			if len(r.errs) > 0 || r.Chain.Services[0].Limit == 0 {
				t.Errorf("%s: got %v, want what they come to, which is little", name, r.errs)
			}
			continue
		}
		if list := Errors(r.errs); len(list) == 0 || len(list) > mostErrors || len(list.Error()) > 20_000 {
			t.Errorf("%s: got %d errors, %.200v, want some", name, len(list), list)
		}
	}
	if _, err := Parse("f", []byte(bombs()["a list in many places"])); !strings.Contains(fmt.Sprint(err), "a call without") {
		t.Errorf("got %.200v, want the calls without to", err)
	}
	if got := wrong(bombs()["one call, again and again"]); !strings.Contains(got, "that is too much") {
		t.Errorf("got %.200s, want that it is too much", got)
	}
}

// endless is a file without an end, and counts what was read of it.
type endless int

func (e *endless) Read(p []byte) (int, error) {
	*e += endless(len(p))
	return copy(p, strings.Repeat("#", len(p))), nil
}

func TestWhatIsNoSmallFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 100<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(large, nil); err == nil || !strings.HasSuffix(err.Error(), "large.yaml: over 1024 KiB, which no description of services is") {
		t.Errorf("Read of 100 MiB: got %v, want that it is too large", err)
	}
	var e endless
	if _, err := Read("-", &e); err == nil || e > 4*Largest {
		t.Errorf("Read of an endless stdin: got %v after %d bytes, want an error after a MiB", err, e)
	}
	if _, err := Read(dir, nil); err == nil || !strings.Contains(err.Error(), dir+": ") || strings.Count(err.Error(), dir) != 1 {
		t.Errorf("Read of a folder: got %v, want an error that names it once", err)
	}
	if _, err := Read(filepath.Join(dir, "none.yaml"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of what is not there: got %v, want fs.ErrNotExist", err)
	}
	if _, err := Read("-", io.MultiReader(strings.NewReader("services: {a: }"), broken{})); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Read of a stdin that breaks: got %v, want why", err)
	}
	f, err := Read("-", strings.NewReader("services: {a: }"))
	if err != nil || f.Name != "stdin" || len(f.Chain.Services) != 1 {
		t.Errorf("Read of stdin: got %+v, %v, want one service of stdin", f, err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

func FuzzEveryErrorHasItsPlace(f *testing.F) {
	f.Add("x-a: &a {limit: 3s}\nx-b: &b {<<: [*a, *a]}\nservices: {a: *b, c: {calls: &c [{to: a}]}, d: {calls: *c}}\n")
	f.Add("proxy: {admin: none, drain: 3s}\nservices: {a: {proxy: {listen: 'h:1', to: 'http://h', routes: [/x, {match: /y, policy: {budget: none}}], requireKey: [POST /c], scope: single-tenant, trust: ['::/0'], maxBody: 1KiB}}}\n")
	f.Add("services: {a: {lease: 1s, proxy: {listen: 'h:1', to: 'http://u:p@h:0', host: a b, routes: ['/a/{x}', '/{y}/b', post /x], acceptKey: [/c, POST /c, GET /]}}, a (proxy): , b: {proxy: {listen: ':1', to: 'h2c://h'}}, c: {proxy: {listen: '[::]:01', to: 'http://h', maxHeader: 1e3KiB}}}\n")
	f.Add("services:\n  a: {proxy: {listen: ':0', to: 'https://h', adaptive: true, connectTimeout: none, policy: {timeout: 3s, maxAttempts: none}, upstreamKeys: true, maxInFlight: none, trust: none, tlsCert: c, tlsKey: k}}\n")
	f.Add("x: &a {<<: *a}\nservices:\n  a: {limit: 3s, calls: [{to: b, policy: {backoff: {jitter: none}}}]}\n")
	f.Add("services:\r\n\ta: \"\\e\u2028\xff\n...\n---\n%YAML 1.2\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text))
		if err == nil {
			for _, s := range file.Chain.Services {
				if s.Limit < 0 || s.Lease < 0 || s.Retention < 0 || s.Name == "" {
					t.Errorf("got the service %+v", s)
				}
				for i, c := range s.Calls {
					p := c.Policy
					if c.To == "" || c.P99 < 0 || p.Timeout < -1 || p.MaxAttempts < -1 || p.Backoff.Base < 0 || p.Backoff.Max < 0 ||
						p.Backoff.Factor != 0 && !(p.Backoff.Factor >= 1) {
						t.Errorf("got the call %+v", c)
					}
					at := file.Place("services", s.Name, "calls", fmt.Sprint(i), "to")
					if at.Line < 1 || at.Column < 1 || at.Line > len(file.source.lines) {
						t.Errorf("the call %+v is at %+v", c, at)
					}
				}
			}
			sound(t, file)
			return
		}
		list, ok := errors.AsType[Errors](err)
		if !ok || len(list) == 0 {
			t.Fatalf("got %v, want Errors", err)
		}
		lines := split("f", text).lines
		for _, e := range list {
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+1 {
				t.Errorf("%d:%d of %q: no such place: %s", e.Line, e.Column, text, e.Message)
			}
			if shown := strings.Count(e.Excerpt, "\n") == 2 && strings.Contains(e.Excerpt, "^"); e.Message == "" || !shown && (e.Excerpt != "" || !strings.HasPrefix(e.Message, "to: ")) {
				t.Errorf("got the error %+v", e)
			}
			for _, c := range e.Error() {
				if c != '\n' && printable(c) != c {
					t.Errorf("%q would be printed by %q", c, e.Error())
				}
			}
		}
	})
}

// sound fails if a proxy of a file is one that no proxy could be.
func sound(t *testing.T, f *File) {
	t.Helper()
	for i := range f.Proxies {
		p := &f.Proxies[i]
		if p.Service == "" || p.Listen == "" || p.To == "" || (p.TLSCert == "") != (p.TLSKey == "") || p.keepsKeys() && p.Scope == "" {
			t.Errorf("got the proxy %+v", p)
		}
		if p.MaxHeader < 0 || p.MaxKeyedBody < 0 || p.MaxAnswer < 0 || p.MaxBody < -1 || p.MaxReplay < -1 || p.MaxConnections < -1 || p.MaxInFlight < -1 ||
			p.ConnectTimeout < -1 || p.Silence < -1 || p.Policy.Latency != nil {
			t.Errorf("got the limits %+v", p)
		}
		keys, routes := newPatterns(UnsafeMethods), newPatterns(nil)
		for _, pattern := range append(p.RequireKey, p.AcceptKey...) {
			if err := cmp.Or(CheckPattern(pattern), keys.add(pattern)); err != nil {
				t.Errorf("got the pattern for keys %q, but %v", pattern, err)
			}
		}
		for _, r := range p.Routes {
			if err := cmp.Or(CheckPattern(r.Match), routes.add(r.Match)); err != nil {
				t.Errorf("got the route %q, but %v", r.Match, err)
			}
		}
		front := f.service(Hop(p).Name)
		if front == nil || f.service(p.Service) == nil || len(front.Calls) == 0 {
			t.Errorf("%q is not in the chain with its proxy: %+v", p.Service, f.Chain)
			continue
		}
		for call, c := range front.Calls {
			if c.To != p.Service || c.Policy.MaxAttempts == 0 || c.Policy.Timeout == 0 || c.Policy.AttemptTimeout == 0 || p.route(call) >= len(p.Routes) {
				t.Errorf("the proxy of %q makes the call %+v", p.Service, c)
			}
			at := f.FindingPlace(chain.Finding{Service: front.Name, Call: call, Field: "policy.timeout"})
			if at.Line < 1 || at.Column < 1 || at.Line > len(f.source.lines) {
				t.Errorf("call %d of %q is at %+v", call, front.Name, at)
			}
		}
	}
	for _, finding := range chain.Check(&f.Chain) {
		if at := f.FindingPlace(finding); at.Line < 1 || at.Column < 1 || at.Line > len(f.source.lines) {
			t.Errorf("%+v is at %+v", finding, at)
		}
	}
}

// service finds one of the chain.
func (f *File) service(name string) *chain.Service {
	for i := range f.Chain.Services {
		if f.Chain.Services[i].Name == name {
			return &f.Chain.Services[i]
		}
	}
	return nil
}
