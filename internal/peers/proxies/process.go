package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A placement says which processors the load, the proxy and the service run on.
type placement string

const (
	free   placement = "free"   // on all of them
	pinned placement = "pinned" // the proxy has one to itself
)

// cpus is a list of processors as taskset has it; "" means all.
type cpus string

func (p placement) load() cpus  { return p.on("0") }
func (p placement) proxy() cpus { return p.on("1") }

// service is where the service runs: with the load if there are two processors.
func (p placement) service() cpus {
	if runtime.NumCPU() > 2 {
		return p.on("2")
	}
	return p.on("0")
}

func (p placement) on(list cpus) cpus {
	if p == free {
		return ""
	}
	return list
}

func (c cpus) count() int {
	if c == "" {
		return runtime.NumCPU()
	}
	return 1
}

// bind is how a command begins that runs on these processors.
func (c cpus) bind() []string {
	if c == "" {
		return nil
	}
	return []string{"taskset", "-c", string(c)}
}

// A process is one that was started, with its children.
type process struct {
	url   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// processes are all that were started.
type processes []*process

// start starts a server and waits until it answers.
func (ps *processes) start(command, env []string, url, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{url: url, cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	*ps = append(*ps, p)
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-p.ended:
			return nil, fmt.Errorf("it ended at once: see %s", log)
		default:
		}
		if resp, err := http.Get(url + "/"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("it does not answer: see %s", log)
}

// stop ends all of them and waits.
func (ps *processes) stop() {
	for _, p := range *ps {
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range *ps {
		select {
		case <-p.ended:
		case <-time.After(10 * time.Second):
			p.cmd.Process.Kill()
			<-p.ended
		}
	}
}

// cpu returns the CPU time that the process and its children have taken.
func (p *process) cpu() (time.Duration, error) {
	const tick = time.Second / 100 // USER_HZ, which is 100 wherever Go runs on Linux
	pid := p.cmd.Process.Pid
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var ticks int64
	found := false
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		id, parent, used, err := readStat(string(data))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		if id == pid || parent == pid {
			ticks += used
			found = found || id == pid
		}
	}
	if !found {
		return 0, errors.New("it has ended")
	}
	return time.Duration(ticks) * tick, nil
}

// readStat reads a line of /proc/PID/stat: proc_pid_stat(5).
func readStat(line string) (pid, parent int, ticks int64, err error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')') // around a name that may hold anything
	if open < 0 || end < open {
		return 0, 0, 0, fmt.Errorf("no name in %q", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 13 {
		return 0, 0, 0, fmt.Errorf("%d fields behind the name in %q, want 13 or more", len(fields), line)
	}
	pid, err1 := strconv.Atoi(strings.TrimSpace(line[:open]))
	parent, err2 := strconv.Atoi(fields[1])
	user, err3 := strconv.ParseInt(fields[11], 10, 64)
	system, err4 := strconv.ParseInt(fields[12], 10, 64)
	return pid, parent, user + system, errors.Join(err1, err2, err3, err4)
}

// freePort returns a loopback address that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
