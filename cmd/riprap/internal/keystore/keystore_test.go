package keystore

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestServerIsNotWaitedForLongerThanTold(t *testing.T) {
	for dsn, want := range map[string]time.Duration{"postgres://u@h/shop": 10 * time.Second, "postgres://u@h/shop?connect_timeout=3": 3 * time.Second} {
		if config, err := (Place{DSN: dsn}).configure(); err != nil || config.ConnectTimeout != want {
			t.Errorf("configure(%s) waits %v, %v, want %v", dsn, config.ConnectTimeout, err, want)
		}
	}
}

func TestAFileThatIsMadeIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	for range 2 { // the second time it is there
		s, err := Place{DSN: path, Label: "--store"}.Make(t.Context())
		if err != nil {
			t.Fatalf("Make = %v, want a store", err)
		}
		if list, err := s.List(t.Context(), idempotency.Filter{}); len(list) != 0 || err != nil {
			t.Errorf("List = %v, %v; want none", list, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, want it readable for its owner alone", info.Mode())
	}
	s, err := Place{DSN: path, Label: "--store"}.Open(t.Context())
	if err != nil {
		t.Fatalf("Open = %v, want the store that was made", err)
	}
	s.Close()
}

func TestAFileThatIsMadeLosesNothingThatWasAnswered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	s, err := Place{DSN: path, Label: "--store"}.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000"} {
		var got string
		if err := s.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("PRAGMA %s = %q, %v; want %s", pragma, got, err, want)
		}
	}
	info, err := os.Stat(path + "-wal") // keys and answers are in it too
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the log beside the file has mode %v, want it readable for its owner alone", info.Mode())
	}
}

func TestWhatCannotBeMadeIsSaid(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for dsn, want := range map[string]string{
		"":                            "--store is missing",
		"mysql://u:s3cret@h":          "a URL of another kind",
		filepath.Join(dir, "no", "x"): "no such file or directory",
		dir:                           "is a directory",
		text:                          "it is no SQLite database",
		"file:x?mode=memory":          "a database in memory",
	} {
		_, err := Place{DSN: dsn, Label: "--store"}.Make(t.Context())
		if _, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Make(%q) = %v, want a ConfigError about %q", dsn, err, want)
		}
	}
	if found, _ := os.ReadDir(dir); len(found) != 1 {
		t.Errorf("there are %v now, want only the text", found)
	}
}
