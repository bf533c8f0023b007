package demo

import (
	"database/sql"
	"net/url"
	"path/filepath"

	_ "github.com/ncruces/go-sqlite3/driver"
)

// connections of a database that are kept. One writes at a time, and others read meanwhile. Without a bound each request of a burst
// opens one, and closes it again: that takes more time than all that is done on it.
const connections = 4

// openSQLite opens a SQLite file, which it makes if need be. How safely it writes to the disk is synchronous, "off" or
// "full". While the demo runs it is off: a commit then costs as much on a laptop's disk as on a server's, and what it lets
// get lost, the last commits before a power cut, is nothing that the demo could show. Real keys and real money want "full".
func openSQLite(file, synchronous string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(file)}
	if vol := filepath.VolumeName(file); vol != "" {
		u.Path = "/" + u.Path
	}
	db, err := sql.Open("sqlite3", u.String()+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}
