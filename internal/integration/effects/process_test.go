package effects

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

const planVariable = "RIPRAP_EFFECTS_PLAN"

// A process is the test binary once more, as a server. It ends with its input, also if the test is killed.
type process struct {
	cmd  *exec.Cmd
	hold io.Closer
	addr string
}

// begin starts a server and waits until it says where it listens.
func begin(p plan) (*process, error) {
	told, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	proc := &process{cmd: exec.Command(self)}
	proc.cmd.Env = append(os.Environ(), planVariable+"="+string(told))
	proc.cmd.Stderr = os.Stderr
	hold, err := proc.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	proc.hold = hold
	out, err := proc.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := proc.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		proc.kill()
		return nil, fmt.Errorf("the server process said nothing: %w", err)
	}
	proc.addr = strings.TrimSpace(line)
	return proc, nil
}

// kill is kill -9, in the midst of whatever the process is doing.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.end()
}

// end lets the process serve what it has begun, and waits until it is gone.
func (p *process) end() error {
	p.hold.Close()
	return p.cmd.Wait()
}

// serve is what a process does.
func serve(told string) {
	log.SetPrefix("server process: ")
	var p plan
	if err := json.Unmarshal([]byte(told), &p); err != nil {
		log.Fatal(err)
	}
	var kind *database
	for _, d := range databases {
		if d.name == p.Database {
			kind = d
		}
	}
	db, err := sql.Open(kind.driver, p.DSN)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := &http.Server{
		Handler:  p.Faults.between(p.Seed, service(p, kind.store(db), db)),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ended <- s.Shutdown(ctx)
	}()
	fmt.Println(l.Addr())
	if err := s.Serve(l); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}
