package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/audit"
)

func TestAnErrorTellsWhatTheProcessSaidWithoutTheValuesItWasGiven(t *testing.T) {
	p := programOf("", "", self("broken", "{url}", "between", "\x1b[31m{method} {body} {key} {token}\x07")...)
	c := audit.Call{Method: "POST", URL: "http://127.0.0.1:1/~run/items", Body: "0000:0001:", Key: "key-abc", Token: "token-abc", Calls: 1}
	err := p.call(t.Context(), c)
	want := "exit status 3: cannot do {url} … cannot do  [31mPOST {body} {key} {token}"
	if err == nil || err.Error() != want {
		t.Errorf("a process that says things: got %v, want %s", err, want)
	}
}

func TestOfWhatAProcessSaysTheEndIsKept(t *testing.T) {
	nothing := strings.NewReplacer()
	tests := map[string]struct {
		writes []string
		want   string
	}{
		"nothing":           {nil, ""},
		"blanks":            {[]string{"\n \n"}, ""},
		"a line in pieces":  {[]string{"one ", "line"}, "one line"},
		"two lines":         {[]string{"first\nlast\n"}, "first … last"},
		"lines between":     {[]string{"\nTraceback:\n  File x\n\nError: no\n\n"}, "Traceback: … Error: no"},
		"a long line":       {[]string{strings.Repeat("é", 161)}, strings.Repeat("é", 160) + "…"},
		"no text":           {[]string{"a\xffb\x00c\u202e"}, "a\uFFFDb c"},
		"more than is kept": {[]string{"begin" + strings.Repeat("x", maxStderr) + "\nsecond\n", "last"}, "second … last"},
	}
	for name, tt := range tests {
		said := &tail{}
		for _, w := range tt.writes {
			if n, err := said.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%s: Write = %d, %v, want %d and no error", name, n, err, len(w))
			}
		}
		if got := said.summary(nothing); got != tt.want {
			t.Errorf("%s: summary = %q, want %q", name, got, tt.want)
		}
		if len(said.text) > maxStderr {
			t.Errorf("%s: %d bytes kept, want %d at most", name, len(said.text), maxStderr)
		}
	}
}

func TestNoProxyIsUsedForLoopback(t *testing.T) {
	const own = "127.0.0.1,localhost"
	tests := map[string]struct{ env, want []string }{
		"none":       {[]string{"A=1"}, []string{"A=1", "NO_PROXY=" + own, "no_proxy=" + own}},
		"one":        {[]string{"NO_PROXY=corp"}, []string{"NO_PROXY=corp", "NO_PROXY=corp," + own, "no_proxy=corp," + own}},
		"both":       {[]string{"NO_PROXY=a", "no_proxy=b"}, []string{"NO_PROXY=a", "no_proxy=b", "NO_PROXY=a," + own, "no_proxy=b," + own}},
		"everything": {[]string{"no_proxy=*"}, []string{"no_proxy=*", "NO_PROXY=*", "no_proxy=*"}},
	}
	for name, tt := range tests {
		if got := withoutProxy(tt.env); !slices.Equal(got, tt.want) {
			t.Errorf("%s: withoutProxy(%q) = %q, want %q", name, tt.env, got, tt.want)
		}
	}
}
