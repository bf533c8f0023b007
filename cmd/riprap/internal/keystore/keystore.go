// Package keystore opens stores of idempotency keys by the name that a user gives: a URL of PostgreSQL, or a SQLite file. No error
// of it holds a password.
package keystore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// connectTime bounds the wait for a server that does not answer.
const connectTime = 10 * time.Second

// mostConnections is how many a service that keeps keys has to its database.
const mostConnections = 32

// A Place is where a store is.
type Place struct {
	DSN     string // postgres://…, a path, or file:PATH
	Label   string // what the user gave it by, such as --store: errors begin with it
	Program string // what a server shows of its clients, such as "riprap keys"
}

// A Store is one that is open. It is used like a sqlstore.Store, and its errors are told by Failed.
type Store struct {
	*sqlstore.Store
	db      *sql.DB
	name    string
	secrets []string // that no error must show
	tables  string   // a query: how many of ours there are
}

// Name is what the store is called for people, without secrets.
func (s *Store) Name() string { return s.name }

// Close closes the connections.
func (s *Store) Close() error { return s.db.Close() }

// A ConfigError is about what the place names, and not about a server that is away for a moment.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// Open opens a store that is there, and makes sure that keys are kept in it. It creates nothing.
func (p Place) Open(ctx context.Context) (*Store, error) {
	s, err := p.open(false)
	if err != nil {
		return nil, err
	}
	if err := s.check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Make opens a store to keep keys in. It creates a SQLite file that does not exist, readable for its owner only, and brings the
// tables up to date.
func (p Place) Make(ctx context.Context) (*Store, error) {
	s, err := p.open(true)
	if err != nil {
		return nil, err
	}
	// Each request holds a connection for as long as one statement takes. A server has about a hundred for all its clients.
	s.db.SetMaxOpenConns(mostConnections)
	s.db.SetMaxIdleConns(mostConnections)
	if err := s.Migrate(ctx); err != nil {
		s.Close()
		return nil, s.Failed(err)
	}
	return s, nil
}

func (p Place) open(create bool) (s *Store, err error) {
	switch scheme, _, found := strings.Cut(p.DSN, "://"); {
	case p.DSN == "":
		err = p.wrong(" is missing: want postgres://… or a SQLite file")
	case found && (scheme == "postgres" || scheme == "postgresql"):
		s, err = p.postgreSQL()
	case found && scheme != "file":
		err = p.wrong(": a URL of another kind: want postgres://… or a SQLite file")
	case strings.HasPrefix(p.DSN, "file:"):
		s, err = p.uri(create)
	default:
		s, err = p.file(p.DSN, nil, create)
	}
	if err != nil {
		return nil, &ConfigError{err}
	}
	return s, nil
}

func (p Place) wrong(what string) error { return errors.New(p.Label + what) }

func (p Place) postgreSQL() (*Store, error) {
	// No error of a parser is shown: each quotes what it cannot read, and that may be a part of the password.
	u, err := url.Parse(p.DSN)
	if err != nil {
		return nil, p.wrong(" is no valid URL: a password with special characters has to be percent-encoded; better leave it out and set PGPASSWORD")
	}
	config, err := p.configure()
	if err != nil {
		return nil, p.wrong(": PostgreSQL's driver does not understand the URL: want postgres://USER@HOST:PORT/DATABASE, and behind ? only parameters that PostgreSQL has")
	}
	s := &Store{
		db:     stdlib.OpenDB(*config),
		name:   fmt.Sprintf("PostgreSQL, database %q at %s:%d", config.Database, config.Host, config.Port),
		tables: "SELECT count(to_regclass('riprap_schema'))",
	}
	s.Store = sqlstore.PostgreSQL(s.db)
	typed, _ := u.User.Password()
	s.secrets = []string{config.Password, typed, u.Query().Get("sslpassword")}
	return s, nil
}

// configure reads the URL of a PostgreSQL. A server that says nothing is not waited for as long as TCP would.
func (p Place) configure() (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(p.DSN)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTime)
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = p.Program // for whoever looks at pg_stat_activity
	}
	return config, nil
}

// uri opens a SQLite file as services name it, file:keys.db?_pragma=….
func (p Place) uri(create bool) (*Store, error) {
	u, err := url.Parse(p.DSN)
	if err != nil || u.Host != "" && u.Host != "localhost" {
		return nil, p.wrong(": the file: URI cannot be read: want file:PATH, or just the path")
	}
	path := u.Path
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return nil, p.wrong(": the path of the file: URI is not percent-encoded as it should be; the path alone will do")
		}
	}
	query := u.Query()
	if query.Get("mode") == "memory" || path == ":memory:" {
		return nil, p.wrong(": a database in memory is that of one process, and nobody else sees it")
	}
	return p.file(path, query, create)
}

// file opens a SQLite file. One that does not exist is an error, or made.
func (p Place) file(path string, query url.Values, create bool) (*Store, error) {
	name := "the file that " + p.Label + " names"
	if !strings.ContainsAny(path, "@=") { // what is no path may be a connection string with a password
		name = "SQLite file " + path
	}
	if create {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would make it readable for all
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, bare(err))
		}
		f.Close()
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: want one that a service keeps its keys in, or postgres://…", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, bare(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", name)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if query == nil {
		query = url.Values{}
	}
	query.Set("mode", "rw")
	if !query.Has("modeof") {
		query.Set("modeof", absolute) // keys and answers are in the log beside it, which would be readable for all otherwise
	}
	// Of two pragmas that say the same the last one holds: what the service wants stays.
	pragmas := []string{"busy_timeout(5000)", "synchronous(full)"}
	if create {
		pragmas = append(pragmas, "journal_mode(wal)")
	}
	query["_pragma"] = append(pragmas, query["_pragma"]...)
	file := url.URL{Scheme: "file", OmitHost: true, Path: "/" + strings.TrimPrefix(filepath.ToSlash(absolute), "/"), RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20")} // SQLite takes a + for what it is
	s := &Store{name: name, tables: "SELECT count(*) FROM sqlite_schema WHERE name = 'riprap_schema'"}
	if s.db, err = sql.Open("sqlite3", file.String()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.Store = sqlstore.SQLite(s.db)
	return s, nil
}

// bare is an error without the name of its file.
func bare(err error) error {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err
	}
	return err
}

// check looks whether there are the tables that this program knows. It makes none: the database may be the wrong one.
func (s *Store) check(ctx context.Context) error {
	ours, err := fs.Glob(s.Migrations(), "*.sql")
	if err != nil {
		return err
	}
	var there, version int
	if err := s.db.QueryRowContext(ctx, s.tables).Scan(&there); err != nil {
		return s.Failed(err)
	}
	if there == 0 {
		return &ConfigError{fmt.Errorf("%s: no keys are kept in it (there is no table riprap_schema): is it the right one? A service makes the tables when it starts", s.name)}
	}
	if err := s.db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM riprap_schema").Scan(&version); err != nil {
		return s.Failed(err)
	}
	switch {
	case version > len(ours):
		return &ConfigError{fmt.Errorf("%s: its tables have version %d, and this program knows %d: update riprap", s.name, version, len(ours))}
	case version < len(ours):
		return &ConfigError{fmt.Errorf("%s: its tables have version %d, and this program needs %d: start a service that has the riprap of this program, which brings them up to date", s.name, version, len(ours))}
	}
	return nil
}

// Failed is an error of the database, with its name and without secrets.
func (s *Store) Failed(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, secret := range s.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if strings.Contains(text, "not a database") {
		return &ConfigError{errors.New(s.name + ": it is no SQLite database")}
	}
	return errors.New(s.name + ": " + text)
}
