package pgtest

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be a process that starts a server, says where it is, and lives on.
func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_HOLD") == "" {
		os.Exit(m.Run())
	}
	bin, err := find()
	if err != nil {
		panic(err)
	}
	s, err := start(bin)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(s.DSN() + "\n")
	io.Copy(io.Discard, os.Stdin)
}

func TestTheServerAnswersAndEndsWithItsTest(t *testing.T) {
	var dsn string
	t.Run("the test", func(t *testing.T) {
		dsn = Start(t)
		if err := greet(dsn); err != nil {
			t.Errorf("connect to %s: %v", dsn, err)
		}
	})
	if dsn == "" {
		t.Skip("no PostgreSQL")
	}
	if err := greet(dsn); err == nil {
		t.Errorf("%s answers after its test", dsn)
	}
	if _, err := os.Stat(home(dsn)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s: %v, want it gone", home(dsn), err)
	}
}

func TestTheServerEndsWithAProcessThatIsKilled(t *testing.T) {
	if _, err := find(); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PGTEST_HOLD=1")
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dsn := strings.TrimSpace(line)
	if err == nil {
		err = greet(dsn)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatalf("before the kill: %q, %v", dsn, err)
	}

	late := time.After(time.Minute)
	for {
		_, stat := os.Stat(home(dsn))
		if greet(dsn) != nil && errors.Is(stat, fs.ErrNotExist) {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s is there a minute after the kill", dsn)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestAServerThatCrashedStartsAgainWithWhatItHad(t *testing.T) {
	s := StartServer(t, "fsync=on")
	was := s.pid(t)
	for range 2 {
		if err := s.Crash(); err != nil {
			t.Fatal(err)
		}
		if err := greet(s.DSN()); err == nil {
			t.Error("the server answers after Crash")
		}
		if _, err := os.Stat(filepath.Join(s.dir, "data", "base")); err != nil {
			t.Errorf("after Crash: %v, want its data kept", err)
		}
		if err := s.Crash(); err != nil {
			t.Errorf("Crash of a server that has crashed: %v", err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := greet(s.DSN()); err != nil {
			t.Errorf("after Restart: %v", err)
		}
		is := s.pid(t)
		if is == was {
			t.Errorf("process %s is still there after Crash and Restart", was)
		}
		was = is
	}
}

func (s *Server) pid(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	return pid
}

func TestAFolderIsRemovedWhoseServerHasCrashed(t *testing.T) {
	var dsn string
	t.Run("the test", func(t *testing.T) {
		s := StartServer(t)
		dsn = s.DSN()
		if err := s.Crash(); err != nil {
			t.Error(err)
		}
	})
	if dsn == "" {
		t.Skip("no PostgreSQL")
	}
	if _, err := os.Stat(home(dsn)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s: %v, want it gone", home(dsn), err)
	}
}

// A server that has not set up its signals yet has those that the shell gave it.
func TestAServerThatHasOnlyJustBegunIsEnded(t *testing.T) {
	bin := everybodys(t)
	for name, script := range map[string]string{
		"initdb":   `mkdir "$2"`,
		"postgres": `echo ready >"$2/postmaster.pid"; exec sleep 60`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, err := start(bin)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	if status := s.shell.ProcessState.Sys().(syscall.WaitStatus); status.ExitStatus() != 128+int(syscall.SIGTERM) {
		t.Errorf("the server ended with %v, want by SIGTERM, and not by itself a minute later", s.shell.ProcessState)
	}
}

func TestTheServerStartsWhateverTheTemporaryFolderIsCalled(t *testing.T) {
	if _, err := find(); err != nil {
		t.Skip(err)
	}
	within := everybodys(t)
	t.Chdir(within)
	for _, name := range []string{"relative", "of two 'words'", within + "/" + strings.Repeat("long", 25)} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", name)
			if dsn := Start(t); greet(dsn) != nil {
				t.Errorf("connect to %s: %v", dsn, greet(dsn))
			}
		})
	}
}

func TestAFolderThatTheServersUserCannotReachIsNamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the server runs as the same user")
	}
	private := everybodys(t)
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", private)
	if _, err := start("/"); err == nil || !strings.Contains(err.Error(), "cannot reach "+private) {
		t.Errorf("start in a private folder: %v, want that it cannot be reached", err)
	}
}

// everybodys returns a folder that every user may enter, as t.TempDir is not.
func everybodys(t *testing.T) string {
	dir, err := os.MkdirTemp("", "pgtest-all-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	if _, err := start(t.TempDir()); err == nil || !strings.Contains(err.Error(), "initdb") {
		t.Errorf("start in an empty folder: %v, want what the shell says of initdb", err)
	}
}

func TestTheNewestOfDebiansVersionsIsMeant(t *testing.T) {
	old, recent := version("/usr/lib/postgresql/9/bin/initdb"), version("/usr/lib/postgresql/17/bin/initdb")
	if old != 9 || recent != 17 {
		t.Errorf("versions are %d and %d, want 9 and 17", old, recent)
	}
}

// greet asks the server whether it speaks TLS, which any PostgreSQL answers by one letter.
func greet(dsn string) error {
	conn, err := net.Dial("unix", home(dsn)+"/.s.PGSQL.5432")
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
		return err
	}
	answer := make([]byte, 1)
	_, err = io.ReadFull(conn, answer)
	return err
}

func home(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return err.Error()
	}
	return u.Query().Get("host")
}
