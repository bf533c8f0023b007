package stores

import (
	crand "crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// A disk is SQLite's file system, and watches the write-ahead log.
type disk struct {
	vfs.VFS

	mu       sync.Mutex
	unsynced int // writes to the log since it was synced
	syncs    int // of the log
	fail     bool
}

func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return d.watch(flags)(d.VFS.Open(name, flags))
}

func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return d.watch(flags)(d.VFS.(vfs.VFSFilename).OpenFilename(name, flags))
}

func (d *disk) watch(flags vfs.OpenFlag) func(vfs.File, vfs.OpenFlag, error) (vfs.File, vfs.OpenFlag, error) {
	return func(f vfs.File, got vfs.OpenFlag, err error) (vfs.File, vfs.OpenFlag, error) {
		if err != nil {
			return nil, got, err
		}
		return &watched{File: f, disk: d, log: flags&vfs.OPEN_WAL != 0}, got, nil
	}
}

type watched struct {
	vfs.File
	disk *disk
	log  bool
}

func (f *watched) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *watched) WriteAt(p []byte, off int64) (int, error) {
	if f.log {
		f.disk.mu.Lock()
		f.disk.unsynced++
		f.disk.mu.Unlock()
	}
	return f.File.WriteAt(p, off)
}

func (f *watched) Sync(flags vfs.SyncFlag) error {
	if f.log {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		if f.disk.fail {
			return sqlite3.IOERR_FSYNC
		}
		f.disk.unsynced = 0
		f.disk.syncs++
	}
	return f.File.Sync(flags)
}

// openDisk opens a new SQLite database on a disk of its own.
func openDisk(t *testing.T) (*disk, *sqlstore.Store, *sql.DB) {
	d := &disk{VFS: vfs.Find("")}
	vfs.Register(t.Name(), d)
	t.Cleanup(func() { vfs.Unregister(t.Name()) })
	db := dial(t, "sqlite3", sqliteDSN(filepath.Join(t.TempDir(), "keys.db"))+"&vfs="+t.Name())
	s := sqlstore.SQLite(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, db)
	return d, s, db
}

// A killed process loses nothing that it wrote, synced or not; only a machine without power does. So the syncs are counted.
func TestWhatSQLiteHasAcknowledgedIsSynced(t *testing.T) {
	d, s, _ := openDisk(t)
	synced := func(what string, step func() error) {
		t.Helper()
		before := d.syncs
		if err := step(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.unsynced != 0 || d.syncs == before {
			t.Errorf("%s: %d writes to the log not synced, and %d syncs, want none and at least 1", what, d.unsynced, d.syncs-before)
		}
	}
	for range 50 {
		c, held := newClaim(crand.Text()), newClaim(crand.Text())
		synced("Claim", func() error { _, err := s.Claim(t.Context(), c); return err })
		synced("Renew", func() error { return s.Renew(t.Context(), c.Ticket(1), time.Minute) })
		synced("Complete", func() error { return s.Complete(t.Context(), c.Ticket(1), created, time.Hour) })
		synced("Claim", func() error { _, err := s.Claim(t.Context(), held); return err })
		ctx, transaction := s.Transact(t.Context(), held.Ticket(1))
		insert(t, ctx)
		synced("Commit", func() error { return transaction.Commit(t.Context(), created, time.Hour) })
		suspended, released := newClaim(crand.Text()), newClaim(crand.Text())
		mustClaim(t, s, suspended)
		mustClaim(t, s, released)
		synced("Suspend", func() error { return s.Suspend(t.Context(), suspended.Ticket(1)) })
		synced("Resolve", func() error { return s.Resolve(t.Context(), suspended.ID, &created, time.Hour) })
		synced("Release", func() error { return s.Release(t.Context(), released.Ticket(1)) })
	}
}

func TestACommitThatTheDiskRefusesIsFoundOut(t *testing.T) {
	d, s, db := openDisk(t)
	c := newClaim("a")
	ticket := mustClaim(t, s, c)
	ctx, transaction := s.Transact(t.Context(), ticket)
	insert(t, ctx)
	d.mu.Lock()
	d.fail = true
	d.mu.Unlock()
	// Its writes may be in the log, and may yet be found there: as long as nothing can be written over them nobody knows.
	err := transaction.Commit(t.Context(), created, time.Hour)
	if err == nil || errors.Is(err, idempotency.ErrNotCommitted) || errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("Commit: %v, want an error that says nothing", err)
	}
	d.mu.Lock()
	d.fail = false
	d.mu.Unlock()
	if err := transaction.Commit(t.Context(), created, time.Hour); !errors.Is(err, idempotency.ErrNotCommitted) {
		t.Errorf("Commit again: %v, want ErrNotCommitted", err)
	}
	if got, n := state(t, s, c.ID), count(t, db); got != idempotency.StateInProgress || n != 0 {
		t.Errorf("state %d and %d charges, want it in progress and none", got, n)
	}
}

func TestWhatPostgreSQLHasAcknowledgedIsSynced(t *testing.T) {
	db := connect(t, databases[0])
	s := sqlstore.PostgreSQL(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, db)
	// The log is written up to one place and synced up to another; what a step wrote lies beyond where the log ended before.
	lsn := func(query string, args ...any) (got string) {
		t.Helper()
		if err := db.QueryRow(query, args...).Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	synced := func(what string, step func() error) {
		t.Helper()
		before := lsn("SELECT pg_current_wal_insert_lsn()")
		if err := step(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if lsn("SELECT pg_current_wal_flush_lsn() > $1::pg_lsn", before) != "true" {
			t.Errorf("%s: nothing of it is synced", what)
		}
	}
	for range 50 {
		c := newClaim(crand.Text())
		synced("Claim", func() error { _, err := s.Claim(t.Context(), c); return err })
		synced("Complete", func() error { return s.Complete(t.Context(), c.Ticket(1), created, time.Hour) })
		held := newClaim(crand.Text())
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, held))
		insert(t, ctx)
		synced("Commit", func() error { return transaction.Commit(t.Context(), created, time.Hour) })
	}
}
