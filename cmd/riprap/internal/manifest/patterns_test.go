package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func TestAPatternIsOneThatSomethingCanMatch(t *testing.T) {
	for pattern, want := range map[string]string{
		"POST /charge": "", "/static/": "", "PUT /cards/{id}": "", "GET /{path...}": "", "POST /a b": "", "/{$}": "",
		"PROPFIND /d": "", "MKCOL /d": "", "COPY /d": "", "MOVE /d": "", "LOCK /d": "", "UNLOCK /d": "", "REPORT /d": "", "SEARCH /d": "", "PURGE /d": "", "LINK /d": "", "QUERY /d": "",
		"charge":                "want METHOD /PATH",
		"":                      "want METHOD /PATH",
		"POST charge":           "want METHOD /PATH",
		"POST h.example/a":      "want METHOD /PATH",
		"POST /a\x1b[31m":       "want METHOD /PATH",
		"/a\u202eb":             "want METHOD /PATH",
		"post /charge":          "did you mean the method POST?",
		"POTS /charge":          "did you mean the method POST?",
		"DELTE /charge":         "did you mean the method DELETE?",
		"mkcol /d":              "want MKCOL",
		"/a{b":                  "wildcards are whole segments",
		"/{a}/{a}":              "no pattern that can be looked for",
		"POST /a//b":            "no pattern that can be looked for",
		"P(UX /a":               "no pattern that can be looked for",
		"GET /" + repeat("{x}"): "no pattern that can be looked for",
	} {
		err := CheckPattern(pattern)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("CheckPattern(%q) = %v, want %q", pattern, err, want)
		}
	}
}

func repeat(s string) string { return strings.Repeat(s, 3) }

func TestAPatternThatConflictsIsAnErrorAtItsLine(t *testing.T) {
	for block, want := range map[string]string{
		"requireKey: [\"POST /a/{x}\"]\n      acceptKey: [\"POST /{y}/b\"]":   `7:19: pattern "POST /{y}/b" conflicts with "POST /a/{x}": some requests match both, and neither is the more specific one`,
		"requireKey: [/charge]\n      acceptKey: [PUT /refund, POST /charge]": `7:32: pattern "POST /charge" conflicts with "/charge": some requests match both, and neither is the more specific one`,
		"requireKey: [POST /charge, POST /charge]":                            `6:34: pattern "POST /charge" is there twice`,
		"requireKey: [/a//b]":                                                        `6:20: pattern "/a//b" can match nothing: want a path without //, . and .. in it`,
		"routes: [\"/a/{x}\", {match: \"/{y}/b\"}]":                                  `6:34: pattern "/{y}/b" conflicts with "/a/{x}": some requests match both, and neither is the more specific one`,
		"routes: [/charge, POST /charge]":                                            "", // the second one is more specific
		"requireKey: [POST /charge]\n      routes: [/charge, POST /charge]":          "",
		"requireKey: [\"POST /a/{x}\"]\n      routes: [\"POST /{y}/b\"]":             "", // each answers a question of its own
		"requireKey: [\"POST /cards/{id}\", POST /cards/new, \"PUT /cards/{card}\"]": "",
	} {
		text := "services:\n  payments:\n    proxy:\n      listen: 127.0.0.1:7070\n      to: http://127.0.0.1:9000\n      " + block + "\n      scope: single-tenant\n"
		if got := wrong(text); got != want {
			t.Errorf("%s: got %s, want %s", block, got, want)
		}
	}
}

func TestPatternsAreBounded(t *testing.T) {
	var list strings.Builder
	for i := range mostPatterns + 1 {
		fmt.Fprintf(&list, "{match: '/{x%d}/%d/{y...}'}, ", i, i)
	}
	text := `services: {a: {proxy: {listen: "h:1", to: "http://h", routes: [` + list.String() + `]}}}`
	if got := wrong(text); !strings.HasSuffix(got, "over 1000 patterns, which is too much for one proxy") || strings.Count(got, "\n") > 0 {
		t.Errorf("%d patterns: got %s, want one too many", mostPatterns+1, got)
	}
}
