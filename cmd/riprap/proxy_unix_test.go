//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A proxied is a proxy in a process of its own.
type proxied struct {
	*exec.Cmd
	t     *testing.T
	url   string // of its first service
	lines chan string
}

// inFront starts a proxy and waits until it is ready.
func inFront(t *testing.T, args ...string) *proxied {
	t.Helper()
	p := &proxied{Cmd: process(append([]string{"proxy"}, args...)...), t: t, lines: make(chan string, 10_000)}
	p.Dir = t.TempDir()
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	go func() {
		defer close(p.lines)
		for scan := bufio.NewScanner(stderr); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	for _, line := range p.until("ready") {
		if _, at, found := strings.Cut(line, " on http"); found && p.url == "" {
			at, _, _ = strings.Cut(at, " ")
			p.url = "http" + at
		}
	}
	return p
}

// until waits for a line with a text and returns those up to it.
func (p *proxied) until(text string) (lines []string) {
	p.t.Helper()
	for late := time.After(30 * time.Second); ; {
		select {
		case line, ok := <-p.lines:
			if lines = append(lines, line); !ok {
				p.t.Fatalf("the proxy said %q and ended, want a line with %q", lines, text)
			}
			if strings.Contains(line, text) {
				return lines
			}
		case <-late:
			p.t.Fatalf("the proxy said %q, want a line with %q", lines, text)
		}
	}
}

// exits waits for the end of the process and returns its exit code, -1 after a signal.
func (p *proxied) exits() int {
	p.t.Helper()
	for range p.lines {
	}
	p.Wait()
	return p.ProcessState.ExitCode()
}

// held is a service that keeps requests until it is told.
func held(t *testing.T) (url string, arrived <-chan struct{}, release func()) {
	came, let := make(chan struct{}, 100), make(chan struct{})
	release = sync.OnceFunc(func() { close(let) })
	url = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-let
		io.WriteString(w, "done")
	})
	t.Cleanup(release)
	return url, came, release
}

func ask(client *http.Client, method, url string, fields ...string) string {
	req, err := http.NewRequest(method, url, strings.NewReader("{}"))
	if err != nil {
		return err.Error()
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.StatusCode, " ", string(text))
}

func TestAProxyFinishesWhatItHasAndExitsWithZero(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			service, arrived, release := held(t)
			p := inFront(t, "--listen", ":0", "--to", service, "--admin", "none")
			answer := make(chan string, 1)
			go func() { answer <- ask(new(http.Client), "POST", p.url) }()
			<-arrived
			p.Process.Signal(signal)
			p.until("ending: 1 request is under way")
			release()
			if got := <-answer; got != "200 done" {
				t.Errorf("the request under way: %s, want 200 done", got)
			}
			if code := p.exits(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

func TestASecondSignalEndsAProxyAtOnce(t *testing.T) {
	service, arrived, _ := held(t)
	p := inFront(t, "--listen", ":0", "--to", service, "--admin", "none", "--drain", "none")
	go ask(new(http.Client), "GET", p.url)
	<-arrived
	p.Process.Signal(syscall.SIGTERM)
	p.until("ending: ")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.exits()
	}()
	for over := false; !over; { // again and again: that one ends it is arranged for while the first is served
		p.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			over = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if status := p.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended by itself, with %d, want by the second signal", status.ExitStatus())
	}
}

func TestAProxyThatNobodyReadsGoesOn(t *testing.T) {
	service := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	cmd := process("proxy", "--listen", ":0", "--to", service, "--admin", "none")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('\n'); err != nil { // ready
		t.Fatal(err)
	}
	r.Close()
	cmd.Process.Signal(syscall.SIGHUP) // it says that it has reloaded, to nobody
	url := strings.Fields(line)[4]
	for range 100 {
		if got := ask(new(http.Client), "GET", url); got != "200 ok" {
			t.Fatalf("after its log was closed: %s, want 200 ok", got)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v, want exit code 0", err)
	}
}

func TestReloadsUnderLoadLoseNoRequest(t *testing.T) {
	var a, b atomic.Int64
	counting := func(n *atomic.Int64) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			n.Add(1)
			io.WriteString(w, "ok")
		})
	}
	services := []string{counting(&a), counting(&b)}
	file := filepath.Join(t.TempDir(), "riprap.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configured := func(n int) string {
		return fmt.Sprintf("services: {a: {proxy: {listen: ':0', to: %q, maxHeader: %dKiB, requireKey: [POST /charge], scope: single-tenant}}, extra%d: {proxy: {listen: ':0', to: %q}}}",
			services[n%2], 64+n/3, n%4, services[0])
	}
	write(configured(0))
	p := inFront(t, "--admin", "none", file)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	var sends, keyed atomic.Int64
	failures := make(chan string, 100)
	for c := range 8 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: c == 0}}
		clients.Go(func() {
			defer client.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				path, fields := "/", []string(nil)
				if n%5 == 0 {
					path, fields = "/charge", []string{"Idempotency-Key", fmt.Sprintf("%d-%d", c, n)}
					keyed.Add(1)
				}
				if got := ask(client, "POST", p.url+path, fields...); got != "200 ok" {
					select {
					case failures <- got:
					default:
					}
				}
				sends.Add(1)
			}
		})
	}
	progress := func() {
		t.Helper()
		was, late := sends.Load(), time.After(30*time.Second)
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for sends.Load() < was+50 {
			select {
			case <-look.C:
			case <-late:
				t.Fatalf("%d requests were answered, and no more are", was)
			}
		}
	}
	for n := range 12 {
		progress()
		write(configured(n + 1))
		p.Process.Signal(syscall.SIGHUP)
		p.until("riprap proxy: reloaded")
		if n%4 == 3 {
			write("services: {a: {proxy: {lisen: ':0'}}}")
			p.Process.Signal(syscall.SIGHUP)
			if lines := p.until("not reloaded: "); !strings.Contains(lines[len(lines)-1], `did you mean "listen"?`) {
				t.Errorf("a file with a mistake: %q, want what is wrong in it", lines)
			}
		}
	}
	progress()
	stop()
	clients.Wait()
	close(failures)
	for text := range failures {
		t.Errorf("a request failed: %s", text)
	}
	if got := a.Load() + b.Load(); got != sends.Load() || a.Load() == 0 || b.Load() == 0 {
		t.Errorf("%d requests, %d and %d at the services, want each at one of them once", sends.Load(), a.Load(), b.Load())
	}
	p.Process.Signal(syscall.SIGTERM)
	if code := p.exits(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	t.Logf("%d requests, %d of them keyed", sends.Load(), keyed.Load())
}

func TestWhatWasRunByAKeyIsKnownAfterARestart(t *testing.T) {
	var runs atomic.Int64
	service := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "run ", runs.Add(1)) })
	store := filepath.Join(t.TempDir(), "keys.db")
	args := []string{"--listen", ":0", "--to", service, "--admin", "none", "--require-key", "POST /charge", "--scope", "header:X-Customer", "--store", store}
	for range 3 {
		p := inFront(t, args...)
		if got, want := ask(new(http.Client), "POST", p.url+"/charge", "Idempotency-Key", "k", "X-Customer", "c"), "200 run 1"; got != want {
			t.Errorf("got %s, want %s each time", got, want)
		}
		p.Process.Signal(syscall.SIGTERM)
		if code := p.exits(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	}
	info, err := os.Stat(store)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the store: %v, %v, want a file that only its owner reads", info, err)
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}
