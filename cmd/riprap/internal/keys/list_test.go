package keys

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/golden"
	"github.com/riprap-go/riprap/idempotency"
)

func TestListShowsEveryKeyAndWhichAreToBeResolved(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		out, err := typed(t, "", "list", "--store", b.dsn)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "list.txt", b.steady(out))
		out, err = typed(t, "", "list", "--stuck", "--store", b.dsn)
		if exit.Code(err) != exit.NotFine || err != exit.ErrNotFine {
			t.Errorf("list --stuck: got %v, want exit code %d and no further word", err, exit.NotFine)
		}
		golden.Check(t, "stuck.txt", b.steady(out))
	})
}

func TestNothingToResolveIsFine(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.migrate(t)
		for args, want := range map[string]string{"list": "no keys in", "list --stuck": "no key is to be resolved in"} {
			out, err := typed(t, "", append(strings.Fields(args), "--store", b.dsn)...)
			if err != nil || !strings.HasPrefix(out, want) {
				t.Errorf("%s: got %q, %v, want %s …", args, out, err, want)
			}
		}
		out, err := typed(t, "", "list", "--json", "--store", b.dsn)
		if want := "{\"format\":1,\"keys\":[\n]}\n"; out != want || err != nil {
			t.Errorf("list --json: got %q, %v, want %q", out, err, want)
		}
		b.complete(t, b.claim(t, idempotency.Claim{ID: id("1")}), paid)
		out, err = typed(t, "", "list", "--store", b.dsn)
		if err != nil || !strings.Contains(out, "1 key, none to be resolved in") {
			t.Errorf("list: got %q, %v, want that there is one key and nothing to do", out, err)
		}
	})
}

func TestListAsJSONSaysTheSame(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		out, err := typed(t, "", "list", "--json", "--store", b.dsn)
		var got struct {
			Format int
			Keys   []keyJSON
		}
		if e := json.Unmarshal([]byte(out), &got); e != nil || err != nil || got.Format != 1 {
			t.Fatalf("got %s, %v, %v, want a document of format 1", out, err, e)
		}
		byID := map[string]keyJSON{}
		for _, k := range got.Keys {
			byID[k.ID] = k
		}
		for name, want := range map[string]struct {
			state            string
			stuck, reexecute bool
			status           int
			kept             bool
		}{
			"answered":   {"completed", false, false, 201, true},
			"streamed":   {"completed", false, false, 200, false},
			"running":    {"in_progress", false, false, 0, false},
			"dead":       {"in_progress", true, false, 0, false},
			"runs again": {"in_progress", false, true, 0, false},
			"unknown":    {"unknown", true, false, 0, false},
		} {
			k := byID[id(name).String()]
			if k.State != want.state || k.Stuck != want.stuck || k.Reexecute != want.reexecute || k.Operation == "" || time.Since(k.Begun) > time.Hour {
				t.Errorf("%s: got %+v, want %+v", name, k, want)
			}
			if (k.Answer != nil) != (want.status != 0) || k.Answer != nil && (k.Answer.Status != want.status || k.Answer.Kept != want.kept) {
				t.Errorf("%s: got the answer %+v, want %d", name, k.Answer, want.status)
			}
			if live := k.Lease != nil && *k.Lease > 0; k.Retention < 24*3600 || live != (name == "running") {
				t.Errorf("%s: got a lease of %v and a retention of %v s, want the latter, and a lease only of what runs", name, k.Lease, k.Retention)
			}
		}
	})
}

func TestListHasEveryKeyOnceHoweverManyThereAre(t *testing.T) {
	b := newSQLite(t)
	b.migrate(t)
	b.db.SetMaxOpenConns(1)
	if _, err := b.db.Exec("PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 2*page + 3 {
		c := idempotency.Claim{ID: id(fmt.Sprint(i)), Lease: time.Duration(i%2*2-1) * time.Hour}
		b.claim(t, c)
		want = append(want, c.ID.String())
	}
	slices.Sort(want)
	out, err := typed(t, "", "list", "--json", "--store", b.dsn)
	var got struct{ Keys []keyJSON }
	if e := json.Unmarshal([]byte(out), &got); e != nil || err != nil {
		t.Fatal(e, err)
	}
	var ids []string
	for _, k := range got.Keys {
		ids = append(ids, k.ID)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("list --json has %d keys, want each of %d once, in the order of their IDs", len(ids), len(want))
	}
	out, err = typed(t, "", "list", "--stuck", "--store", b.dsn)
	if n := strings.Count(out, "lease over"); n != page+2 || exit.Code(err) != exit.NotFine {
		t.Errorf("list --stuck has %d keys, error %v, want %d", n, err, page+2)
	}
}

func TestOperationsDoNothingToATerminal(t *testing.T) {
	b := newSQLite(t)
	b.migrate(t)
	b.claim(t, idempotency.Claim{ID: id("1"), Operation: "POST /\x1b[31m\u202e"})
	for _, args := range [][]string{{"list"}, {"show", id("1").String()}} {
		out, err := typed(t, "", append(args, "--store", b.dsn)...)
		if err != nil || strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, "POST /\ufffd[31m\ufffd") {
			t.Errorf("%s: got %q, %v, want the operation without what a terminal obeys", args[0], out, err)
		}
	}
}
