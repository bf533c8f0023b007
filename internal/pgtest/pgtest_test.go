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
	"strings"
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
	os.Stdout.WriteString(s.dsn() + "\n")
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
	if _, err := os.Stat(folder(dsn)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s: %v, want it gone", folder(dsn), err)
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
		_, stat := os.Stat(folder(dsn))
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
	conn, err := net.Dial("unix", folder(dsn)+"/.s.PGSQL.5432")
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

func folder(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return err.Error()
	}
	return u.Query().Get("host")
}
