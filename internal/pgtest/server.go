package pgtest

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Server is a private PostgreSQL that a test may crash and start again. Its methods are for one goroutine at a time.
type Server struct {
	bin, dir string // dir is its own, with the socket and the data
	settings []string
	*keeper  // of the server that runs, or that is going to
	running  bool
}

// StartServer starts a server as [Start] does, with further settings like "fsync=on", which it has off by default: what the
// operating system was given survives a crash of the server alone.
func StartServer(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	bin, err := find()
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	s, err := start(bin, settings...)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { s.stop() })
	return s
}

// start starts a server and waits until it takes connections.
func start(bin string, settings ...string) (*Server, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, settings: settings}
	if s.keeper, err = keep(bin, dir, settings); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, s.Restart()
}

// DSN returns the URL of the server's database, the same before and after a crash.
func (s *Server) DSN() string {
	return (&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: url.Values{
		"host": {s.dir}, "user": {"postgres"},
	}.Encode()}).String()
}

// Crash ends all processes of the server at once, whatever they are doing, and returns when they are gone. What was committed is
// there after Restart, as after every crash of PostgreSQL. A server that is not running stays as it is.
func (s *Server) Crash() error {
	if !s.running {
		return nil
	}
	next, err := keep(s.bin, s.dir, s.settings) // first, so that there is always somebody to remove the folder
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	io.WriteString(s.hold, "crash\n")
	s.keeper.end()
	s.keeper, s.running = next, false
	return nil
}

// Restart starts the server after a crash, and returns when it takes connections. One that runs stays as it is.
func (s *Server) Restart() (err error) {
	if s.running {
		return nil
	}
	s.running = true
	io.WriteString(s.hold, "start\n")
	for late := time.After(startTime); !s.ready(); {
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-s.ended:
			err = errors.New("PostgreSQL did not start")
		case <-late:
			err = fmt.Errorf("PostgreSQL was not ready after %v", startTime)
		}
		return fmt.Errorf("%w:\n%s", err, s.stop())
	}
	return nil
}

// ready reports whether the server takes connections: it says so in the last line of this file, for pg_ctl.
func (s *Server) ready() bool {
	text, _ := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1]) == "ready"
}

// stop ends the server for good and returns its log.
func (s *Server) stop() (log string) { return s.keeper.end() }
