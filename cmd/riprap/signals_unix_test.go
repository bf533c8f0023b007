//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/riprap-go/riprap/flaky"
)

// TestMain makes a riprap of the test's binary where a test asks for one.
func TestMain(m *testing.M) {
	if os.Getenv("RIPRAP_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func process(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "RIPRAP_TEST_MAIN=1")
	return cmd
}

// faults is a server that fails by a script.
func faults(t *testing.T, script string) string {
	t.Helper()
	h, err := flaky.New(script)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server.URL
}

// empty fails the test if there is something in the directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) > 0 {
		t.Errorf("left behind in the directory: %v, %v, want nothing", list, err)
	}
}

func TestNoPartOfAFileIsLeftWhateverEndsTheCall(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			cmd := process("call", "-o", filepath.Join(dir, "answer"), "--timeout", "20s", faults(t, "503 retry-after=9"))
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(stderr).ReadString('\n'); err != nil { // it waits now
				t.Fatal(err)
			}
			cmd.Process.Signal(signal)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			empty(t, dir)
		})
	}
}

func TestNoPartOfAFileIsLeftWhenNobodyReadsStderr(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := process("call", "-o", filepath.Join(dir, "answer"), "--attempts", "1", faults(t, "503, 200"))
	cmd.Stderr = w
	cmd.Run()
	w.Close()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v, want nothing", names, err)
	}
}

func TestNoProcessOutlivesAnAuditWhoseTerminalIsClosed(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := process("audit", "--", "sh", "-c", "exec 3>"+fifo+"; sleep 60", "sh", "{url}")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fifo) // waits for the client
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Process.Signal(syscall.SIGHUP)
	cmd.Wait()
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err != nil {
		t.Errorf("the client still runs: %v", err)
	}
}

func TestUnderNohupACallGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("sh", "-c", `trap "" HUP; exec "$@"`, "sh", os.Args[0], "call", "-s", "http://"+l.Addr().String())
	cmd.Env = append(os.Environ(), "RIPRAP_TEST_MAIN=1")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// An answer before its request is one to nobody: the client closes the connection and takes another.
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGHUP)
	io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	if err := cmd.Wait(); err != nil || out.String() != "ok" {
		t.Errorf("after SIGHUP: %v, stdout %q, want none and ok", err, &out)
	}
}
