package keys

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

func TestDatabaseWithoutKeysIsLeftAsItIs(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		if _, err := b.db.Exec("CREATE TABLE other (n INTEGER)"); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"list"}, {"show", "12345678"}, {"resolve", "12345678", "--free"}} {
			out, err := typed(t, "", append(args, "--store", b.dsn)...)
			if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "no keys are kept in it (there is no table riprap_schema)") || out != "" {
				t.Errorf("%s: got %q, %v, want exit code %d and the reason", args[0], out, err, exit.Usage)
			}
		}
		if _, err := b.db.Exec("SELECT 1 FROM riprap_keys"); err == nil {
			t.Error("there is a table riprap_keys now, want none")
		}
	})
}

func TestTablesOfAnotherVersionAreRefused(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.migrate(t)
		if _, err := b.db.Exec("INSERT INTO riprap_schema (version) VALUES (99)"); err != nil {
			t.Fatal(err)
		}
		if _, err := typed(t, "", "list", "--store", b.dsn); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), "update riprap") {
			t.Errorf("newer tables: got %v, want exit code %d and what to do", err, exit.Usage)
		}
		if _, err := b.db.Exec("DELETE FROM riprap_schema"); err != nil {
			t.Fatal(err)
		}
		if _, err := typed(t, "", "list", "--store", b.dsn); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "version 0") || !strings.Contains(err.Error(), "start a service") {
			t.Errorf("older tables: got %v, want exit code %d and what to do", err, exit.Usage)
		}
	})
}

func TestWrongPathIsAnErrorAndNoNewFile(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "kyes.db")
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for dsn, want := range map[string]string{
		missing:                             "SQLite file " + missing + " does not exist",
		"file:" + filepath.ToSlash(missing): "does not exist",
		dir:                                 "is no file",
		text:                                "it is no SQLite database",
		"file:x.db?mode=memory":             "a database in memory is that of one process",
		"file::memory:":                     "a database in memory is that of one process",
		"file://elsewhere/x.db":             "the file: URI cannot be read",
		"":                                  "--store is missing",
	} {
		_, err := typed(t, "", "list", "--store", dsn)
		if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("list --store %s: got %v, want exit code %d and %q", dsn, err, exit.Usage, want)
		}
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("there are %v, %v now, want only the text", found, err)
	}
}

func TestFileIsFoundByPathAndByURI(t *testing.T) {
	b := newSQLite(t)
	b.fill(t)
	b.db.Close()
	odd := filepath.Join(t.TempDir(), "50% of #1?")
	if runtime.GOOS == "windows" {
		odd = filepath.Join(t.TempDir(), "50% of #1")
	}
	if err := os.Rename(b.dsn, odd); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(odd))
	encoded := strings.NewReplacer("%", "%25", "#", "%23", "?", "%3f", " ", "%20").Replace(filepath.ToSlash(odd))
	for _, dsn := range []string{
		odd, filepath.Base(odd), "file:" + encoded, "file://" + encoded, "file://localhost" + encoded, "file:" + filepath.Base(encoded),
		"file:" + encoded + "?_pragma=busy_timeout(100)&mode=rwc",
	} {
		if out, err := typed(t, "", "list", "--store", dsn); err != nil || !strings.Contains(out, "6 keys, 2 to be resolved") {
			t.Errorf("list --store %s: got %q, %v, want 6 keys", dsn, out, err)
		}
	}
}

func TestPasswordsAreNeverShown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	// A server that refuses everybody, and repeats what it was told.
	const refusal = "SFATAL\x00C28P01\x00Mno entry for s3cret\x00\x00"
	echo := talk(t, func(c net.Conn) { c.Write([]byte("E\x00\x00\x00" + string(rune(4+len(refusal))) + refusal)) })
	for _, dsn := range []string{
		"postgres://u:s3cret@" + nobody + "/shop?sslmode=disable",
		"postgres://u:s3%63ret@" + echo + "/shop?sslmode=disable",
		"postgres://u:s3cret@" + echo + "/shop?sslmode=disable",
		"postgres://u:s3%63ret@" + nobody + "/shop?sslmode=disable&password=s3cret",
		"postgres://u:s3cret#more@" + nobody + "/shop",
		"postgres://u:s3cret@127.0.0.1:s3cret/shop",
		"postgres://u:s3cret@127.0.0.1/shop?sslmode=s3cret",
		"postgres://u:%s3cret@127.0.0.1/shop",
		"postgresql://u:s3cret@" + nobody + "/shop?sslmode=disable",
		"mysql://u:s3cret@127.0.0.1/shop",
		"host=127.0.0.1 user=u password=s3cret",
		"u:s3cret@127.0.0.1/shop",
		"postgres:u:s3cret@127.0.0.1/shop",
		"file:s3cret@x.db?hexkey=s3cret",
	} {
		out, err := typed(t, "", "list", "--store", dsn)
		if err == nil || strings.Contains(out+err.Error(), "s3") {
			t.Errorf("list --store %s: got %q, %v, want an error without the password", dsn, out, err)
		}
	}
}

// talk starts a server on loopback that does something with each connection after its first bytes, and returns its address.
func talk(t *testing.T, with func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1024))
			with(c)
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestServerThatIsAwayIsNoMistakeInTheArguments(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	_, err = typed(t, "", "list", "--store", "postgres://u@"+nobody+"/shop?sslmode=disable")
	if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), `riprap keys list: PostgreSQL, database "shop" at 127.0.0.1:`) || !strings.Contains(err.Error(), "refused") || strings.ContainsAny(err.Error(), "\n\t") {
		t.Errorf("got %v, want exit code %d, where, and that the connection is refused, in one line", err, exit.NotFine)
	}
}

func TestErrorOfSeveralServersIsOneLine(t *testing.T) {
	_, err := typed(t, "", "list", "--store", "postgres:///shop?user=u&sslmode=disable&host=/does/not/exist,/neither/does/this")
	if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), "/neither/does/this") || strings.ContainsAny(err.Error(), "\n\t") {
		t.Errorf("got %v, want exit code %d and one line that names both", err, exit.NotFine)
	}
}

// The server takes the connection and says nothing.
func TestCtrlCEndsTheWaitForAServer(t *testing.T) {
	arrived, over := make(chan struct{}), make(chan struct{})
	silent := talk(t, func(net.Conn) { close(arrived); <-over })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	for verb, want := range map[string]string{"resolve": "riprap keys resolve: interrupted; riprap keys show tells whether it was done"} {
		err := run(ctx, []string{verb, "12345678", "--free", "--store", "postgres://u@" + silent + "/shop?sslmode=disable"}, nil, nil)
		if err == nil || err.Error() != want || exit.Code(err) != exit.NotFine {
			t.Errorf("%s: got %v, want %s", verb, err, want)
		}
	}
	close(over)
	if err := run(ctx, []string{"list", "--store", "postgres://u@" + silent + "/shop?sslmode=disable"}, nil, nil); err == nil || err.Error() != "riprap keys list: interrupted" {
		t.Errorf("list: got %v, want that it was interrupted", err)
	}
}

func TestFileThatStaysLockedIsNamed(t *testing.T) {
	b := newSQLite(t)
	b.fill(t)
	b.db.SetMaxOpenConns(1)
	if _, err := b.db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dsn := "file:" + filepath.ToSlash(b.dsn) + "?_pragma=busy_timeout(20)"
	err := run(ctx, []string{"resolve", id("dead").String(), "--free", "--store", dsn}, nil, nil)
	if exit.Code(err) != exit.NotFine || !strings.Contains(err.Error(), "locked") || !strings.Contains(err.Error(), "keys.db") {
		t.Errorf("resolve: got %v, want exit code %d and that the file is locked", err, exit.NotFine)
	}
}

func TestFileThatIsLockedForAMomentIsWaitedFor(t *testing.T) {
	b := newSQLite(t)
	b.fill(t)
	b.db.SetMaxOpenConns(1)
	if _, err := b.db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	unlocked := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() {
		_, err := b.db.Exec("ROLLBACK")
		unlocked <- err
	})
	if _, err := typed(t, "", "resolve", id("dead").String(), "--free", "--store", b.dsn); err != nil {
		t.Errorf("resolve: got %v, want it to wait", err)
	}
	if err := <-unlocked; err != nil {
		t.Error(err)
	}
}

// A service that only reads may say so of itself.
func TestModeOfTheURIIsThatOfTheService(t *testing.T) {
	b := newSQLite(t)
	b.fill(t)
	if _, err := typed(t, "", "resolve", id("dead").String(), "--free", "--store", "file:"+filepath.ToSlash(b.dsn)+"?mode=ro"); err != nil {
		t.Errorf("resolve: got %v, want it to write", err)
	}
}
