package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// wrong are the errors of a text, one a line, without excerpts.
func wrong(text string) string {
	_, err := Parse("f", []byte(text))
	list, _ := errors.AsType[Errors](err)
	var lines []string
	for _, e := range list {
		lines = append(lines, fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message))
	}
	return strings.Join(lines, "\n")
}

// a is a file with one call, and what stands in it.
func a(call string) string { return "services: {a: {calls: [{to: b, " + call + "}]}}" }

func TestAnErrorSaysWhereItIsAndWhatWasMeant(t *testing.T) {
	const duration = "want a duration such as 500ms, 10s or 1m30s"
	tests := map[string]struct{ text, want string }{
		"nothing":                 {"", "1:1: there is nothing in it: want services and their calls"},
		"only a comment":          {"# services\n", "1:1: there is nothing in it: want services and their calls"},
		"an empty document":       {"---\n", "1:1: there is nothing in it: want services and their calls"},
		"text":                    {"hello", `1:1: the file: want a mapping, with a key and a value on each line, got "hello"`},
		"a list":                  {"- a\n", "1:1: the file: want a mapping, with a key and a value on each line, got a list"},
		"no services":             {"maxCalls: 3\n", `1:1: the file has no "services"`},
		"services of nothing":     {"services:\n", "1:10: services: want a mapping, with a key and a value on each line, got nothing"},
		"no service":              {"services: {}\n", "1:11: services: want one at least, got none"},
		"a second document":       {"services: {a: }\n---\nservices: {b: }\n", "2:1: a second document: want one in a file"},
		"behind the end":          {"services: {a: }\n...\nfoo: [\n", "3:6: not YAML: while parsing a flow node: did not find expected node content"},
		"a slip in a key":         {"services: {a: {limt: 3s}}", `1:16: a service has no key "limt", did you mean "limit"?`},
		"another style of key":    {a("policy: {max_attempts: 3}"), `1:41: a policy has no key "max_attempts", did you mean "maxAttempts"?`},
		"a key from elsewhere":    {"services: {a: {replicas: 3}}", `1:16: a service has no key "replicas": want limit, lease, retention, calls or proxy`},
		"a service twice":         {"services:\n  a:\n  b:\n  a: {limit: 3s}\n", `4:3: services has "a" twice, first in line 2`},
		"a key twice":             {"services: {a: {limit: 3s, limit: 3s}}", `1:27: a service has "limit" twice, first in line 1`},
		"no to":                   {"services: {a: {calls: [{keyed: true}]}}", `1:24: a call without "to", the name of the service called`},
		"services of no name":     {`services: {"": }`, `1:12: services: want a name for a key, got ""`},
		"services merged of text": {"services: {<<: 3}", `1:16: <<: want a mapping to merge, or a list of them, got "3"`},
		"services of nobody":      {"services: {<<: {}}", "1:11: services: want one at least, got none"},
		"no name for services":    {`"": {a: }`, `1:1: the file: want a name for a key, got ""`},
		"a slip in services":      {"servces: {a: }", `1:1: the file has no key "servces", did you mean "services"?`},
		"a slip in to":            {"services: {a: {calls: [{too: b}]}}", `1:25: a call has no key "too": want to, p99, idempotent, keyed or policy`},
		"no name for to":          {`services: {a: {calls: [{"": b}]}}`, `1:25: a call: want a name for a key, got ""`},
		"to nobody":               {"services: {a: {calls: [{to: }]}}", "1:29: to: want a name, got nothing"},
		"to a list":               {"services: {a: {calls: [{to: [b]}]}}", "1:29: to: want a name, got a list"},
		"calls of a mapping":      {"services: {a: {calls: {to: b}}}", "1:23: calls: want a list, with - to: NAME for each service called, got a mapping"},
		"a call that is a name":   {"services: {a: {calls: [b]}}", `1:24: a call: want a mapping, with a key and a value on each line, got "b"`},
		"no unit":                 {a("p99: 5"), "1:37: p99: a number without a unit, did you mean 5s?"},
		"a blank and a long unit": {a("p99: 5 secs"), "1:37: p99: no duration, did you mean 5s?"},
		"a day":                   {a("p99: 2 days"), "1:37: p99: no duration, did you mean 48h?"},
		"less than nothing":       {a("p99: -5s"), "1:37: p99: " + duration + ", got less than nothing"},
		"zero":                    {a("policy: {timeout: 0}"), "1:50: timeout: zero is nothing that could be meant: leave it out for the default, or write none for no limit"},
		"no zero where no none":   {a("p99: 0s"), "1:37: p99: zero is nothing that could be meant: leave it out for the default"},
		"three hundred years":     {a("p99: 2700000h"), "1:37: p99: more than 292 years, which is too much"},
		"no duration":             {a("policy: {maxWait: long}"), "1:50: maxWait: " + duration + `, or none, got "long"`},
		"none for a lease":        {"services: {a: {lease: none}}", "1:23: lease: " + duration + `, got "none"`},
		"a list for a duration":   {a("p99: [1s]"), "1:37: p99: " + duration + ", got a list"},
		"no attempt":              {a("policy: {maxAttempts: 0}"), `1:54: maxAttempts: want a whole number from 1 on, or none, got "0"`},
		"half an attempt":         {a("policy: {maxAttempts: 1.5}"), `1:54: maxAttempts: want a whole number from 1 on, or none, got "1.5"`},
		"fewer than no attempts":  {a("policy: {maxAttempts: -1}"), `1:54: maxAttempts: want a whole number from 1 on, or none, got "-1"`},
		"too many attempts":       {a("policy: {maxAttempts: 99999999999999999999}"), `1:54: maxAttempts: want a whole number from 1 on, or none, got "99999999999999999999"`},
		"billions of attempts":    {a("policy: {maxAttempts: 3000000000}"), `1:54: maxAttempts: want a whole number from 1 on, or none, got "3000000000"`},
		"attempts in quotes":      {a(`policy: {maxAttempts: "3"}`), "1:54: maxAttempts: want a whole number from 1 on, or none, got text in quotes"},
		"NaN":                     {a("policy: {backoff: {factor: .nan}}"), `1:59: factor: want a number from 1 on, got ".nan"`},
		"NaN in Go's words":       {a("policy: {backoff: {factor: NaN}}"), `1:59: factor: want a number from 1 on, got "NaN"`},
		"a factor below one":      {a("policy: {backoff: {factor: 0.5}}"), `1:59: factor: want a number from 1 on, got "0.5"`},
		"an infinite ratio":       {a("policy: {budget: {ratio: .inf}}"), `1:57: ratio: want a number above 0, none or unlimited, got ".inf"`},
		"a huge ratio":            {a("policy: {budget: {ratio: 1e300}}"), `1:57: ratio: want a number above 0, none or unlimited, got "1e300"`},
		"a ratio below zero":      {a("policy: {budget: {ratio: -0.1}}"), `1:57: ratio: want a number above 0, none or unlimited, got "-0.1"`},
		"hexadecimal":             {a("policy: {budget: {ratio: 0x1p-2}}"), `1:57: ratio: want a number above 0, none or unlimited, got "0x1p-2"`},
		"yes":                     {a("keyed: yes"), `1:39: keyed: want true or false, got "yes"`},
		"true in quotes":          {a("keyed: 'true'"), "1:39: keyed: want true or false, got text in quotes"},
		"a slip in the jitter":    {a("policy: {backoff: {jitter: Full}}"), `1:59: no jitter is called "Full", did you mean full?`},
		"another jitter":          {a("policy: {backoff: {jitter: gaussian}}"), `1:59: no jitter is called "gaussian": want full, equal, decorrelated or none`},
		"a tag":                   {"services: {a: {limit: !!str 3s}}", `1:23: a tag, "!!str", which means nothing here`},
		"an invisible name":       {`services: {"a\e[31m": }`, "1:12: a service: want a name that can be printed, without blanks around it"},
		"an invisible callee":     {`services: {a: {calls: [{to: "b\u202e"}]}}`, "1:29: to: want a name that can be printed, without blanks around it"},
		"a mapping for a key":     {"services:\n  a:\n  ? {a: b}\n  : c\n", "3:5: services: want a name for a key, got a mapping"},
		"a tab":                   {"services:\n\ta:\n", "2:1: not YAML: a tab, with which YAML does not indent: want blanks"},
		"a tab behind blanks":     {"services:\n  \ta:\n    limit: 3s\n", "2:3: not YAML: a tab, with which YAML does not indent: want blanks"},
		"a colon too much":        {"services:\n  a:\n    limit: 3s: 4s\n", `3:14: not YAML: a ":" out of place: the line is indented too far, or has text with a ":" that wants quotes`},
		"an open bracket":         {"services: {a: {calls: [{to: b}\n\n", "1:23: not YAML: while parsing a flow sequence: did not find expected ',' or ']'"},
		"open quotes":             {"services:\n  \"a: {limit: 3s}\n\n", "2:3: not YAML: while scanning a quoted scalar: found unexpected end of stream"},
		"a sign":                  {"services: {a: {limit: @3s}}", "1:23: not YAML: no value can begin like this: want quotes around it"},
		"no such anchor":          {"services: {a: *b}", "1:15: not YAML: unknown anchor 'b' referenced"},
		"a merge of itself":       {"services: {a: &a {<<: *a}}", "1:23: <<: it would merge a mapping into itself"},
		"a merge of text":         {"services: {a: {<<: 3}}", `1:20: <<: want a mapping to merge, or a list of them, got "3"`},
		"other bytes":             {"services: \xff\n", "1:11: not a text in UTF-8"},
		"other bytes further on":  {"# é\r\nservices: é\xe9\n", "2:12: not a text in UTF-8"},
		"UTF-16":                  {"\xff\xfes\x00e\x00", "1:1: not a text in UTF-8"},
		"a control character":     {"services:\x00\n", "1:10: a control character, U+0000"},
		"behind a mark of order":  {"\ufeffservices: {a: {limt: 3s}}", `1:16: a service has no key "limt", did you mean "limit"?`},
		"all at once": {"services:\n  a: {limit: 5, calls: [{}]}\n  b: {leese: 1m}\nmaxcalls: 3\n",
			"2:14: limit: a number without a unit, did you mean 5s?\n2:25: a call without \"to\", the name of the service called\n" +
				"3:7: a service has no key \"leese\", did you mean \"lease\"?\n4:1: the file has no key \"maxcalls\", did you mean \"maxCalls\"?"},
		"once for an anchor": {"x-a: &a {limit: 5}\nservices: {a: *a, b: *a, c: {<<: *a}}\n", "1:17: limit: a number without a unit, did you mean 5s?"},
	}
	for name, tt := range tests {
		if got := wrong(tt.text); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

func TestAnErrorShowsItsLine(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"marked": {"services:\n  a:\n    limit: 5 # é\n", "f:3:12: limit: a number without a unit, did you mean 5s?\n" +
			"   3 |     limit: 5 # é\n     |            ^\n"},
		"behind other alphabets": {"services: {é: {limit: soon}}\n", "f:1:23: limit: want a duration such as 500ms, 10s or 1m30s, or none, got \"soon\"\n" +
			"   1 | services: {é: {limit: soon}}\n     |                       ^^^^\n"},
		"behind wide characters and accents": {"services: {決済e\u0301: {limit: soon}}\n", "f:1:26: limit: want a duration such as 500ms, 10s or 1m30s, or none, got \"soon\"\n" +
			"   1 | services: {決済e\u0301: {limit: soon}}\n     |                           ^^^^\n"},
		"a wide key": {"services: {a: {決済: 5s}}\n", "f:1:16: a service has no key \"決済\": want limit, lease, retention, calls or proxy\n" +
			"   1 | services: {a: {決済: 5s}}\n     |                ^^^^\n"},
		"a very long key": {"services: {a: {? " + strings.Repeat("k", 5000) + "}}\n", "f:1:18: a service has no key \"" + strings.Repeat("k", 39) + "…\": want limit, lease, retention, calls or proxy\n" +
			"   1 | services: {a: {? " + strings.Repeat("k", 55) + "…\n     |                  " + strings.Repeat("^", 56) + "\n"},
		"what cannot be printed": {"services: {a: {x\u202e: 3}} \n", "f:1:16: a service has no key \"x\\u202e\": want limit, lease, retention, calls or proxy\n" +
			"   1 | services: {a: {x\ufffd: 3}}\n     |                ^^\n"},
		"a long line": {"services: {" + strings.Repeat("abcd: {}, ", 20) + "a: {limit: 5}, " + strings.Repeat("dcba: {}, ", 2000) + "}\n",
			"f:1:1"},
	}
	for name, tt := range tests {
		_, err := Parse("f", []byte(tt.text))
		if name == "a long line" {
			for line := range strings.Lines(err.Error()) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); strings.Contains(line, "|") && n > 80 {
					t.Errorf("%s: got a line of %d columns, want 80 at most: %s", name, n, line)
				}
			}
			if list, ok := errors.AsType[Errors](err); !ok || !strings.Contains(err.Error(), "and ") || marked(list[len(list)-1].Excerpt) != "dcba" {
				t.Errorf("%s: got %v, want the marks below the key, and how many more there are", name, err)
			}
			continue
		}
		if got := err.Error() + "\n"; got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, tt.want)
		}
	}
}

func TestAnExcerptOfWideCharactersStaysWithinItsColumns(t *testing.T) {
	s := split("f", strings.Repeat("決a済e\u0301", 60))
	for column := 1; column <= 300; column++ {
		text := s.excerpt(Place{1, column, 4}, 60)
		line, marks, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
		shown, want := []rune(line), []rune(s.rest(Place{1, column, 1}))[0]
		before := 0
		for before < len(shown) && terminal.Columns(string(shown[:before])) < strings.Index(marks, "^") {
			before++
		}
		for before+1 < len(shown) && shown[before] != want && terminal.Columns(string(shown[before])) == 0 {
			before++
		}
		if terminal.Columns(line) > 60 || terminal.Columns(marks) > 60 || want != '\u0301' && (before == len(shown) || shown[before] != want) {
			t.Fatalf("column %d: want the marks below %q in 60 columns, got\n%s", column, want, text)
		}
	}
}

func TestAnExcerptIsCutAroundItsMarks(t *testing.T) {
	s := split("f", strings.Repeat("0123456789", 30))
	for _, width := range []int{30, 60, 80} {
		for column := 1; column <= 300; column++ {
			text := s.excerpt(Place{1, column, 4}, width)
			line, marks, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
			want := s.rest(Place{1, column, 1})
			if want = want[:min(4, len(want))]; marked(text) != want || len([]rune(line)) > width || len([]rune(marks)) > width {
				t.Fatalf("column %d, %d columns wide: marks %q, want %q, in\n%s", column, width, marked(text), want, text)
			}
		}
	}
}

func TestAnErrorShowsNoPassword(t *testing.T) {
	for name, text := range map[string]string{
		"beside a mistake":            "proxy: {admin: nowhere, store: \"postgres://u:s3cret@h/shop\"}\nservices: {a: }\n",
		"behind an unknown key":       "proxy:\n  stor: postgres://u:s3cret@h/shop\nservices: {a: }\n",
		"in a key of something else":  "proxy:\n  admin: postgres://u:s3cret@h/shop\nservices: {a: }\n",
		"in a name":                   "proxy:\n  admin: none\nservices: {\"postgres://u:s3cret@h\\t\": }\n",
		"in the key":                  "postgres://u:s3cret@h/shop: 3\nservices: {a: }\n",
		"with an @":                   "proxy:\n  stor: postgres://u:s3@cret@h/shop?a=b\nservices: {a: }\n",
		"with a blank":                "proxy:\n  stor: postgres://u:a s3cret@h/shop\nservices: {a: }\n",
		"in a parameter":              "proxy:\n  stor: postgres://u@h/shop?sslpassword=s3cret&x=y\nservices: {a: }\n",
		"in words":                    "proxy:\n  stor: host=h password=s3cret\nservices: {a: }\n",
		"in another case":             "proxy:\n  stor: Host=h Password=s3cret\nservices: {a: }\n",
		"in what is no YAML":          "proxy:\n  store: [postgres://u:s3cret@h/shop\nservices: {a: }\n",
		"of a service":                "services: {a: {proxy: {listen: 7070, to: \"http://u:s3cret@h\"}}}\n",
		"of a service without scheme": "services: {a: {proxy: {listen: \"h:1\", to: \"u:s3cret@h\"}}}\n",
		"cut off on the left":         "services: {a: {proxy: {to: \"http://u:" + strings.Repeat("s3cret", 30) + "@h\", listen: nowhere, host: payments.example}}}\n",
	} {
		_, err := Parse("f", []byte(text))
		if err == nil || strings.Contains(err.Error(), "s3") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: got\n%v\nwant an error without the password", name, err)
		}
	}
	_, err := Parse("f", []byte("proxy:\n  stor: postgres://u:sécret@h/shop # ours\nservices: {a: }\n"))
	if want := "   2 |   stor: postgres://********@h/shop # ours\n     |   ^^^^"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got\n%v\nwant the line with all that is no password:\n%s", err, want)
	}
}
