package demo

import (
	"context"
	"database/sql"
	"fmt"
)

// A ledger is the payments service's book: a table with a row for each charge. It knows which click a charge is for, and
// nothing of keys: whoever asks for a charge gets one.
type ledger struct {
	db     *sql.DB
	insert *sql.Stmt
}

// openLedger makes a ledger in a SQLite file. The caller ends it with close.
func openLedger(ctx context.Context, file string) (l *ledger, err error) {
	l = &ledger{}
	if l.db, err = openSQLite(file, "off"); err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	_, err = l.db.ExecContext(ctx, `CREATE TABLE charges (id INTEGER PRIMARY KEY, click INTEGER NOT NULL)`)
	if err == nil {
		l.insert, err = l.db.PrepareContext(ctx, `INSERT INTO charges (click) VALUES (?)`)
	}
	if err != nil {
		l.db.Close()
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	return l, nil
}

func (l *ledger) close() {
	l.insert.Close()
	l.db.Close()
}

// charge writes a row.
func (l *ledger) charge(click int) error {
	if _, err := l.insert.Exec(click); err != nil {
		return fmt.Errorf("the ledger: %w", err)
	}
	return nil
}

// charges reads back how often each click was charged.
func (l *ledger) charges() (map[int]int, error) {
	rows, err := l.db.Query(`SELECT click, count(*) FROM charges GROUP BY click`)
	if err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	defer rows.Close()
	charges := make(map[int]int)
	for rows.Next() {
		var click, n int
		if err := rows.Scan(&click, &n); err != nil {
			return nil, fmt.Errorf("the ledger: %w", err)
		}
		charges[click] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("the ledger: %w", err)
	}
	return charges, nil
}
