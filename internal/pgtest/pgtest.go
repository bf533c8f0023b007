// Package pgtest runs a private PostgreSQL for a test, from the binaries that the machine has.
//
//	db, err := sql.Open("pgx", pgtest.Start(t))
//
// The server listens on a socket in a folder of its own, has nothing in it, and keeps nothing. It ends with the test, and
// also if the test's process is killed: it is run by a shell that waits for the end of a pipe from that process.
//
// PostgreSQL refuses to run as root. For root it runs as the user postgres, or else nobody.
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTime bounds the wait for a server. A machine may be very busy.
const startTime = time.Minute

// Start starts a server and returns the URL of its database, for any PostgreSQL driver; whoever connects to it is a superuser.
// It ends when the test does. Where there is no PostgreSQL the test is skipped, or fails if the environment says CI=true.
func Start(tb testing.TB) (dsn string) {
	tb.Helper()
	bin, err := find()
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	s, err := start(bin)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { s.stop() })
	return s.dsn()
}

// find returns the folder with the newest PostgreSQL: Debian keeps each version in one of its own and out of the PATH.
func find() (bin string, err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1]), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("no PostgreSQL on this machine: install it, by apt-get install postgresql for example")
	}
	return filepath.Dir(initdb), nil
}

func version(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return n
}

// watch is run by a shell, and what it prints is the log. Its input ends with the test, or with the test's process however
// that came to its end; then it stops the server, by PostgreSQL's immediate end, and removes the folder.
const watch = `
trap 'rm -rf "$2"' EXIT
"$1/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C --no-sync 2>&1 </dev/null || exit
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off 2>&1 </dev/null &
exec >/dev/null 2>&1
cat
kill -TERM $! && kill -QUIT $!
wait $!
`

// A server is a PostgreSQL, and the shell that watches it.
type server struct {
	dir   string // its own, with the socket and the data
	shell *exec.Cmd
	hold  io.Closer     // the shell's input
	log   bytes.Buffer  // to be read after ended
	ended chan struct{} // closed when the server, or initdb before it, has ended
}

// start starts a server and waits until it takes connections.
func start(bin string) (s *server, err error) {
	s = &server{ended: make(chan struct{})}
	if s.dir, err = folder(); err != nil {
		return nil, err
	}
	s.shell = exec.Command("/bin/sh", "-c", watch, "sh", bin, s.dir)
	s.shell.Dir = s.dir
	if err := own(s.shell, s.dir); err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	hold, err := s.shell.StdinPipe()
	if err != nil {
		os.RemoveAll(s.dir)
		return nil, err
	}
	s.hold = hold
	log, err := s.shell.StdoutPipe()
	if err == nil {
		if err = s.shell.Start(); errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("the user that PostgreSQL runs as cannot reach %s (set TMPDIR to a folder that everybody may enter): %w", s.dir, err)
		}
	}
	if err != nil {
		hold.Close()
		os.RemoveAll(s.dir)
		return nil, err
	}
	go func() {
		defer close(s.ended)
		s.log.ReadFrom(log) // the shell closes its end, the server keeps it open
	}()

	for late := time.After(startTime); !s.ready(); {
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-s.ended:
			err = errors.New("PostgreSQL did not start")
		case <-late:
			err = fmt.Errorf("PostgreSQL was not ready after %v", startTime)
		}
		return nil, fmt.Errorf("%w:\n%s", err, s.stop())
	}
	return s, nil
}

// folder makes a folder for a server, with room for a socket: the whole name of one may have 103 bytes.
func folder() (string, error) {
	const longest = 103 - len("/pgtest-4294967295/.s.PGSQL.5432")
	base, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	if len(base) > longest {
		base = "/tmp"
	}
	return os.MkdirTemp(base, "pgtest-")
}

// ready reports whether the server takes connections: it says so in the last line of this file, for pg_ctl.
func (s *server) ready() bool {
	text, _ := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1]) == "ready"
}

func (s *server) dsn() string {
	return (&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: url.Values{
		"host": {s.dir}, "user": {"postgres"},
	}.Encode()}).String()
}

// stop ends the server, waits for that, and returns its log.
func (s *server) stop() (log string) {
	s.hold.Close()
	<-s.ended
	s.shell.Wait() // its exit code is that of a server told to quit
	return s.log.String()
}
