package keys

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/golden"
	"github.com/riprap-go/riprap/idempotency"
)

func TestShowTellsAllThatIsKnownOfAKey(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		var all strings.Builder
		for _, name := range []string{"answered", "streamed", "running", "dead", "runs again", "unknown"} {
			out, err := typed(t, "", "show", "--store", b.dsn, id(name).String())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all.WriteString(out + "\n")
		}
		golden.Check(t, "show.txt", b.steady(all.String()))
		out, err := typed(t, "", "show", "--json", "--store", b.dsn, id("answered").String())
		var got struct{ Key keyJSON }
		if e := json.Unmarshal([]byte(out), &got); e != nil || err != nil {
			t.Fatalf("got %s, %v, %v", out, err, e)
		}
		if k := got.Key; k.Answer == nil || strings.Join(k.Answer.HeaderNames, " ") != "Content-Type Location" || k.Answer.BodyBytes == nil || *k.Answer.BodyBytes != 10 || k.Generation != 1 || len(k.Owner) != 32 {
			t.Errorf("show --json: got %s, want names of fields, size of the body, generation and owner", out)
		}
		if strings.Contains(all.String()+out, "/charges/17") {
			t.Error("the value of a field is shown, want its name only")
		}
	})
}

func TestBodyIsPrintedAsItIs(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		if out, err := typed(t, "", "show", "--body", "--store", b.dsn, id("answered").String()); out != string(paid.Body) || err != nil {
			t.Errorf("show --body: got %q, %v, want %q", out, err, paid.Body)
		}
		for name, want := range map[string]string{"streamed": "not kept", "unknown": "no answer (unknown): it was run", "dead": "no answer (lease over): its run was lost"} {
			out, err := typed(t, "", "show", "--body", "--store", b.dsn, id(name).String())
			if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), want) || out != "" {
				t.Errorf("show --body of %s: got %q, %v, want exit code %d and %q", name, out, err, exit.NotFine, want)
			}
		}
	})
}

// That is what an operator looks for at the payment provider.
func TestChildIsTheKeyThatTheHandlerSent(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.fill(t)
		want := id("unknown").ChildKey("charge") + "\n"
		for _, which := range [][]string{
			{id("unknown").String()[:10]}, {"--scope", "customer 7", "--operation", "POST /charges", "--key-file", "-"},
		} {
			out, err := typed(t, "key-unknown\n", append([]string{"show", "--child", "charge", "--store", b.dsn}, which...)...)
			if out != want || err != nil {
				t.Errorf("show --child charge %q: got %q, %v, want %q", which, out, err, want)
			}
		}
	})
}

func TestKeyIsFoundByWhatItsIDIsMadeOf(t *testing.T) {
	b := newSQLite(t)
	b.migrate(t)
	tricky := idempotency.NewID("customer 7", "POST /charges", `a "b" \c`)
	b.claim(t, idempotency.Claim{ID: tricky})
	b.claim(t, idempotency.Claim{ID: id("1")})
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("key-1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		stdin, file string
		want        idempotency.ID
	}{
		"bare":           {"key-1", "-", id("1")},
		"with a newline": {"key-1\n", "-", id("1")},
		"quoted":         {`"key-1"`, "-", id("1")},
		"with escapes":   {`"a \"b\" \\c"` + "\n", "-", tricky},
		"in a file":      {"", file, id("1")},
	} {
		out, err := typed(t, test.stdin, "show", "--store", b.dsn, "--scope", "customer 7", "--operation", "POST /charges", "--key-file", test.file)
		if err != nil || !strings.Contains(out, test.want.String()) {
			t.Errorf("%s: got %q, %v, want the key %s", name, out, err, test.want)
		}
	}
	for name, stdin := range map[string]string{
		"nothing": "\n", "not closed": `"s3cret`, "a wrong escape": `"s3cret\n"`, "something behind it": `"s3cret", "k"`, "too long": strings.Repeat("s3cret", 50),
	} {
		_, err := typed(t, stdin, "show", "--store", b.dsn, "--scope", "customer 7", "--operation", "POST /charges", "--key-file", "-")
		if exit.Code(err) != exit.Usage || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want exit code %d and nothing of the key", name, err, exit.Usage)
		}
	}
	_, err := typed(t, "s3cret", "show", "--store", b.dsn, "--scope", "customer 7", "--operation", "POST /charges", "--key-file", "-")
	if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), "never used with this scope and operation") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a key that is not there: got %v, want exit code %d, the reason, and nothing of the key", err, exit.NotFine)
	}
	_, err = typed(t, "key-1", "show", "--store", b.dsn, "--scope", "customer 7", "--operation", "POST /customers/{id}/charges", "--key-file", "-")
	if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), "is a pattern") {
		t.Errorf("a pattern for an operation: got %v, want exit code %d and that it is one", err, exit.NotFine)
	}
}

func TestFirstDigitsNameAKeyIfNoOtherHasThem(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.migrate(t)
		for _, id := range []idempotency.ID{
			{0, 0, 0, 0, 1}, {0xab, 0xcd, 0xef, 0x01, 0x20}, {0xab, 0xcd, 0xef, 0x01, 0x2f, 1}, {0xab, 0xcd, 0xef, 0x02}, {0xff, 0xff, 0xff, 0xff, 0xff},
		} {
			b.claim(t, idempotency.Claim{ID: id})
		}
		for digits, want := range map[string]string{
			"abcdef02":                           "abcdef0200",
			"ABCDEF02":                           "abcdef0200",
			"abcdef0120":                         "abcdef0120",
			"abcdef012f":                         "abcdef012f01",
			"abcdef01200":                        "abcdef01200",
			"00000000":                           "0000000001",
			"ffffffff":                           "ffffffffff",
			"fffffffffff":                        "!no key begins with fffffffffff",
			"abcdef03":                           "!no key begins with abcdef03",
			"abcdef012":                          "!several keys begin with abcdef012, such as\n  abcdef0120",
			"abcdef01":                           "!several keys begin with abcdef01",
			"abcdef0":                            "!is no ID",
			"abcdef0g":                           "!is no ID",
			"abcdef02" + strings.Repeat("0", 56): "abcdef0200",
			"abcdef02" + strings.Repeat("0", 55) + "1": "!no key abcdef02",
		} {
			out, err := typed(t, "", "show", "--store", b.dsn, digits)
			switch refused, isRefused := strings.CutPrefix(want, "!"); {
			case isRefused && (err == nil || !strings.Contains(err.Error(), refused)):
				t.Errorf("show %s: got %q, %v, want the error %q", digits, out, err, refused)
			case !isRefused && (err != nil || !strings.Contains(out, "ID         "+want)):
				t.Errorf("show %s: got %q, %v, want %s…", digits, out, err, want)
			}
		}
	})
}

func FuzzNoIDStandsBetweenThatBeforeAndThoseThatBeginWithTheDigits(f *testing.F) {
	f.Add("00000000", []byte{0})
	f.Add("abcdef01", []byte{0xab, 0xcd, 0xef, 0x00, 0xff})
	f.Add("ffffffff0", []byte{0xff})
	f.Fuzz(func(t *testing.T, digits string, other []byte) {
		p := pick{}
		if p.take([]string{digits}) != nil || len(p.digits) == 64 {
			return
		}
		var id idempotency.ID
		copy(id[:], other)
		after, text := before(p.digits).String(), id.String()
		if has := strings.HasPrefix(text, p.digits); has && text <= after && strings.Trim(text, "0") != "" || !has && text > after && text < p.digits {
			t.Errorf("before(%s) = %s, and %s stands on the wrong side of it", p.digits, after, text)
		}
	})
}

func FuzzUnquotedReadsWhatIsQuoted(f *testing.F) {
	f.Add(`a "b" \c`)
	f.Add("")
	f.Fuzz(func(t *testing.T, key string) {
		quoted := `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(key) + `"`
		if got, err := unquoted(quoted); got != key || err != nil {
			t.Errorf("unquoted(%q) = %q, %v, want %q", quoted, got, err, key)
		}
		if strings.HasPrefix(key, `"`) {
			unquoted(key) // whatever it is
		}
	})
}
