package check

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/flags"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
	"github.com/riprap-go/riprap/internal/suggest"
)

// A request is what somebody wants to know, as flags say it.
type request struct {
	file   string   // - is stdin
	failOn []string // ids of rules; nil means all
	asJSON bool
}

// fails reports whether a finding of a rule decides the exit code.
func (q *request) fails(rule string) bool { return q.failOn == nil || slices.Contains(q.failOn, rule) }

// parse makes a request of arguments. Flags may stand before and behind the file.
func parse(args []string, help io.Writer) (*request, error) {
	q := &request{}
	failOn := "all"
	f := flag.NewFlagSet("riprap check", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&failOn, "fail-on", failOn, "exit with 1 only for findings of these `RULES`, joined by commas; all; or\nnone: only report")
	f.BoolVar(&q.asJSON, "json", false, "print one JSON document")
	files, err := flags.Parse(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(f, help)
		return nil, err
	case err != nil:
		return nil, err
	case len(files) > 1:
		return nil, fmt.Errorf("unexpected argument %q: want one file", files[1])
	}
	q.file = manifest.Name
	if len(files) == 1 {
		q.file = files[0]
	}
	if q.file == "" {
		return nil, errors.New("want the name of a file, got an empty one")
	}
	q.failOn, err = rules(failOn)
	return q, err
}

// rules reads the ids that -fail-on lists. Nil means all.
func rules(listed string) ([]string, error) {
	switch listed {
	case "all":
		return nil, nil
	case "none":
		return []string{}, nil
	}
	known := ids()
	var picked []string
	for id := range strings.SplitSeq(listed, ",") {
		id = strings.TrimSpace(id)
		if id == "all" || id == "none" {
			return nil, fmt.Errorf("-fail-on: %s stands alone, got %q", id, listed)
		}
		if !slices.Contains(known, id) {
			if like := suggest.Near(id, append([]string{"all", "none"}, known...)); like != "" {
				return nil, fmt.Errorf("-fail-on: no rule %q, did you mean %s?", id, like)
			}
			return nil, fmt.Errorf("-fail-on: no rule %q; there are %s", id, strings.Join(known, ", "))
		}
		picked = append(picked, id)
	}
	return picked, nil
}

// ids are those of all rules.
func ids() []string {
	ids := []string{}
	for _, r := range chain.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, `usage: riprap check [flags] [FILE]

Reads a %s, which says which services there are, who calls whom and
with which policy, and finds what cannot work: timeouts that do not shrink on
the way down, attempts that do not fit into their total, retries that multiply.
Nothing is called. Without FILE it is %s of this folder; - is stdin.

`, manifest.Name, manifest.Name)
	f.SetOutput(w)
	f.PrintDefaults()
	fmt.Fprint(w, "\nrules:\n")
	for _, line := range terminal.Wrap(strings.Join(ids(), ", "), terminal.Usual-2) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprint(w, `
exit codes: 0 fine, 1 there is a finding of a rule of -fail-on, 2 usage, or the
file cannot be read
`)
}
