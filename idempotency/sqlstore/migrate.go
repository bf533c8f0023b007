package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the steps that make the tables of a store, for those who change schemas with a tool of their own instead of calling
// Migrate: SQL files, to be run once each, in the order of their names. Each notes its number in riprap_schema, so that
// Migrate knows what was done.
func (s *Store) Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations/"+s.name)
	if err != nil {
		panic(err) // the folder is in the program
	}
	return sub
}

// Migrate makes the tables or brings them up to date. Any number of processes may do so at once, as they start; one does the work
// and the others wait. It changes nothing if all is done already, and needs no rights then but to read. It fails if a
// newer version of this package has been at the tables, or if the connection's settings could lose a key that was taken.
func (s *Store) Migrate(ctx context.Context) (err error) {
	conn, err := s.conn(ctx)
	if err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	defer conn.Close()
	if err := s.checkSettings(ctx, conn); err != nil {
		return err
	}
	names, err := fs.Glob(s.Migrations(), "*.sql") // sorted
	if err != nil {
		return err
	}
	have, err := s.version(ctx, conn)
	if err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	if have == len(names) {
		return nil
	}
	if err := s.migrate(ctx, conn, names); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	return nil
}

// conn connects. Several connections that switch a new SQLite file to WAL at once fail with "database is locked", whatever their busy_timeout;
// once it is switched they do not.
func (s *Store) conn(ctx context.Context) (conn *sql.Conn, err error) {
	for n := range attempts {
		conn, err = s.db.Conn(ctx)
		if err == nil || s.dialect != sqlite || ctx.Err() != nil {
			break
		}
		pause(ctx, n)
	}
	return conn, err
}

func (s *Store) migrate(ctx context.Context, conn *sql.Conn, names []string) (err error) {
	// One at a time, from before the version is read. The number is any that nobody else uses for a lock.
	begin := []string{"BEGIN IMMEDIATE"}
	if s.dialect == postgresql {
		begin = []string{"BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT pg_advisory_xact_lock(7307199694125232)"}
	}
	for _, statement := range begin {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			rollback(ctx, conn)
			return err
		}
	}
	defer func() {
		if err != nil {
			rollback(ctx, conn)
		}
	}()
	have, err := s.version(ctx, conn)
	if err != nil {
		return err
	}
	if have > len(names) {
		return fmt.Errorf("the tables have version %d, and this program knows %d: update it", have, len(names))
	}
	for _, name := range names[have:] {
		text, err := fs.ReadFile(s.Migrations(), name)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", path.Join(s.name, name), err)
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

func rollback(ctx context.Context, conn *sql.Conn) {
	conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
}

// version returns the version of the tables; zero if there are none.
func (s *Store) version(ctx context.Context, conn *sql.Conn) (v int, err error) {
	exists := "SELECT count(*) FROM sqlite_schema WHERE name = 'riprap_schema'"
	if s.dialect == postgresql {
		// Only a query of a table makes a session look at what others have done since it last looked; to_regclass alone remembers.
		exists = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('riprap_schema')"
	}
	if err := conn.QueryRowContext(ctx, exists).Scan(&v); err != nil || v == 0 {
		return 0, err
	}
	return v, conn.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM riprap_schema").Scan(&v)
}

// checkSettings refuses connections by which a key that was taken could be lost, and its request be run twice.
func (s *Store) checkSettings(ctx context.Context, conn *sql.Conn) error {
	if s.dialect == postgresql {
		var commit string
		if err := conn.QueryRowContext(ctx, "SELECT current_setting('synchronous_commit')").Scan(&commit); err != nil {
			return fmt.Errorf("sqlstore: migrate: %w", err)
		}
		if commit == "off" {
			return errors.New("sqlstore: synchronous_commit is off: a crash of the server would lose keys that were taken, and their requests would run again")
		}
		return nil
	}
	var mode string
	var synchronous int
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	if err := conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	switch strings.ToLower(mode) {
	case "off", "memory":
		return fmt.Errorf("sqlstore: journal_mode is %s: a crash could ruin the database; say journal_mode=WAL in the data source name, of a file", mode)
	}
	const full = 2
	if synchronous < full {
		return errors.New("sqlstore: synchronous is less than FULL: the last keys that were taken could be lost with the power, and their requests would run again; say synchronous=FULL in the data source name")
	}
	return nil
}
