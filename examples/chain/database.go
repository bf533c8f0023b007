package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"
)

// A database is what is at the end of the chain.
type database struct {
	*sql.DB
	name string

	quick, endless string // queries that take no time, and for ever

	// working asks the database itself, over a connection of its own, whether a query of ours is still at work: that
	// database/sql has returned does not prove it.
	working func(context.Context) (bool, error)

	close func()
}

// amount asks what takes no time.
func (d *database) amount(ctx context.Context) (cents int, err error) { return d.ask(ctx, d.quick) }

// hang asks what takes for ever. It ends when ctx does.
func (d *database) hang(ctx context.Context) (cents int, err error) { return d.ask(ctx, d.endless) }

func (d *database) ask(ctx context.Context, query string) (cents int, err error) {
	err = d.QueryRowContext(ctx, query).Scan(&cents)
	if err != nil && ctx.Err() != nil {
		// What a driver says of a query that was stopped differs, and need not say why.
		return 0, fmt.Errorf("stopped, %w: %w", context.Cause(ctx), err)
	}
	return cents, err
}

// open opens the PostgreSQL database of a DSN, or without one a SQLite database of our own.
func open(ctx context.Context, dsn string) (*database, error) {
	if dsn == "" {
		return openSQLite()
	}
	return openPostgreSQL(ctx, dsn)
}

// openSQLite opens a new database in a file in a temporary folder, which close removes.
func openSQLite() (*database, error) {
	dir, err := os.MkdirTemp("", "riprap-chain-")
	if err != nil {
		return nil, err
	}
	file := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(filepath.Join(dir, "payments.db"))}
	d := &database{
		name:  "SQLite",
		quick: `SELECT sum(cents) FROM payments`,
		// It reads a table, so that it holds a lock on the file for as long as it works.
		endless: `WITH RECURSIVE endless(cents) AS (SELECT cents FROM payments UNION ALL SELECT cents FROM endless)
			SELECT count(*) FROM endless`,
	}
	d.DB, err = sql.Open("sqlite3", file.String()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	// No transaction is exclusive while anybody reads; this one does not wait for it.
	probe, err := sql.Open("sqlite3", file.String()+"?_pragma=busy_timeout(0)&_txlock=exclusive")
	if err != nil {
		d.Close()
		os.RemoveAll(dir)
		return nil, err
	}
	d.working = func(ctx context.Context) (bool, error) {
		conn, err := probe.Conn(ctx)
		if err != nil {
			return false, err
		}
		defer conn.Close()
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return true, ctx.Err()
		}
		return false, tx.Rollback()
	}
	d.close = func() {
		probe.Close()
		d.Close()
		os.RemoveAll(dir)
	}
	if _, err := d.Exec(`CREATE TABLE payments (cents INTEGER); INSERT INTO payments VALUES (1990), (510)`); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// openPostgreSQL opens the database of a DSN, and makes nothing in it.
func openPostgreSQL(ctx context.Context, dsn string) (*database, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("riprap chain %d", os.Getpid())
	config.RuntimeParams["application_name"] = name
	// When the context ends, the driver asks the server to stop the query. If that is lost, the server stops it by itself.
	config.RuntimeParams["statement_timeout"] = strconv.FormatInt(service("database").Limit.Milliseconds(), 10)
	d := &database{
		DB:      stdlib.OpenDB(*config),
		name:    "PostgreSQL",
		quick:   `SELECT 2500`,
		endless: `SELECT 2500 FROM pg_sleep(3600)`,
	}
	d.working = func(ctx context.Context) (bool, error) {
		var n int
		err := d.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE application_name = $1 AND state = 'active' AND pid <> pg_backend_pid()`, name).Scan(&n)
		return n > 0, err
	}
	d.close = func() { d.Close() }
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := d.PingContext(ctx); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}
