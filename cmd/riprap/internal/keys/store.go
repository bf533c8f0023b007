package keys

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
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// connectTime bounds the wait for a server that does not answer.
const connectTime = 10 * time.Second

// A store is the database that --store names.
type store struct {
	*sqlstore.Store
	db      *sql.DB
	name    string   // for people, without secrets
	secrets []string // that no error must show
	tables  string   // a query: how many of ours there are
}

func (s *store) Close() error { return s.db.Close() }

// A configError is about what --store names, and not about a server that is away for a moment.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// open opens the database that --store names, and makes sure that keys are kept in it. It creates nothing.
func open(ctx context.Context, dsn string) (*store, error) {
	var s *store
	var err error
	switch scheme, _, found := strings.Cut(dsn, "://"); {
	case dsn == "":
		err = errors.New("--store is missing: want postgres://… or a SQLite file")
	case found && (scheme == "postgres" || scheme == "postgresql"):
		s, err = openPostgreSQL(dsn)
	case found && scheme != "file":
		err = errors.New("--store: a URL of another kind: want postgres://… or a SQLite file")
	case strings.HasPrefix(dsn, "file:"):
		s, err = openURI(dsn)
	default:
		s, err = openFile(dsn, nil)
	}
	if err != nil {
		return nil, configError{err}
	}
	if err := s.check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func openPostgreSQL(dsn string) (*store, error) {
	// No error of a parser is shown: each quotes what it cannot read, and that may be a part of the password.
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("--store is no valid URL: a password with special characters has to be percent-encoded; better leave it out and set PGPASSWORD")
	}
	config, err := configure(dsn)
	if err != nil {
		return nil, errors.New("--store: PostgreSQL's driver does not understand the URL: want postgres://USER@HOST:PORT/DATABASE, and behind ? only parameters that PostgreSQL has")
	}
	s := &store{
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
func configure(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTime)
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "riprap keys" // for whoever looks at pg_stat_activity
	}
	return config, nil
}

// openURI opens a SQLite file as services name it, file:keys.db?_pragma=….
func openURI(dsn string) (*store, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Host != "" && u.Host != "localhost" {
		return nil, errors.New("--store: the file: URI cannot be read: want file:PATH, or just the path")
	}
	path := u.Path
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return nil, errors.New("--store: the path of the file: URI is not percent-encoded as it should be; the path alone will do")
		}
	}
	query := u.Query()
	if query.Get("mode") == "memory" || path == ":memory:" {
		return nil, errors.New("--store: a database in memory is that of one process, and nobody else sees it")
	}
	return openFile(path, query)
}

// openFile opens a SQLite file that exists.
func openFile(path string, query url.Values) (*store, error) {
	name := "the file that --store names"
	if !strings.ContainsAny(path, "@=") { // what is no path may be a connection string with a password
		name = "SQLite file " + path
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: want one that a service keeps its keys in, or postgres://…", name)
	case err != nil:
		if wrong, ok := errors.AsType[*fs.PathError](err); ok {
			err = wrong.Err
		}
		return nil, fmt.Errorf("%s: %w", name, err)
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
	// Of two pragmas that say the same the last one holds: what the service wants stays.
	query["_pragma"] = append([]string{"busy_timeout(5000)", "synchronous(full)"}, query["_pragma"]...)
	file := url.URL{Scheme: "file", OmitHost: true, Path: "/" + strings.TrimPrefix(filepath.ToSlash(absolute), "/"), RawQuery: query.Encode()}
	s := &store{name: name, tables: "SELECT count(*) FROM sqlite_schema WHERE name = 'riprap_schema'"}
	if s.db, err = sql.Open("sqlite3", file.String()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.Store = sqlstore.SQLite(s.db)
	return s, nil
}

// check looks whether there are the tables that this program knows. It makes none: the database may be the wrong one.
func (s *store) check(ctx context.Context) error {
	ours, err := fs.Glob(s.Migrations(), "*.sql")
	if err != nil {
		return err
	}
	var there, version int
	if err := s.db.QueryRowContext(ctx, s.tables).Scan(&there); err != nil {
		return s.failed(err)
	}
	if there == 0 {
		return configError{fmt.Errorf("%s: no keys are kept in it (there is no table riprap_schema): is it the right one? A service makes the tables when it starts", s.name)}
	}
	if err := s.db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM riprap_schema").Scan(&version); err != nil {
		return s.failed(err)
	}
	switch {
	case version > len(ours):
		return configError{fmt.Errorf("%s: its tables have version %d, and this program knows %d: update riprap", s.name, version, len(ours))}
	case version < len(ours):
		return configError{fmt.Errorf("%s: its tables have version %d, and this program needs %d: start a service that has the riprap of this program, which brings them up to date", s.name, version, len(ours))}
	}
	return nil
}

// failed is an error of the database, with its name and without secrets.
func (s *store) failed(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, secret := range s.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if strings.Contains(text, "not a database") {
		return configError{errors.New(s.name + ": it is no SQLite database")}
	}
	return errors.New(s.name + ": " + text)
}

// counted is a number with its word.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}
