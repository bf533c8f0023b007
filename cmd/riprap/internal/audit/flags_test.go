package audit

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

func TestArgumentsThatMakeNoSenseAreExplained(t *testing.T) {
	command := []string{"--", os.Args[0], "{url}"}
	with := func(flags ...string) []string { return slices.Concat(flags, command) }
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":                          {nil, "want the command to audit behind --"},
		"no command":                       {[]string{"-v", "--"}, "want the command to audit behind --"},
		"a command without --":             {[]string{"curl", "{url}"}, `unexpected argument "curl": the command to audit stands behind --`},
		"no address":                       {[]string{"--", os.Args[0], "http://localhost"}, "the command: want {url} in it, for the address to call"},
		"a slip in the placeholder":        {[]string{"--", os.Args[0], "{ulr}"}, "the command: {ulr} is no placeholder, did you mean {url}?"},
		"a slip beside the address":        {[]string{"--", os.Args[0], "{url}", "-d{bdoy}"}, "the command: {bdoy} is no placeholder, did you mean {body}?"},
		"a slip in a line":                 {with("--post", "curl -d {Body} {url}"), "-post: {Body} is no placeholder, did you mean {body}?"},
		"a slip in a keyed line":           {with("--keyed", "curl -d @{bodyfile} {url}"), "-keyed: {bodyfile} is no placeholder, did you mean {body-file}?"},
		"a program that does not exist":    {[]string{"--", "no-such-program", "{url}"}, "the command cannot be run: exec: \"no-such-program\""},
		"a command in quotes":              {[]string{"--", "no-such-program {url}"}, "leave out the quotes"},
		"an unknown flag":                  {with("-frobnicate"), "flag provided but not defined: -frobnicate"},
		"a slip in a flag":                 {with("--requires=none"), "did you mean --require?"},
		"the beginning of a flag":          {with("-rule", "jitter"), "did you mean -rules?"},
		"a flag without its value":         {[]string{"-post"}, "flag needs an argument: -post"},
		"an unknown rule":                  {with("--rules", "frobnicate"), `-rules: no rule "frobnicate"; riprap audit -list names them`},
		"a slip in a rule":                 {with("--require", "jitter,retrys-429"), `-require: no rule "retrys-429", did you mean`},
		"no rule":                          {with("--rules", ""), `-rules: no rule ""`},
		"a rule required but not judged":   {with("--rules", "jitter", "--require", "key-new"), "-require key-new: it is not among the -rules"},
		"a line without the address":       {with("--post", "curl -d x"), "-post: want {url} in it"},
		"a keyed line without the address": {with("--keyed", ""), "-keyed: want {url} in it"},
		"a key in the wrong line":          {with("--post", "curl {key} {url}"), "what has {key} is for -keyed"},
		"calls without a place for them":   {with("--calls", "50"), "-calls: want {calls} in the command"},
		"too many calls":                   {[]string{"--calls", "1001", "--", os.Args[0], "{url}", "{calls}"}, "-calls 1001: want 1 to 1000"},
		"no call":                          {[]string{"--calls", "0", "--", os.Args[0], "{url}", "{calls}"}, "-calls 0: want 1 to 1000"},
		"a patience without a unit":        {with("--patience", "5"), `invalid value "5" for flag -patience: did you mean 5s?`},
		"no patience":                      {with("--patience", "0s"), "-patience 0s: want more than nothing"},
		"a report into nothing":            {with("--junit", ""), "-junit: want the name of a file"},
		"a report into no folder":          {with("--junit", "no/such/folder/x.xml"), "-junit: "},
		"a report into a file's inside":    {with("--junit", os.Args[0]+"/x.xml"), "-junit: "},
		"a report into a directory":        {with("--junit", t.TempDir()), "-junit: "},
		"two reports on stdout":            {with("--junit", "-", "--json"), "-json and -junit - exclude each other"},
		"a list of something":              {with("--list"), "-list stands alone"},
		"a list as JSON":                   {[]string{"--list", "--json"}, "-list stands alone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := Run(t.Context(), tt.args, &stdout, &stderr)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "riprap audit: ") {
				t.Errorf("riprap audit %q: got error %v, want one of riprap audit with %q", tt.args, err, tt.want)
			}
			if got := exit.Code(err); got != exit.Usage {
				t.Errorf("riprap audit %q: got exit code %d, want %d", tt.args, got, exit.Usage)
			}
			if stdout.Len()+stderr.Len() > 0 {
				t.Errorf("riprap audit %q: got output %q and %q, want none", tt.args, &stdout, &stderr)
			}
		})
	}
}

func TestFlagsSayWhatIsJudgedAndRequired(t *testing.T) {
	parsed := func(args ...string) *request {
		t.Helper()
		q, err := parse(args, io.Discard)
		if err != nil {
			t.Fatalf("parse %q: got error %v, want none", args, err)
		}
		return q
	}
	q := parsed("--", os.Args[0], "--", "{url}")
	if q.calls != 0 || q.patience != 30*time.Second || q.rules != nil || !q.requires("jitter") || q.name == "" {
		t.Errorf("without flags: got %+v, want the usual calls, 30s, all rules, all required and a name", q)
	}
	if words := q.program.command.words; !slices.Equal(words[1:], []string{"--", "{url}"}) {
		t.Errorf("a command with -- of its own: got %q", words)
	}
	q = parsed("--rules", "jitter, key-new,key-same", "--require=key-new,jitter", "--calls", "20", "--name", "me", "--patience", "5s", "--", os.Args[0], "{url}", "{calls}")
	if !slices.Equal(q.rules, []string{"jitter", "key-new", "key-same"}) || q.calls != 20 || q.name != "me" || q.patience != 5*time.Second {
		t.Errorf("with flags: got %+v", q)
	}
	if !q.requires("jitter") || !q.requires("key-new") || q.requires("key-same") {
		t.Errorf("-require key-new,jitter: got %q", q.required)
	}
	if q := parsed("--require", "none", "--", os.Args[0], "{url}"); q.requires("jitter") || q.required != nil {
		t.Error("-require none: got rules that are required, or claimed")
	}
}

func TestHelpAndListFitIntoATerminal(t *testing.T) {
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("parse -h: got error %v, want flag.ErrHelp", err)
	}
	for _, arg := range []string{"-h", "-list"} {
		var stdout, stderr bytes.Buffer
		if err := Run(t.Context(), []string{arg}, &stdout, &stderr); err != nil {
			t.Fatalf("riprap audit %s: got error %v, want none", arg, err)
		}
		for line := range strings.Lines(strings.ReplaceAll(stdout.String(), "\t", "    ")) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("riprap audit %s: got a line of %d columns, want at most 80: %s", arg, n, line)
			}
		}
		if stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("riprap audit %s: got %d bytes on stdout and %q on stderr", arg, stdout.Len(), &stderr)
		}
	}
}
