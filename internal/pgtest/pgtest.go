// Package pgtest runs a private PostgreSQL for a test, from the binaries that the machine has.
//
//	db, err := sql.Open("pgx", pgtest.Start(t))
//
// The server listens on a socket in a folder of its own, has nothing in it, and keeps nothing. It ends with the test, and
// also if the test's process is killed: it is run by a shell that waits for the end of a pipe from that process. A test of
// what happens when a server dies crashes one that [StartServer] gave it.
//
// PostgreSQL refuses to run as root. For root it runs as the user postgres, or else nobody.
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// startTime bounds the wait for a server. A machine may be very busy.
const startTime = time.Minute

// Start starts a server and returns the URL of its database, for any PostgreSQL driver; whoever connects to it is a superuser.
// It ends when the test does. Where there is no PostgreSQL the test is skipped, or fails if the environment says CI=true.
func Start(tb testing.TB) (dsn string) {
	tb.Helper()
	return StartServer(tb).DSN()
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

// watch is run by a shell, and what it prints is the log. The first line of its input lets the server start. The next one
// crashes it, by PostgreSQL's immediate end: all its processes exit where they are, and nothing is written any more. The input
// ends with the test, or with the test's process however that came to its end; then the server ends in the same way, and
// the folder is removed.
const watch = `
bin=$1 dir=$2
shift 2
trap 'rm -rf "$dir"' EXIT
test -d "$dir/data" ||
	"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync 2>&1 </dev/null || exit
read -r start || exit
"$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off "$@" 2>&1 </dev/null &
exec >/dev/null 2>&1
if read -r crash
then trap - EXIT
else kill -TERM $!
fi && kill -QUIT $!
wait $!
`

// A keeper is a shell and the server that it keeps.
type keeper struct {
	shell *exec.Cmd
	hold  io.WriteCloser // the shell's input
	log   bytes.Buffer   // to be read after ended
	ended chan struct{}  // closed when the server, or initdb before it, has ended
}

// keep starts a shell for a server in a folder.
func keep(bin, dir string, settings []string) (*keeper, error) {
	args := []string{"-c", watch, "sh", bin, dir}
	for _, s := range settings {
		args = append(args, "-c", s) // the last one counts
	}
	k := &keeper{shell: exec.Command("/bin/sh", args...), ended: make(chan struct{})}
	k.shell.Dir = dir
	if err := own(k.shell, dir); err != nil {
		return nil, err
	}
	hold, err := k.shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	log, err := k.shell.StdoutPipe()
	if err == nil {
		if err = k.shell.Start(); errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("the user that PostgreSQL runs as cannot reach %s (set TMPDIR to a folder that everybody may enter): %w", dir, err)
		}
	}
	if err != nil {
		hold.Close()
		return nil, err
	}
	k.hold = hold
	go func() {
		defer close(k.ended)
		k.log.ReadFrom(log) // the shell closes its end, the server keeps it open
	}()
	return k, nil
}

// end ends the server, waits for that, and returns its log.
func (k *keeper) end() (log string) {
	k.hold.Close()
	<-k.ended
	k.shell.Wait() // its exit code is that of a server told to quit
	return k.log.String()
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
