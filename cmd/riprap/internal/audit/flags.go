package audit

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/flags"
	"github.com/riprap-go/riprap/internal/suggest"
)

// A request is what somebody wants to know, as flags say it.
type request struct {
	program  program
	name     string
	patience time.Duration
	calls    int      // as audit.Audit has it: zero means 100
	rules    []string // none means all
	required []string // by name; nil means all that are judged
	lax      bool     // no rule is required
	list     bool
	verbose  bool
	asJSON   bool
	junit    string // a file, or - for stdout
}

const maxCalls = 1000 // in one process

// parse makes a request of arguments. What stands behind -- is the command.
func parse(args []string, help io.Writer) (*request, error) {
	q := &request{}
	var command []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, command = args[:i], args[i+1:]
	}
	var rules, required, post, keyed string
	f := flag.NewFlagSet("riprap audit", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&post, "post", "", "a `LINE` for the shell that makes a POST, with {url} and {body}")
	f.StringVar(&keyed, "keyed", "", "a `LINE` for the shell that makes a POST with an idempotency key: {key},\n"+
		"or one that the client makes itself")
	f.IntVar(&q.calls, "calls", 0, "so many calls at once in one process, for a command with {calls}\n(default 100)")
	q.patience = 30 * time.Second
	f.Var((*suggest.Duration)(&q.patience), "patience", "how long a run may take; without a timeout it takes\nthe whole `duration`")
	f.StringVar(&rules, "rules", "", "judge only these `RULES`, joined by commas")
	f.StringVar(&required, "require", "", "exit with 1 only if one of these `RULES` fails, joined by commas; none:\n"+
		"only report (default: every rule that is judged)")
	f.StringVar(&q.name, "name", "", "of the client, for the report (default: the program's)")
	f.BoolVar(&q.list, "list", false, "print all rules, each with its reason and its source")
	f.BoolVar(&q.verbose, "verbose", false, "show the evidence of what did not fail too")
	f.BoolVar(&q.verbose, "v", false, "the same as -verbose")
	f.BoolVar(&q.asJSON, "json", false, "print one JSON document")
	f.StringVar(&q.junit, "junit", "", "also write JUnit's XML into this `FILE`; - prints it instead of the table")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(f, help)
			return nil, err
		}
		return nil, flags.Near(f, args, err)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the command to audit stands behind --", f.Arg(0))
	}
	if q.list {
		if f.NFlag() > 1 || command != nil {
			return nil, errors.New("-list stands alone")
		}
		return q, nil
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := q.program.set(command, post, keyed, given); err != nil {
		return nil, err
	}
	if err := q.check(given); err != nil {
		return nil, err
	}
	return q, q.judge(rules, required, given)
}

// check looks at what needs no other flag to make sense, and fills in what follows from the command.
func (q *request) check(given map[string]bool) error {
	q.name = cmp.Or(q.name, q.program.name())
	switch {
	case given["calls"] && (q.calls < 1 || q.calls > maxCalls):
		return fmt.Errorf("-calls %d: want 1 to %d", q.calls, maxCalls)
	case given["calls"] && !q.program.command.holds("{calls}"):
		return errors.New("-calls: want {calls} in the command, so that one process makes so many")
	}
	switch {
	case q.patience <= 0:
		return fmt.Errorf("-patience %v: want more than nothing", q.patience)
	case given["junit"] && q.junit == "":
		return errors.New("-junit: want the name of a file, or - for stdout")
	case q.asJSON && q.junit == "-":
		return errors.New("-json and -junit - exclude each other: stdout takes one of them")
	case q.junit != "" && q.junit != "-":
		if err := writable(q.junit); err != nil {
			return fmt.Errorf("-junit: %w", err)
		}
	}
	return nil
}

// judge reads which rules are judged and which are required.
func (q *request) judge(rules, required string, given map[string]bool) (err error) {
	if given["rules"] {
		if q.rules, err = ids("-rules", rules); err != nil {
			return err
		}
	}
	if required == "none" {
		q.lax = true
		return nil
	}
	if given["require"] {
		if q.required, err = ids("-require", required); err != nil {
			return err
		}
	}
	for _, id := range q.required {
		if q.rules != nil && !slices.Contains(q.rules, id) {
			return fmt.Errorf("-require %s: it is not among the -rules", id)
		}
	}
	return nil
}

// ids reads the ids of rules that a flag lists.
func ids(name, list string) (ids []string, err error) {
	var known []string
	for _, r := range audit.Rules() {
		known = append(known, r.ID)
	}
	for id := range strings.SplitSeq(list, ",") {
		id = strings.TrimSpace(id)
		if !slices.Contains(known, id) {
			if like := suggest.Near(id, known); like != "" {
				return nil, fmt.Errorf("%s: no rule %q, did you mean %s?", name, id, like)
			}
			return nil, fmt.Errorf("%s: no rule %q; riprap audit -list names them", name, id)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// set takes over the command and the lines for the shell.
func (p *program) set(command []string, post, keyed string, given map[string]bool) error {
	if len(command) == 0 {
		return errors.New("want the command to audit behind --, as in: riprap audit -- curl --retry 3 {url}")
	}
	p.command = template{words: command}
	if given["post"] {
		p.post = &template{words: []string{post}, shell: true}
	}
	if given["keyed"] {
		p.keyed = &template{words: []string{keyed}, shell: true}
	}
	for _, t := range []struct {
		what string
		*template
	}{{"the command", &p.command}, {"-post", p.post}, {"-keyed", p.keyed}} {
		if t.template == nil {
			continue
		}
		if typed, meant := t.slip(); typed != "" {
			return fmt.Errorf("%s: %s is no placeholder, did you mean %s?", t.what, typed, meant)
		}
		if !t.holds("{url}") {
			return fmt.Errorf("%s: want {url} in it, for the address to call", t.what)
		}
	}
	if p.post != nil && p.post.holds("{key}") {
		return errors.New("-post: it is for POSTs without a key; what has {key} is for -keyed")
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		if len(command) == 1 && strings.Contains(command[0], " ") {
			return fmt.Errorf("the command is one word, %w; leave out the quotes, or give it to a shell: -- sh -c '…'", err)
		}
		return fmt.Errorf("the command cannot be run: %w", err)
	}
	return nil
}

func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `usage: riprap audit [flags] -- COMMAND {url}
       riprap audit -list

Runs a program that makes an HTTP call, about 115 times and side by side,
against a server on loopback that fails on purpose, and judges what the server
sees: does the program try again, wait, spread its waits, heed Retry-After,
stop, and leave alone what must not be sent twice? That takes little longer
than the slowest run: half a minute for a program without a timeout.

The command runs without a shell. In its arguments these are replaced, and other
braces are left alone:

  {url}        the address to call; there must be one
  {method}     GET or POST
  {body}       what to POST, 20000 characters; empty for a GET
  {body-file}  the name of a file that holds the same
  {key}        an Idempotency-Key to send, often empty
  {token}      what to send as "Authorization: Bearer ...", often empty
  {calls}      how many such calls to make at once

What the command has no place for is not asked of it. One without {method} takes
-post and -keyed, in which the same is replaced and safe to quote:

  riprap audit -post 'curl --retry 3 -d {body} {url}' -- curl --retry 3 {url}

`)
	f.SetOutput(w)
	f.PrintDefaults()
	fmt.Fprint(w, `
exit codes: 0 no required rule fails, 1 one does, 2 usage, or the command cannot
be run
`)
}
