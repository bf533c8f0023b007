package keys

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/idempotency"
)

// stuckKeys are those that may be resolved, also the one that needs nobody.
var stuckKeys = []string{"unknown", "dead", "runs again"}

func TestFreedKeyRunsAgain(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		for _, name := range stuckKeys {
			out, err := typed(t, "", "resolve", id(name).String()[:shown], "--free", "--store", b.dsn)
			if want := "\nfree: the next request with the key runs\n"; err != nil || !strings.HasPrefix(out, id(name).String()) || !strings.HasSuffix(out, want) {
				t.Errorf("resolve --free of %s: got %q, %v, want its ID and %q", name, out, err, want)
			}
			if got := b.again(t, id(name)); got.Verdict != idempotency.ClaimWon {
				t.Errorf("%s is claimed again after that: %+v, want it to win", name, got)
			}
		}
	})
}

func TestAnswerOfTheOperatorIsReplayed(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		file := filepath.Join(t.TempDir(), "body")
		if err := os.WriteFile(file, paid.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, bodyFile := range map[string]string{"unknown": file, "dead": "-", "runs again": file} {
			out, err := typed(t, string(paid.Body), "resolve", id(name).String(), "--status", "201", "--header", "content-type: application/json",
				"--header", "Location:/charges/17", "--body-file", bodyFile, "--store", b.dsn)
			if want := "completed: requests with the key get 201 with a body of 10 bytes, for 24 h\n"; err != nil || !strings.HasSuffix(out, want) {
				t.Errorf("resolve --status of %s: got %q, %v, want %q", name, out, err, want)
			}
			got := b.again(t, id(name))
			if got.Verdict != idempotency.ClaimReplay || got.Answer.Status != 201 || string(got.Answer.Body) != string(paid.Body) || !reflect.DeepEqual(got.Answer.Header, paid.Header) {
				t.Errorf("%s is claimed again after that: %+v, want the answer %+v", name, got, paid)
			}
		}
		out, err := typed(t, "", "show", id("dead").String(), "--store", b.dsn)
		if err != nil || !strings.Contains(out, "kept for   23 h") {
			t.Errorf("got %q, %v, want that the answer is kept for a day", out, err)
		}
		if !strings.Contains(out, "resolved   by an operator") || strings.Contains(out, "owner") {
			t.Errorf("got %q, want that an operator resolved it, and no run", out)
		}
	})
}

func TestAnswerMayBeEmptyAndKeptForAnotherTime(t *testing.T) {
	b := newSQLite(t)
	b.fill(t)
	if out, err := typed(t, "", "resolve", id("dead").String(), "--status", "204", "--retention", "72h30m", "--store", b.dsn); err != nil || !strings.Contains(out, "204 with a body of 0 bytes, for 3 d") {
		t.Fatalf("resolve: got %q, %v", out, err)
	}
	r, err := b.Show(t.Context(), id("dead"))
	if err != nil || r.Answer == nil || r.Answer.Status != 204 || len(r.Answer.Body) != 0 || r.Retention < 72*time.Hour {
		t.Errorf("got %+v, %v, want a 204 without a body for 72 hours", r, err)
	}
}

func TestWhatIsNotStuckIsLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		for name, want := range map[string]string{
			"running": "a run holds it, and its lease lasts for another 10 h", "answered": "it is completed 201: nothing to resolve", "streamed": "it is completed 200: nothing to resolve",
			"never seen": "no key " + id("never seen").String(),
		} {
			before, _ := b.Show(t.Context(), id(name))
			for _, how := range [][]string{{"--free"}, {"--status", "201"}} {
				out, err := typed(t, "", append([]string{"resolve", id(name).String(), "--store", b.dsn}, how...)...)
				if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), want) || out != "" {
					t.Errorf("resolve %s %s: got %q, %v, want exit code %d and %q", name, how, out, err, exit.NotFine, want)
				}
			}
			after, err := b.Show(t.Context(), id(name))
			if errors.Is(err, idempotency.ErrNotFound) != (name == "never seen") || after.State != before.State || after.Owner != before.Owner {
				t.Errorf("%s: got %+v, %v afterwards, want what it was", name, after, err)
			}
		}
	})
}

func TestRunThatComesBackHasLostItsResolvedKey(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.migrate(t)
		ticket := b.claim(t, idempotency.Claim{ID: id("dead"), Lease: -time.Second})
		if _, err := typed(t, "", "resolve", id("dead").String(), "--status", "201", "--store", b.dsn); err != nil {
			t.Fatal(err)
		}
		if err := b.Complete(t.Context(), ticket, idempotency.Answer{Status: 500}, time.Hour); !errors.Is(err, idempotency.ErrFenced) {
			t.Errorf("Complete by the run = %v, want ErrFenced", err)
		}
		if got := b.again(t, id("dead")); got.Verdict != idempotency.ClaimReplay || got.Answer.Status != 201 {
			t.Errorf("claimed again: %+v, want the operator's 201", got)
		}
	})
}

func TestAnswersThatMakeNoSenseAreRefused(t *testing.T) {
	b := newSQLite(t)
	b.fill(t)
	for args, want := range map[string]string{
		"":                                         "want --free if the effect surely did not happen, or --status",
		"--free --status 201":                      "want one of the two",
		"--free --body-file -":                     "want one of the two",
		"--header A:b":                             "--status is missing",
		"--status 99":                              "--status 99: want 200 to 599",
		"--status 101":                             "--status 101: want 200 to 599",
		"--status 600":                             "--status 600: want 200 to 599",
		"--status 204 --body-file -":               "--status 204: it has no body",
		"--status 201 --retention 0s":              "--retention 0s: want more than nothing",
		"--status 201 --header A":                  `want "Name: value"`,
		"--status 201 --header :b":                 `want "Name: value"`,
		"--status 201 --header a(b:c":              `want "Name: value"`,
		"--status 201 --header A:\x01":             "control character",
		"--status 201 --header set-cookie:a=b":     "Set-Cookie is never replayed",
		"--status 201 --header retry-after:5":      "Retry-After is never replayed",
		"--status 201 --header ratelimit:r=1":      "Ratelimit is never replayed",
		"--status 201 --header content-length:3":   "Content-Length is never replayed",
		"--status 201 --body-file /does/not/exist": "no such file",
		"--status 201 --retenton 3h":               "did you mean --retention?",
		"--status 201 --free=perhaps":              "invalid boolean value",
	} {
		out, err := typed(t, "", append([]string{"resolve", id("dead").String(), "--store", b.dsn}, strings.Fields(args)...)...)
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("resolve %s: got %q, %v, want exit code %d and %q", args, out, err, exit.Usage, want)
		}
	}
	if r, err := b.Show(t.Context(), id("dead")); err != nil || r.State != idempotency.StateInProgress {
		t.Errorf("got %+v, %v afterwards, want the key as it was", r, err)
	}
	_, err := typed(t, "", "resolve", "--store", b.dsn, "--scope", "s", "--operation", "o", "--key-file", "-", "--status", "201", "--body-file", "-")
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "cannot both be stdin") {
		t.Errorf("two files on stdin: got %v, want exit code %d", err, exit.Usage)
	}
}
