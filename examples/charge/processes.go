// This file is the stage: servers that are processes of their own, so that they can be killed, and wires between them that
// can be cut at a chosen moment. The server knows of neither, and needs no code for the play.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A process is this program again, as a server.
type process struct {
	cmd  *exec.Cmd
	url  string
	hold io.Closer // its input: it ends when this does, also if we are killed
}

// begin starts a process and waits until it says where it listens.
func begin(stderr io.Writer, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, args...)}
	p.cmd.Stderr = stderr
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.hold = hold
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("the %s did not start: %w", args[0], err)
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// kill is kill -9: the process does nothing any more, and the system closes its connections.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.end()
}

func (p *process) end() {
	p.hold.Close()
	p.cmd.Wait()
}

// serve is what such a process does: it serves on a free port of this machine, says where, and ends with its input.
func serve(h http.Handler, stdin io.Reader, stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() {
		io.Copy(io.Discard, stdin)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ended <- server.Shutdown(ctx) // waits for the requests that are still running
	}()
	fmt.Fprintf(stdout, "http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// A wire leads to a server. It can be cut once, at a moment of one request.
type wire struct {
	url    string
	server *http.Server

	mu sync.Mutex
	to *url.URL
	at map[moment]func() // what to do at a moment, once
}

type moment int

const (
	asked    moment = iota // the request is on its way to the server
	answered               // its answer is on the way back
)

var errCut = errors.New("the wire is cut")

// lay lays a wire to a server.
func lay(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{url: "http://" + l.Addr().String(), at: map[moment]func(){}}
	w.lead(to)
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(w.target()) },
		ModifyResponse: func(*http.Response) error { return w.pass(answered) },
		// What a client sees when a server dies is a connection that ends.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     quiet,
	}
	w.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, ErrorLog: quiet,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if w.pass(asked) != nil {
				panic(http.ErrAbortHandler)
			}
			proxy.ServeHTTP(rw, r)
		})}
	go w.server.Serve(l)
	return w, nil
}

// lead lets the wire lead to another server.
func (w *wire) lead(to string) {
	target, err := url.Parse(to)
	if err != nil {
		panic(err) // it is that of a listener
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = target
}

func (w *wire) target() *url.URL {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to
}

// cutAt cuts the wire at the next such moment: what was on its way does not arrive, and do is called.
func (w *wire) cutAt(m moment, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[m] = do
}

// pass is called at each moment.
func (w *wire) pass(m moment) error {
	w.mu.Lock()
	do := w.at[m]
	delete(w.at, m)
	w.mu.Unlock()
	if do == nil {
		return nil
	}
	do()
	return errCut
}
