package proxy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// A store is where the keys of all services are.
type store struct {
	*sqlstore.Store
	db *sql.DB
}

// openStore opens the store that a name stands for, and makes what is not there yet.
func openStore(ctx context.Context, name string) (*store, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	s := &store{}
	switch scheme, _, found := strings.Cut(name, "://"); {
	case found && (scheme == "postgres" || scheme == "postgresql"):
		config, err := pgx.ParseConfig(name)
		if err != nil {
			return nil, errors.New("store: PostgreSQL's driver does not understand the URL: want postgres://USER@HOST:PORT/DATABASE")
		}
		config.ConnectTimeout = 10 * time.Second
		s.db = stdlib.OpenDB(*config)
		s.Store = sqlstore.PostgreSQL(s.db)
	case found:
		return nil, errors.New("store: a URL of another kind: want postgres://… or a SQLite file")
	default:
		absolute, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		query := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(wal)", "synchronous(full)"}}
		file := url.URL{Scheme: "file", OmitHost: true, Path: "/" + strings.TrimPrefix(filepath.ToSlash(absolute), "/"), RawQuery: query.Encode()}
		if s.db, err = sql.Open("sqlite3", file.String()); err != nil {
			return nil, err
		}
		s.Store = sqlstore.SQLite(s.db)
	}
	if err := s.Migrate(ctx); err != nil {
		s.db.Close()
		return nil, fmt.Errorf("the store of the keys: %w", err)
	}
	return s, nil
}

func (s *store) Close() error { return s.db.Close() }
