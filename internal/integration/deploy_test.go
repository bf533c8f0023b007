//go:build linux

package integration

import (
	"bytes"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// What the Dockerfile makes is proved without a container engine: its steps are taken in a folder, and its ENTRYPOINT is run
// with that folder as the root of the file system, as its user, with nothing else there.
func TestTheImageFromScratchServesOverTLSAndKeepsKeys(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a process another root folder")
	}
	text, err := os.ReadFile(filepath.Join(root(t), "deploy/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	i := &image{dir: filepath.Join(t.TempDir(), "image")}
	if err := os.Mkdir(i.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	i.make(t, string(text))
	if i.user == 0 {
		t.Errorf("the image runs %v, want a user who is not root", i)
	}
	if files := i.files(t); !slices.Equal(files, []string{"/etc/ssl/certs/ca-certificates.crt", "/riprap"}) {
		t.Errorf("there is %v in the image, want the program and the roots of certificates", files)
	}
	if !slices.Contains(i.volumes, i.workDir) {
		t.Errorf("the keys lie in %s, want one of the volumes %v", i.workDir, i.volumes)
	}

	var charges atomic.Int32
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		charges.Add(1)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "charged")
	}))
	defer service.Close()
	roots, err := os.OpenFile(filepath.Join(i.dir, "etc/ssl/certs/ca-certificates.crt"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := pem.Encode(roots, &pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}); err != nil {
		t.Fatal(err)
	}
	roots.Close()

	inside := func(args []string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = i.workDir
		cmd.Env = []string{"HOME=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.dir, Credential: &syscall.Credential{Uid: i.user, Gid: i.group}}
		return cmd
	}
	p := startProxy(t, inside(append(i.entrypoint, "--listen", "127.0.0.1:0", "--to", service.URL, "--admin", "127.0.0.1:0",
		"--require-key", "POST /charge", "--scope", "header:X-Customer")))
	for n, replayed := range []string{"", "true"} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/charge", strings.NewReader("amount=100"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Customer", "7")
		req.Header.Set("Idempotency-Key", "order-1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.said.String())
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := resp.Header.Get("Idempotent-Replayed"); resp.StatusCode != 201 || string(body) != "charged" || got != replayed {
			t.Errorf("send %d of POST /charge = %d %q, Idempotent-Replayed %q; want 201 charged and %q\n%s", n+1, resp.StatusCode, body, got, replayed, p.said.String())
		}
	}
	if n := charges.Load(); n != 1 {
		t.Errorf("the service got %d charges, want 1", n)
	}
	health := slices.Clone(i.health)
	for n, arg := range health {
		health[n] = strings.Replace(arg, "http://127.0.0.1:7071", p.admin, 1)
	}
	if said, err := inside(health).CombinedOutput(); err != nil {
		t.Errorf("HEALTHCHECK %v: %v\n%s", health, err, said)
	}
	if i.stop != "SIGTERM" {
		t.Errorf("STOPSIGNAL is %q, want SIGTERM", i.stop)
	}
	p.end()
	kept, err := filepath.Glob(filepath.Join(i.dir, i.workDir, "*.db"))
	if err != nil || len(kept) != 1 {
		t.Errorf("in %s there are the stores %v (%v), want one", i.workDir, kept, err)
	}
}

// systemd's unit, with the binary of this test in the place of the one that is installed.
func unit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "deploy/riprap-proxy.service"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheUnitIsOneThatSystemdTakes(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text string) string {
		file := filepath.Join(t.TempDir(), "riprap-proxy.service")
		if err := os.WriteFile(file, []byte(strings.Replace(text, "/usr/local/bin/riprap ", self+" ", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
		if err != nil {
			said = append(said, err.Error()...)
		}
		if rating, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--threshold=18", file).CombinedOutput(); err != nil {
			said = append(said, rating...)
		}
		return string(said)
	}
	text := unit(t)
	if said := verify(text); said != "" { // of a key that it does not know it only says so
		t.Errorf("systemd-analyze says of deploy/riprap-proxy.service\n%s", said)
	}
	for _, broken := range []string{
		strings.Replace(text, "ProtectClock=", "ProtectClocks=", 1),
		strings.Replace(text, "SystemCallFilter=@system-service", "", 1),
		strings.Replace(text, "DynamicUser=yes", "User=root", 1),
	} {
		if broken == text || verify(broken) == "" {
			t.Errorf("systemd-analyze finds nothing wrong with a unit that is broken:\n%s", broken)
		}
	}
}

func TestTheUnitRunsTheFileThatIsShown(t *testing.T) {
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/riprap (.*--drain (\S+)) /etc/riprap/riprap\.yaml$`).FindStringSubmatch(unit(t))
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(unit(t))
	if start == nil || stop == nil {
		t.Fatal("the unit has no ExecStart with --drain and the file, or no TimeoutStopSec")
	}
	drain, err := time.ParseDuration(start[2])
	bound, err2 := time.ParseDuration(stop[1])
	if err != nil || err2 != nil || bound <= drain {
		t.Errorf("TimeoutStopSec is %s, want more than --drain %s: requests would be cut off", stop[1], start[2])
	}
	if !strings.Contains(unit(t), "\nExecReload=/bin/kill -HUP $MAINPID\n") {
		t.Error("the unit's ExecReload is no SIGHUP")
	}

	riprap := buildRiprap(t)
	file := filepath.Join(root(t), "deploy/riprap.yaml")
	if said, err := exec.CommandContext(t.Context(), riprap, "check", file).CombinedOutput(); err != nil {
		t.Errorf("riprap check deploy/riprap.yaml: %v\n%s", err, said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	here := regexp.MustCompile(`listen: \S+`).ReplaceAllString(string(text), "listen: 127.0.0.1:0")
	here = strings.Replace(here, "/var/lib/riprap", dir, 1)
	if err := os.WriteFile(filepath.Join(dir, "riprap.yaml"), []byte(here), 0o644); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(strings.Fields(start[1]), []string{"--admin", "127.0.0.1:0", filepath.Join(dir, "riprap.yaml")})
	p := startProxy(t, exec.CommandContext(t.Context(), riprap, args...))
	p.end()
}

func buildRiprap(t *testing.T) string {
	t.Helper()
	riprap := filepath.Join(t.TempDir(), "riprap")
	if said, err := shell(t, 10*time.Minute, "go build -o "+riprap+" ./cmd/riprap"); err != nil {
		t.Fatalf("go build ./cmd/riprap: %v\n%s", err, said)
	}
	return riprap
}

// A runningProxy is one that has said that it is ready.
type runningProxy struct {
	t          *testing.T
	cmd        *exec.Cmd
	said       *output
	ended      chan error // how it did
	url, admin string     // of its first service, and for operators
}

var (
	serves = regexp.MustCompile(`(?m)^riprap proxy: (\S+) on (\S+) to \S+$`)
	admins = regexp.MustCompile(`(?m)^riprap proxy: admin on (\S+)$`)
)

// startProxy starts a proxy, which ends with the test at the latest.
func startProxy(t *testing.T, cmd *exec.Cmd) *runningProxy {
	t.Helper()
	p := &runningProxy{t: t, cmd: cmd, said: newOutput(), ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = p.said, p.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		p.ended <- cmd.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill() // unless it has ended
		<-over
	})
	if !p.said.waitFor("riprap proxy: ready\n", over) {
		t.Fatalf("%v is not ready:\n%s", cmd, p.said.String())
	}
	service, admin := serves.FindStringSubmatch(p.said.String()), admins.FindStringSubmatch(p.said.String())
	if service == nil || admin == nil {
		t.Fatalf("%v says where it is in no way that is known:\n%s", cmd, p.said.String())
	}
	p.url, p.admin = service[2], admin[1]
	return p
}

// end asks it to end, which has to be well.
func (p *runningProxy) end() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.ended; err != nil {
		p.t.Errorf("after SIGTERM: %v, want exit code 0\n%s", err, p.said.String())
	}
}

func TestAnImageNeedsStepsThatAreKnown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to others")
	}
	dir := t.TempDir()
	i := &image{dir: dir}
	i.make(t, "FROM golang:1.26 AS build\nWORKDIR /src\nCOPY . .\nRUN echo hello > /out/hello # and more\n"+
		"FROM scratch\nCOPY --from=build --chown=1:2 /out/hello /a/b\nUSER 3:4\nENTRYPOINT [\"/a/b\", \\\n\"c\"]\n")
	got, err := os.ReadFile(filepath.Join(dir, "a/b"))
	if err != nil || !bytes.Equal(got, []byte("hello\n")) || i.String() != "/a/b c as 3:4 in /" {
		t.Errorf("the image runs %v and holds %q (%v), want /a/b c as 3:4 in / and hello", i, got, err)
	}
	info, err := os.Stat(filepath.Join(dir, "a/b"))
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 1 || s.Gid != 2 {
		t.Errorf("/a/b belongs to %d:%d, want 1:2", s.Uid, s.Gid)
	}
}
