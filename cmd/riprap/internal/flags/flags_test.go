package flags_test

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/flags"
)

func TestFlagsStandAnywhere(t *testing.T) {
	for _, c := range []struct {
		args []string
		rest []string
		n    int
		err  string
	}{
		{nil, nil, 0, ""},
		{[]string{"a", "-n", "3", "b"}, []string{"a", "b"}, 3, ""},
		{[]string{"--n=4", "a", "--", "-n", "5"}, []string{"a", "-n", "5"}, 4, ""},
		{[]string{"--", "--"}, []string{"--"}, 0, ""},
		{[]string{"a", "-"}, []string{"a", "-"}, 0, ""},
		{[]string{"a", "--verbos"}, nil, 0, "did you mean --verbose?"},
		{[]string{"-verbos"}, nil, 0, "did you mean -verbose?"},
		{[]string{"--xyzzy"}, nil, 0, "xyzzy"},
		{[]string{"-n", "many"}, nil, 0, "many"},
		{[]string{"a", "-n"}, nil, 0, "needs an argument"},
	} {
		f := flag.NewFlagSet("test", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		n := f.Int("n", 0, "")
		f.Bool("verbose", false, "")
		rest, err := flags.Parse(f, c.args)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("Parse(%q) = %v, want an error about %q", c.args, err, c.err)
		}
		if c.err == "" && (!slices.Equal(rest, c.rest) || *n != c.n) {
			t.Errorf("Parse(%q) = %q with n %d, want %q with %d", c.args, rest, *n, c.rest, c.n)
		}
	}
	f := flag.NewFlagSet("test", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	if _, err := flags.Parse(f, []string{"a", "-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("Parse of -h = %v, want flag.ErrHelp", err)
	}
}
