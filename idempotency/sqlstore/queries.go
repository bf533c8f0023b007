package sqlstore

import (
	"context"
	"database/sql"
	"strings"
)

// A dialect is what the two databases are told in their own words. Parameters are numbered, since they are used more than once.
type dialect struct {
	name string

	// prepare is set where a statement is parsed in each call unless we keep it. Drivers for PostgreSQL keep statements
	// themselves, or do not because the user has a proxy in between that cannot have them.
	prepare bool

	claim  string // PostgreSQL: insert if there is none, and read
	insert string // SQLite: after read
	read   string
	take   string
	linger string // PostgreSQL: wait until a row is not being deleted

	renew, complete, release, suspend string // by ticket

	fence, intact, seal, doubt string // of a transaction, by ticket

	list, stuck, settle, free, reap string
}

// The columns that are read of a record, by row.targets.
const columns = `id, state, fingerprint, operation, owner, generation, reexecute, begun_at, lease_until, expires_at, status, tombstone, header, body`

var postgresql = newDialect("postgresql", strings.NewReplacer(
	// The time of the statement, however long its transaction or its wait has lasted; now() is that of the transaction's begin.
	"NOW", "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
	"GREATEST", "greatest",
	// Whoever finds a row locked finds a run alive, and need not wait for its end.
	"UNLOCKED", "(SELECT id FROM riprap_keys WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED)",
	"SKIP", "FOR UPDATE SKIP LOCKED",
))

var sqlite = newDialect("sqlite", strings.NewReplacer(
	"NOW", "CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER) * 1000",
	"GREATEST", "max",
	"UNLOCKED", "?1",
	"SKIP", "",
	"$", "?",
))

func newDialect(name string, r *strings.Replacer) *dialect {
	d := &dialect{
		name:    name,
		prepare: name == "sqlite",

		// What is in the table when the statement begins decides, and a row that is there is only read: it takes no lock, whoever holds one.
		// Two such statements may both see no row; then one inserts, and the other gets neither a row nor a key, and asks again.
		claim: `WITH seen AS MATERIALIZED (
				SELECT ` + columns + ` FROM riprap_keys WHERE id = $1
			), won AS (
				INSERT INTO riprap_keys (id, fingerprint, operation, state, owner, generation, reexecute, begun_at, lease_until, expires_at)
				SELECT CAST($1 AS bytea), CAST($2 AS bytea), CAST($3 AS text), 1, CAST($4 AS bytea), 1, CAST($5 AS boolean),
					clock.now, clock.now + CAST($6 AS bigint), clock.now + CAST($7 AS bigint)
				FROM (SELECT NOW AS now) clock WHERE NOT EXISTS (SELECT 1 FROM seen)
				ON CONFLICT (id) DO NOTHING
				RETURNING 1 AS won
			)
			SELECT NOW, won.won IS NOT NULL, seen.*
			FROM (SELECT 1) one LEFT JOIN seen ON true LEFT JOIN won ON true`,
		insert: `INSERT INTO riprap_keys (id, fingerprint, operation, state, owner, generation, reexecute, begun_at, lease_until, expires_at)
			VALUES ($1, $2, $3, 1, $4, 1, $5, NOW, NOW + $6, NOW + $7) ON CONFLICT (id) DO NOTHING`,
		read: `SELECT NOW, false, ` + columns + ` FROM riprap_keys WHERE id = $1`,

		// A key changes hands only as it was when that was decided: its lease may have been renewed since.
		take: `UPDATE riprap_keys SET fingerprint = $2, operation = $3, state = 1, owner = $4, generation = generation + 1, reexecute = $5,
				begun_at = NOW, lease_until = NOW + $6, expires_at = NOW + $7, status = NULL, tombstone = false, header = NULL, body = NULL
			WHERE id = UNLOCKED AND state = $8 AND owner = $9 AND generation = $10 AND lease_until = $11 AND expires_at = $12`,

		// This lock is one that every other allows but that of a deletion.
		linger: `SELECT 1 FROM riprap_keys WHERE id = $1 FOR KEY SHARE`,

		renew: `UPDATE riprap_keys SET lease_until = NOW + $4, expires_at = GREATEST(expires_at, NOW + $4)` + held,
		complete: `UPDATE riprap_keys SET state = 2, status = $4, tombstone = $5, header = $6, body = $7, expires_at = NOW + $8` +
			held,
		release: `DELETE FROM riprap_keys` + held,
		suspend: `UPDATE riprap_keys SET state = 3` + by + ` AND state <> 2`,

		// Should the handler commit on its own, the key is left as what it is then: unknown. Nobody else sees that state otherwise.
		fence:  `UPDATE riprap_keys SET state = 3` + held,
		intact: `SELECT 1 FROM riprap_keys` + by + ` AND state = 3`,
		seal: `UPDATE riprap_keys SET state = 2, status = $4, tombstone = $5, header = $6, body = $7, expires_at = NOW + $8` +
			by + ` AND state = 3`,
		// It waits for the transaction in doubt, by its lock. It is a real write, so that in SQLite's log it takes the place of a commit that
		// was written and not synced, and that would otherwise be found after a loss of power.
		doubt: `UPDATE riprap_keys SET lease_until = lease_until + 1` + held,

		list: `SELECT NOW, false, ` + summary + ` FROM riprap_keys WHERE id > $1 ORDER BY id LIMIT $2`,
		stuck: `SELECT NOW, false, ` + summary + ` FROM riprap_keys WHERE id > $1 AND ` + resolvable + ` AND NOT (state = 1 AND reexecute)
			ORDER BY id LIMIT $2`,
		settle: `UPDATE riprap_keys SET state = 2, owner = $2, generation = generation + 1, status = $3, tombstone = $4, header = $5, body = $6,
			expires_at = NOW + $7 WHERE id = UNLOCKED AND ` + resolvable,
		free: `DELETE FROM riprap_keys WHERE id = UNLOCKED AND ` + resolvable,
		// Materialized, so that the rows are picked and locked once.
		reap: `WITH dead AS MATERIALIZED (
				SELECT id FROM riprap_keys
				WHERE expires_at <= NOW AND (state = 2 OR state = 1 AND reexecute AND lease_until <= NOW)
				ORDER BY expires_at LIMIT $1 SKIP
			)
			DELETE FROM riprap_keys WHERE id IN (SELECT id FROM dead)`,
	}
	for _, q := range []*string{&d.claim, &d.insert, &d.read, &d.take, &d.renew, &d.complete, &d.release, &d.suspend,
		&d.fence, &d.intact, &d.seal, &d.doubt, &d.list, &d.stuck, &d.settle, &d.free, &d.reap} {
		*q = r.Replace(*q)
	}
	return d
}

const (
	by         = ` WHERE id = $1 AND owner = $2 AND generation = $3`
	held       = by + ` AND state = 1`
	resolvable = `(state = 3 OR state = 1 AND lease_until <= NOW)`
	summary    = `id, state, fingerprint, operation, owner, generation, reexecute, begun_at, lease_until, expires_at, status, tombstone, NULL, NULL`
)

// stmt returns the query as a statement that is kept, or nil if it is not to be kept. It may take a connection, so call it before
// holding one.
func (s *Store) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if !s.prepare {
		return nil, nil
	}
	if kept, ok := s.prepared.Load(query); ok {
		return kept.(*sql.Stmt), nil
	}
	st, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if other, met := s.prepared.LoadOrStore(query, st); met {
		st.Close()
		return other.(*sql.Stmt), nil
	}
	return st, nil
}

// exec runs a query that changes records, and returns how many.
func (s *Store) exec(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	leave, err := s.writers.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	var result sql.Result
	if st != nil {
		result, err = st.ExecContext(ctx, args...)
	} else {
		result, err = s.db.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row runs a query for one row.
func (s *Store) row(ctx context.Context, r *row, query string, args ...any) error {
	st, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	if st != nil {
		return st.QueryRowContext(ctx, args...).Scan(r.targets()...)
	}
	return s.db.QueryRowContext(ctx, query, args...).Scan(r.targets()...)
}
