package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
	"github.com/riprap-go/riprap/idempotency"
)

const showUsage = `usage: riprap keys show --store STORE ID [flags]
       riprap keys show --store STORE --scope S --operation OP --key-file FILE

All that is known of a key. ID is that of the list; its first 8 digits will do
if no other key has the same. Whoever has the key itself gives what the ID is
made of; the key comes from a file or from stdin, since it is a secret.

`

// show is the verb.
func show(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	var dsn, child string
	var body, asJSON bool
	var which pick
	f := newFlags("show", &dsn)
	which.flags(f)
	f.StringVar(&child, "child", "", "print only the key that the request was sent on with under this `NAME`,\nas idempotency.ChildKey made it")
	f.BoolVar(&body, "body", false, "print only the body of the answer, as it is")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	rest, err := parse(f, args, showUsage, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err == nil {
		err = which.take(rest)
	}
	if err == nil && (child != "" && body || child != "" && asJSON || body && asJSON) {
		err = errors.New("--child, --body and --json exclude each other")
	}
	if err != nil {
		return wrong("show", err)
	}
	s, err := open(ctx, dsn)
	if err != nil {
		return unopened("show", err)
	}
	defer s.Close()
	r, err := which.find(ctx, s, stdin)
	if err != nil {
		return unopened("show", err)
	}
	switch {
	case child != "":
		return write(stdout, r.ID.ChildKey(child)+"\n")
	case body:
		return showBody(&r, stdout)
	case asJSON:
		text, err := marshal(struct {
			Format int     `json:"format"`
			Key    keyJSON `json:"key"`
		}{format, detailed(&r)})
		if err != nil {
			return err
		}
		return write(stdout, text+"\n")
	default:
		return write(stdout, described(&r, terminal.Look(stdout)))
	}
}

func showBody(r *idempotency.Record, stdout io.Writer) error {
	switch {
	case r.Answer == nil:
		return fmt.Errorf("there is no answer (%s): %s", state(r), meaning(r))
	case r.Answer.Tombstone:
		return errors.New("the answer was not kept: it was streamed, too large or secret")
	}
	_, err := stdout.Write(r.Answer.Body)
	return err
}

// described is a key for people: the verdict, then what stands behind it.
func described(r *idempotency.Record, on terminal.Screen) string {
	paint := on.Palette.Strong
	if stuck(r) {
		paint = on.Palette.Bad
	}
	var b strings.Builder
	for _, line := range terminal.Wrap(state(r)+": "+meaning(r), on.Width) {
		b.WriteString(paint(line) + "\n")
	}
	line := func(label, text string) {
		b.WriteString(on.Palette.Quiet(terminal.Pad(label, 11)) + text + "\n")
	}
	b.WriteByte('\n')
	line("ID", r.ID.String())
	line("operation", printable(r.Operation))
	line("begun", r.Begun.UTC().Format(time.DateTime)+" UTC, "+span(age(r))+" ago")
	if r.State == idempotency.StateInProgress {
		line("lease", left(r.Lease))
		line("if lost", map[bool]string{true: "the next request with the key runs", false: "it is held until it is resolved"}[r.Reexecute])
	}
	if stuck(r) {
		line("kept", "until it is resolved")
	} else {
		line("kept for", left(r.Retention))
	}
	if r.Owner == (idempotency.Owner{}) {
		line("resolved", "by an operator")
	} else {
		line("run", fmt.Sprintf("generation %d, owner %s", r.Generation, owner(r)))
	}
	switch a := r.Answer; {
	case a == nil:
	case a.Tombstone:
		line("answer", fmt.Sprintf("%d, not kept: it was streamed, too large or secret", a.Status))
	default:
		line("answer", fmt.Sprintf("%d, body of %s", a.Status, counted(len(a.Body), "byte", "bytes")))
		line("fields", printable(strings.Join(slices.Sorted(maps.Keys(a.Header)), ", ")))
	}
	return b.String()
}

func owner(r *idempotency.Record) string { return hex.EncodeToString(r.Owner[:]) }
