package keys

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/suggest"
)

const resolveUsage = `usage: riprap keys resolve --store STORE ID --free
       riprap keys resolve --store STORE ID --status N [--header H]
                           [--body-file F]

Ends a key that is unknown, or whose lease is over. It asks nothing and says
what it did. Find out first whether the effect happened:

  it surely did not   --free: the next request with the key runs
  it did              --status and what else the answer is made of: requests
                      with the key get that, and nothing runs

A run that is still at work after all has lost its key then, and its answer is
thrown away; what it does is not.

`

// mostBody is the largest body that is taken.
const mostBody = 32 << 20

// An answer is what the flags say of it.
type answer struct {
	free     bool
	status   int
	header   http.Header
	bodyFile string
	kept     time.Duration
}

// resolve is the verb.
func resolve(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	var dsn string
	var which pick
	a := answer{header: http.Header{}, kept: 24 * time.Hour}
	f := newFlags("resolve", &dsn)
	which.flags(f)
	f.BoolVar(&a.free, "free", false, "the effect did not happen: make the key free")
	f.IntVar(&a.status, "status", 0, "the effect happened: the answer's status `CODE`, 200 to 599")
	f.Func("header", "a field of the answer, `\"Name: value\"`; may be repeated", a.add)
	f.StringVar(&a.bodyFile, "body-file", "", "a `FILE` with the answer's body; - is stdin (default: no body)")
	f.Var((*suggest.Duration)(&a.kept), "retention", "how long the answer is kept (a `DURATION`)")
	rest, err := parse(f, args, resolveUsage, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err == nil {
		err = which.take(rest)
	}
	if err == nil {
		err = a.check(which.keyFile)
	}
	var made *idempotency.Answer
	if err == nil && !a.free {
		made, err = a.make(stdin)
	}
	if err != nil {
		return wrong("resolve", err)
	}
	s, err := open(ctx, dsn)
	if err != nil {
		return unopened("resolve", err)
	}
	defer s.Close()
	r, err := which.find(ctx, s, stdin)
	if err != nil {
		return unopened("resolve", err)
	}
	if !resolvable(&r) {
		return settled(&r)
	}
	switch err := s.Resolve(ctx, r.ID, made, a.kept); {
	case errors.Is(err, idempotency.ErrNotFound):
		return fmt.Errorf("%s: somebody else has freed it meanwhile", r.ID)
	case errors.Is(err, idempotency.ErrSettled):
		return fmt.Errorf("%s: it is not stuck any more: a run holds it, or has completed it meanwhile; riprap keys show tells", r.ID)
	case err != nil:
		return s.Failed(err)
	}
	did := "free: the next request with the key runs"
	if made != nil {
		did = fmt.Sprintf("completed: requests with the key get %d with a body of %s, for %s", made.Status, counted(len(made.Body), "byte", "bytes"), span(a.kept))
	}
	return write(stdout, fmt.Sprintf("%s %s\n%s\n", r.ID, printable(r.Operation), did))
}

// settled is why there is nothing to resolve.
func settled(r *idempotency.Record) error {
	if r.State == idempotency.StateInProgress {
		return fmt.Errorf("%s: a run holds it, and its lease lasts for another %s: nothing to resolve yet", r.ID, span(r.Lease))
	}
	return fmt.Errorf("%s: it is %s: nothing to resolve", r.ID, state(r))
}

// add takes a field of the answer.
func (a *answer) add(line string) error {
	name, value, found := strings.Cut(line, ":")
	value = strings.Trim(value, " \t")
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !found || name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}):
		return errors.New(`want "Name: value"`)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return errors.New("the value has a control character in it")
	case !idempotency.Replayable(canonical):
		return fmt.Errorf("%s is never replayed: it is of one connection, one moment or one client", canonical)
	}
	a.header.Add(canonical, value)
	return nil
}

// check looks whether the flags fit together.
func (a *answer) check(keyFile string) error {
	rest := len(a.header) > 0 || a.bodyFile != ""
	switch {
	case a.free && (a.status != 0 || rest):
		return errors.New("--free makes the key free, and --status, --header and --body-file are an answer: want one of the two")
	case a.free:
		return nil
	case a.status == 0 && rest:
		return errors.New("--status is missing: an answer has one")
	case a.status == 0:
		return errors.New("want --free if the effect surely did not happen, or --status and an answer if it did")
	case a.status < 200 || a.status > 599:
		return fmt.Errorf("--status %d: want 200 to 599", a.status)
	case a.bodyFile != "" && (a.status == http.StatusNoContent || a.status == http.StatusNotModified):
		return fmt.Errorf("--status %d: it has no body", a.status)
	case a.kept <= 0:
		return fmt.Errorf("--retention %v: want more than nothing", a.kept)
	case a.bodyFile == "-" && keyFile == "-":
		return errors.New("--key-file and --body-file cannot both be stdin")
	}
	return nil
}

// make makes the answer.
func (a *answer) make(stdin io.Reader) (*idempotency.Answer, error) {
	made := &idempotency.Answer{Status: a.status, Header: a.header}
	if a.bodyFile == "" {
		return made, nil
	}
	if a.bodyFile != "-" {
		file, err := os.Open(a.bodyFile)
		if err != nil {
			return nil, fmt.Errorf("--body-file: %w", err)
		}
		defer file.Close()
		stdin = file
	}
	var err error
	if made.Body, err = io.ReadAll(io.LimitReader(stdin, mostBody+1)); err != nil {
		return nil, fmt.Errorf("--body-file: %w", err)
	}
	if len(made.Body) > mostBody {
		return nil, fmt.Errorf("--body-file: want at most %d bytes", mostBody)
	}
	return made, nil
}
