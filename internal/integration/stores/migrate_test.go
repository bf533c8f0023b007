package stores

import (
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	for _, d := range databases {
		for _, more := range []string{"", "&default_transaction_isolation=serializable"} {
			if more != "" && d.name != "PostgreSQL" {
				continue
			}
			t.Run(d.name+more, func(t *testing.T) {
				driver, dsn := d.open(t)
				var processes sync.WaitGroup
				for i := range 16 {
					s := d.store(dial(t, driver, dsn+more))
					processes.Go(func() {
						if err := s.Migrate(t.Context()); err != nil {
							t.Errorf("Migrate: %v", err)
							return
						}
						if got, err := s.Claim(t.Context(), newClaim(fmt.Sprint(i))); err != nil || got.Verdict != idempotency.ClaimWon {
							t.Errorf("Claim: %+v, %v, want it won", got, err)
						}
					})
				}
				processes.Wait()
			})
		}
	}
}

func TestMigratingAgainKeepsTheKeys(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		mustClaim(t, s, newClaim("a"))
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("Migrate: %v", err)
		}
		if got, err := s.Claim(t.Context(), newClaim("a")); err != nil || got.Verdict != idempotency.ClaimInFlight {
			t.Errorf("Claim: %+v, %v, want ClaimInFlight", got, err)
		}
	})
}

func TestTheFilesByThemselvesAreAMigration(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := connect(t, d)
			s := d.store(db)
			names, err := fs.Glob(s.Migrations(), "*.sql")
			if err != nil || len(names) == 0 {
				t.Fatalf("Migrations: %q, %v", names, err)
			}
			for _, name := range names {
				text, err := fs.ReadFile(s.Migrations(), name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.Exec(string(text)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if err := s.Migrate(t.Context()); err != nil {
				t.Errorf("Migrate: %v", err)
			}
			mustClaim(t, s, newClaim("a"))
		})
	}
}

func TestTablesOfANewerVersionAreLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		if _, err := db.Exec("INSERT INTO riprap_schema VALUES (7)"); err != nil {
			t.Fatal(err)
		}
		err := s.Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), "version 7") || !strings.Contains(err.Error(), "update it") {
			t.Errorf("Migrate: %v, want that it names version 7 and says what to do", err)
		}
		var n int
		if err := db.QueryRow("SELECT count(*) FROM riprap_schema").Scan(&n); err != nil || n != 2 {
			t.Errorf("%d versions, %v, want the 2 there were", n, err)
		}
	})
}

func TestSettingsThatCouldLoseAKeyAreRefused(t *testing.T) {
	file := func(t *testing.T, pragmas ...string) *sqlstore.Store {
		dsn := "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "keys.db")) + "?_pragma=busy_timeout(5000)"
		for _, p := range pragmas {
			dsn += "&_pragma=" + p
		}
		return sqlstore.SQLite(dial(t, "sqlite3", dsn))
	}
	for name, test := range map[string]struct {
		open func(*testing.T) *sqlstore.Store
		want string
	}{
		"no journal":        {func(t *testing.T) *sqlstore.Store { return file(t, "journal_mode(OFF)") }, "journal_mode"},
		"journal in memory": {func(t *testing.T) *sqlstore.Store { return file(t, "journal_mode(MEMORY)") }, "journal_mode"},
		"all in memory":     {func(t *testing.T) *sqlstore.Store { return sqlstore.SQLite(dial(t, "sqlite3", ":memory:")) }, "journal_mode"},
		"never synced":      {func(t *testing.T) *sqlstore.Store { return file(t, "journal_mode(WAL)", "synchronous(OFF)") }, "synchronous"},
		"synced later":      {func(t *testing.T) *sqlstore.Store { return file(t, "journal_mode(WAL)", "synchronous(NORMAL)") }, "synchronous"},
		"committed later": {func(t *testing.T) *sqlstore.Store {
			_, dsn := openPostgreSQL(t)
			return sqlstore.PostgreSQL(dial(t, "pgx", dsn+"&synchronous_commit=off"))
		}, "synchronous_commit"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.open(t).Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Migrate: %v, want it to name %s", err, test.want)
			}
		})
	}
	for _, mode := range []string{"WAL", "DELETE", "TRUNCATE", "PERSIST"} {
		if err := file(t, "journal_mode("+mode+")", "synchronous(FULL)").Migrate(t.Context()); err != nil {
			t.Errorf("Migrate with journal_mode=%s: %v", mode, err)
		}
	}
}
