package proxies

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// keep is run by a shell. It runs a program, tells its process id, and kills it when its own input ends: with the test, and
// also if the test's process is killed.
const keep = `
exec 4<&0
"$@" </dev/null 3>&- 4<&- & pid=$!
echo $pid >&3
exec 3>&-
{ read -r end; kill -KILL $pid; } <&4 >/dev/null 2>&1 & watch=$!
wait $pid
code=$?
kill $watch 2>/dev/null
exit $code
`

// A process is another program that runs beside the test.
type process struct {
	name  string
	pid   int
	shell *exec.Cmd
	hold  io.Closer
	out   log // what it writes, to both outputs
	ended chan struct{}
}

// run starts a program. It ends with the test, by kill -9 unless it has ended before.
func run(t testing.TB, program string, args ...string) *process {
	t.Helper()
	p := &process{name: program, ended: make(chan struct{})}
	p.shell = exec.Command("/bin/sh", append([]string{"-c", keep, "sh", program}, args...)...)
	p.shell.Stdout, p.shell.Stderr = &p.out, &p.out
	p.shell.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // it would wait for a second
	p.shell.WaitDelay = time.Second                                // the watching shell has the outputs too
	hold, err := p.shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	id, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.hold, p.shell.ExtraFiles = hold, []*os.File{tell}
	if err := p.shell.Start(); err != nil {
		t.Fatal(err)
	}
	tell.Close()
	line, _ := bufio.NewReader(id).ReadString('\n') // what is no number is noticed
	id.Close()
	if p.pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("%s did not start: %v", program, err)
	}
	go func() {
		p.shell.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.hold.Close()
		<-p.ended
	})
	return p
}

func (p *process) signal(t testing.TB, s os.Signal) {
	t.Helper()
	found, err := os.FindProcess(p.pid)
	if err == nil {
		err = found.Signal(s)
	}
	if err != nil {
		t.Fatalf("%v to %s: %v", s, p.name, err)
	}
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.signal(t, os.Kill)
	<-p.ended
}

// end asks the process to end and returns its exit code.
func (p *process) end(t testing.TB) int {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%s did not end within %v of SIGTERM:\n%s", p.name, patience, p.out.String())
	}
	return p.shell.ProcessState.ExitCode()
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// says waits until the process has written something, and returns all lines that it has written.
func (p *process) says(t testing.TB, what string) []string {
	t.Helper()
	waitFor(t, fmt.Sprintf("%s to say %q", p.name, what), func() bool {
		if strings.Contains(p.out.String(), what) {
			return true
		}
		if p.gone() {
			t.Fatalf("%s ended with %d:\n%s", p.name, p.shell.ProcessState.ExitCode(), p.out.String())
		}
		return false
	})
	return strings.Split(p.out.String(), "\n")
}

// A log is what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
