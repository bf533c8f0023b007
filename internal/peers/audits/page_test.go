package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample returns the results under testdata, which are made by hand: three audits of two clients.
func sample(t *testing.T) []result {
	t.Helper()
	var all []result
	for _, name := range []string{"got-default", "got-docs", "net-http-default"} {
		r, err := read(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func page(t *testing.T, results []result) string {
	t.Helper()
	var b strings.Builder
	writePage(&b, results, "a machine")
	return b.String()
}

func TestThePageShowsWhatWasFound(t *testing.T) {
	got := page(t, sample(t))
	for _, want := range []string{
		// the date, and the machine
		"saw it from 2026-03-01 to 2026-03-02 (a machine)",
		// the clients
		"| [got](#got) | got 1.0, Node 2.0 | default | `got(url, {method, headers, body})` | [got, Retry API]",
		"|  |  | docs | `retry: {limit: 5}`, `timeout: {request: 10000}` | [got, Quick Start Guide]",
		// a table for each configuration, with only those that have it
		"### By default\n\n| rule | got | Go net/http |\n|---|:---:|:---:|\n| waits differ \\| from run to run | ✓ | – |\n| it stops | [✗](#bounded) | ? |\n",
		"### As the documentation configures retries\n\n| rule | got |\n|---|:---:|\n| waits differ \\| from run to run | ✓ |\n| it stops | ✓ |\n",
		// what each does well
		"* **default**: keeps 1 of the 2 rules that apply: waits differ | from run to run.\n",
		"* **docs**: keeps 2 of the 2 rules that apply: waits differ | from run to run · it stops.\n",
		"* **default**: keeps 0 of the 1 rules that apply. Inconclusive: it stops (the machine was busy).\n",
		// the findings, with the reason once and not more evidence than a reader wants
		"### bounded\n\nThe rule: it stops. Why: a \\<b> \\*never\\* ends. What to change: set a timeout. Source: RFC 0, § 1.\n\n" +
			"* **got**, default: not over after 30 s\n  * `0.000 s GET`\n  * `1.000 s GET 'x'`\n  * `2.000 s GET`\n  * and 2 more like these\n",
		"riprap audit -- node client.js got default {url}\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}

func TestThePageHasNoSectionForARuleThatEveryoneKept(t *testing.T) {
	if got := page(t, sample(t)); strings.Contains(got, "### jitter") {
		t.Errorf("the page has a section for the rule jitter, which nobody broke:\n%s", got)
	}
}

func TestEveryLinkWithinThePageLeadsToAHeading(t *testing.T) {
	got := page(t, sample(t))
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(got, -1) {
		anchors = append(anchors, anchor(heading[1]))
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(got, -1)
	if len(links) == 0 {
		t.Error("the page has no links")
	}
	for _, link := range links {
		if !slices.Contains(anchors, link[1]) {
			t.Errorf("#%s leads to none of %q", link[1], anchors)
		}
	}
}

func TestAReportThatCannotBeTrustedIsRefused(t *testing.T) {
	for _, printed := range []string{
		``,
		`{}`,
		`{"started": "2026-03-01T00:00:00Z", "rules": []}`,
		`{"started": "2026-03-01T00:00:00Z", "rules": [{"id": "jitter", "verdict": "maybe"}]}`,
		`{"rules": [{"id": "jitter", "verdict": "pass"}]}`,
	} {
		if _, err := parse([]byte(printed)); err == nil {
			t.Errorf("parse(%q) gave no error", printed)
		}
	}
}

func TestAResultIsTakenOnlyForTheSameAudit(t *testing.T) {
	kept := sample(t)[0]
	if !kept.fits(kept) {
		t.Errorf("%+v is not of itself", kept)
	}
	for name, change := range map[string]func(*result){
		"riprap":   func(r *result) { r.Riprap = "other" },
		"versions": func(r *result) { r.Versions = "got 1.1, Node 2.0" },
		"command":  func(r *result) { r.Command += " {body}" },
		"post":     func(r *result) { r.Post = "other" },
		"keyed":    func(r *result) { r.Keyed = "other" },
		"flags":    func(r *result) { r.Flags = "--calls 7" },
	} {
		want := kept
		change(&want)
		if kept.fits(want) {
			t.Errorf("a result is taken for an audit with another %s", name)
		}
	}
}

func TestAKeptResultIsReadAsItWas(t *testing.T) {
	t.Chdir(t.TempDir())
	want := resultToKeep(t)
	if err := want.keep(); err != nil {
		t.Fatal(err)
	}
	got, err := read(want.file())
	if err != nil {
		t.Fatal(err)
	}
	if !got.fits(want) || len(got.report.Rules) != 1 || !got.taken {
		t.Errorf("read(%q) = %+v, want %+v", want.file(), got, want)
	}
	if _, err := read(resultsDir + "/none.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
}

func resultToKeep(t *testing.T) result {
	t.Helper()
	r := result{Peer: "got", Configuration: defaults, Versions: "v", Riprap: "r", Command: "c",
		Report: []byte(`{"started": "2026-03-01T00:00:00Z", "rules": [{"id": "jitter", "verdict": "pass"}]}`)}
	var err error
	if r.report, err = parse(r.Report); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryPeerHasWhatThePageShows(t *testing.T) {
	for _, p := range peers {
		if p.title == "" || p.about == "" || p.versions == nil || len(p.configurations) == 0 {
			t.Errorf("peer %q lacks something: %+v", p.name, p)
		}
		for i, c := range p.configurations {
			command := strings.Join(c.command, " ")
			if want := []string{defaults, docs}[i]; c.name != want {
				t.Errorf("configuration %d of %s is %q, want %q", i, p.name, c.name, want)
			}
			if c.set == "" || c.source == "" || !strings.Contains(command, "{url}") {
				t.Errorf("%s, %s lacks something: %+v", p.name, c.name, c)
			}
			for _, line := range []string{c.post, c.keyed} {
				if line != "" && (!strings.Contains(line, "{url}") || !strings.Contains(line, "{body}")) {
					t.Errorf("%s, %s: %q lacks {url} or {body}", p.name, c.name, line)
				}
			}
			if takesMethod := strings.Contains(command, "{method}"); takesMethod == (c.post != "") {
				t.Errorf("%s, %s: %q and --post %q: want one of {method} and --post", p.name, c.name, command, c.post)
			}
		}
	}
}

func TestClientsAreNotSentThroughAProxy(t *testing.T) {
	got := environment([]string{"PATH=/bin", "http_proxy=a", "HTTPS_PROXY=b", "no_proxy=c", "NODE_OPTIONS=d", "HOME=/h"})
	if want := []string{"PATH=/bin", "HOME=/h"}; !slices.Equal(got, want) {
		t.Errorf("environment() = %q, want %q", got, want)
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	for heading, want := range map[string]string{
		"curl":                "curl",
		"Go net/http":         "go-nethttp",
		"axios + axios-retry": "axios--axios-retry",
	} {
		if got := anchor(heading); got != want {
			t.Errorf("anchor(%q) = %q, want %q", heading, got, want)
		}
	}
}
