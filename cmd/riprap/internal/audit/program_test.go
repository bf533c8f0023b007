package audit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/audit"
)

// programOf is a program with lines for the shell, of which an empty one is none.
func programOf(post, keyed string, command ...string) *program {
	p := &program{command: template{words: command}}
	if post != "" {
		p.post = &template{words: []string{post}, shell: true}
	}
	if keyed != "" {
		p.keyed = &template{words: []string{keyed}, shell: true}
	}
	return p
}

func TestPlaceholdersAreReplacedInEveryArgument(t *testing.T) {
	tmpl := template{words: []string{"prog", "--at={url}", "{method}{calls}", "{key}", "{other}", "{body}{body}"}}
	values := []string{"{url}", "http://h/{key}", "{method}", "POST", "{body}", "b", "{key}", "", "{calls}", "7"}
	got := tmpl.fill(t.Context(), values).Args
	want := []string{"prog", "--at=http://h/{key}", "POST7", "", "{other}", "bb"}
	if !slices.Equal(got, want) {
		t.Errorf("fill: got %q, want %q: each replaced once, and unknown ones left alone", got, want)
	}
}

func TestASlipInAPlaceholderIsFoundAndOtherBracesAreNot(t *testing.T) {
	for typed, want := range map[string]string{
		"{bdoy}": "{body}", "{ulr}": "{url}", "{ur}": "{url}", "{urls}": "{url}", "{uri}": "{url}", "{curl}": "{url}", "{Url}": "{url}", "{URL}": "{url}",
		"--at={rul}/x": "{url}", "@{bodyfile}": "{body-file}", "{url}{ky}": "{key}", "{bodyfile}": "{body-file}",
		"{body_file}": "{body-file}", "{BodyFile}": "{body-file}",
		"{methods}": "{method}", "{mehtod}": "{method}", "{tokne}": "{token}", "{call}": "{calls}", "{key1}": "{key}",
		"{url} {body} {body-file} {method} {key} {token} {calls}": "",
		"{code}": "", "{}": "", "{ url }": "", "{a,b}": "", "{1..3}": "", "{bo}": "", "{print}": "", "{other}": "", "{host}": "", "{link}": "",
		"%{http_code}": "", "%{urlnum}": "", "%{methods}": "", "${URL}": "", "$${BODY}": "", "#{keys}": "", `\{uri}`: "", "{{Url}}": "",
		`{"key":1}`: "", "{key": "", "é{ulr}": "{url}",
	} {
		tmpl := template{words: []string{"prog", typed}}
		if got, meant := tmpl.slip(); meant != want || (got == "") != (want == "") || !strings.Contains(typed, got) {
			t.Errorf("slip of %q = %q, %q, want %q", typed, got, meant, want)
		}
	}
}

func TestEachCallIsMadeByWhatCanMakeIt(t *testing.T) {
	get := audit.Call{Method: "GET", Calls: 1}
	post := audit.Call{Method: "POST", Body: "b", Calls: 1}
	keyed := audit.Call{Method: "POST", Body: "b", Key: "k", Calls: 1}
	token := audit.Call{Method: "GET", Token: "t", Calls: 1}
	many := audit.Call{Method: "GET", Calls: 9}
	plain := programOf("", "", "p", "{url}")
	lines := programOf("post {url}", "keyed {url}", "p", "{url}")
	full := programOf("", "", "p", "{url}", "{method}", "{body-file}", "{key}", "{token}", "{calls}")
	both := programOf("post {url}", "keyed {url}", "p", "{url}", "{method}", "{body}", "{key}")
	tests := map[string]struct {
		program *program
		call    audit.Call
		want    string // the first word
		unable  string // or what to give
	}{
		"a GET":                         {plain, get, "p", ""},
		"a POST, and no way to make it": {plain, post, "", "-post 'LINE with {url} and {body}'"},
		"a POST with a key, and no way to make it":  {plain, keyed, "", "-keyed 'LINE with {url}, {body} and {key}'"},
		"credentials, and no place for them":        {plain, token, "", "{token} in the command"},
		"many calls, and no place for their number": {plain, many, "", "{calls} in the command"},
		"a GET beside lines":                        {lines, get, "p", ""},
		"a POST by its line":                        {lines, post, "post {url}", ""},
		"a POST with a key by its line":             {lines, keyed, "keyed {url}", ""},
		"a POST by the command":                     {full, post, "p", ""},
		"a POST with a key by the command":          {full, keyed, "p", ""},
		"credentials by the command":                {full, token, "p", ""},
		"many calls by the command":                 {full, many, "p", ""},
		"a POST by its line first":                  {both, post, "post {url}", ""},
		"a POST with a key by its line first":       {both, keyed, "keyed {url}", ""},
		"a method without a body":                   {programOf("", "", "p", "{url}", "{method}"), post, "", "-post 'LINE"},
		"a method and a body without a key":         {programOf("", "", "p", "{url}", "{method}", "{body}"), keyed, "", "-keyed 'LINE"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.program.forCall(tt.call)
			if tt.unable != "" {
				if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), ": give "+tt.unable) {
					t.Errorf("forCall: got error %v, want one that is ErrUnsupported and says to give %s", err, tt.unable)
				}
				return
			}
			if err != nil {
				t.Fatalf("forCall: got error %v, want none", err)
			}
			if got.words[0] != tt.want {
				t.Errorf("forCall: got %q, want %q", got.words[0], tt.want)
			}
		})
	}
}

func TestAFileHoldsTheBodyAsLongAsTheProgramRuns(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p := programOf("", "", self("copy", "{body-file}", out, "{url}", "{method}")...)
	if err := p.call(t.Context(), audit.Call{Method: "POST", URL: "http://h/", Body: "the body ", Calls: 1}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	name, found := strings.CutPrefix(string(text), "the body ")
	if !found {
		t.Fatalf("the program read %q, want the body", text)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s when the program is over: got %v, want no such file", name, err)
	}
}

func TestACommandIsShownWithoutItsValues(t *testing.T) {
	for want, words := range map[string][]string{
		"curl {url}":                      {"/usr/bin/curl", "{url}"},
		"curl … {url}":                    {"curl", "-u", "me:secret", "{url}"},
		"curl … {token} {url}":            {"curl", "-H", "Authorization: Basic secret", "-H", "X: {token}", "{url}"},
		"curl … {key} … {url} {method} …": {"curl", "--key={key}", "secret", "{url}", "{method}", "secret", "{secret}"},
		"p {url} {key}":                   {"p", "{url}{key}"},
	} {
		if got := programOf("post secret {url}", "", words...).String(); got != want {
			t.Errorf("String of %q = %q, want %q", words, got, want)
		}
	}
}
