package flaky

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

// A running is the subcommand while it runs.
type running struct {
	url    string
	stop   context.CancelFunc
	ended  chan error
	rest   chan string // of stdout, once it has ended
	stderr *safeBuffer
}

// start runs the subcommand and waits for its first line.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	s := &running{stop: cancel, ended: make(chan error, 1), rest: make(chan string, 1), stderr: &safeBuffer{}}
	go func() {
		s.ended <- Run(ctx, args, w, s.stderr)
		w.Close()
	}()
	stdout := bufio.NewReader(r)
	line, err := stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("riprap flaky %q: no first line: %v, %v", args, err, <-s.ended)
	}
	s.url = strings.TrimSuffix(line, "\n")
	go func() {
		rest, _ := io.ReadAll(stdout)
		s.rest <- string(rest)
	}()
	return s
}

// end stops the subcommand as Ctrl-C does.
func (s *running) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("riprap flaky, stopped: got %v, want none", err)
	}
	if rest := <-s.rest; rest != "" {
		t.Errorf("riprap flaky: got %q on stdout behind the URL, want nothing", rest)
	}
}

type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestTheFirstLineIsTheURLOfAServerThatFollowsTheScript(t *testing.T) {
	s := start(t, "503 body=no, 200 body=ok")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+$`).MatchString(s.url) {
		t.Errorf("got first line %q, want a URL on loopback", s.url)
	}
	for _, want := range []string{"no", "ok", "ok"} {
		if _, got := get(t, http.DefaultClient, s.url); got != want {
			t.Errorf("GET = %q, want %q", got, want)
		}
	}
	if _, log := get(t, http.DefaultClient, s.url+"/_log"); strings.Count(log, `"method":"GET"`) != 3 {
		t.Errorf("GET /_log = %s, want three requests", log)
	}
	s.end(t)
	if got := s.stderr.String(); got != "" {
		t.Errorf("got %q on stderr, want nothing without -v", got)
	}
	if _, err := http.Get(s.url); err == nil {
		t.Error("GET after the end: got no error, want one")
	}
}

func TestStoppingDoesNotWaitForRequestsThatHang(t *testing.T) {
	s := start(t, "hang", "-v")
	failed := make(chan error)
	go func() {
		_, err := http.Post(s.url, "text/plain", strings.NewReader("x"))
		failed <- err
	}()
	for !strings.Contains(s.stderr.String(), "POST / · hang\n") {
		time.Sleep(time.Millisecond)
	}
	s.end(t)
	if err := <-failed; err == nil {
		t.Error("POST: got no error, want one from the end of the server")
	}
}

func TestItEndsByItselfAfterATime(t *testing.T) {
	s := start(t, "-for", "1ns", "200")
	if err := <-s.ended; err != nil {
		t.Errorf("riprap flaky -for 1ns: got %v, want none", err)
	}
}

func TestVerboseShowsEachRequest(t *testing.T) {
	s := start(t, "-v", "/a: 503*2; /b: slow=1h/byte")
	get(t, http.DefaultClient, s.url+"/a/x%1b[2J?token=s3cret")
	get(t, http.DefaultClient, s.url+"/~one/c")
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", s.url+"/b", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	for !strings.Contains(s.stderr.String(), "left") {
		time.Sleep(time.Millisecond)
	}
	s.end(t)
	const clock = `\d\d:\d\d:\d\d\.\d{3} `
	want := regexp.MustCompile(`^` + clock + `GET /a/x \[2J · 503\*2\n` + clock + `GET /~one/c · 404, the script has no part for this path\n` +
		clock + `GET /b · slow=1h/byte\n` + clock + `GET /b · left after \d.*s\n$`)
	if got := s.stderr.String(); !want.MatchString(got) {
		t.Errorf("got on stderr\n%s\nwant it to match\n%s", got, want)
	}
}

func TestItSpeaksHTTP2WithAndWithoutTLS(t *testing.T) {
	for _, args := range [][]string{{"200"}, {"-tls", "200"}} {
		s := start(t, args...)
		transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
		resp, _ := get(t, &http.Client{Transport: transport}, s.url)
		if resp.ProtoMajor != 2 || resp.StatusCode != 200 {
			t.Errorf("riprap flaky %q: got %s %s, want 200 over HTTP/2", args, resp.Proto, resp.Status)
		}
		transport.CloseIdleConnections()
		s.end(t)
	}
}

func TestNobodyTrustsItsCertificate(t *testing.T) {
	s := start(t, "-tls", "-v", "200")
	_, err := http.Get(s.url)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Errorf("GET %s: got %v, want a certificate that is not trusted", s.url, err)
	}
	s.end(t)
}

func TestItListensOnThisMachineUnlessToldOtherwise(t *testing.T) {
	s := start(t, "200", "--listen", ":0")
	if !strings.HasPrefix(s.url, "http://127.0.0.1:") || s.stderr.String() != "" {
		t.Errorf("--listen :0: got %s and %q, want loopback and no warning", s.url, s.stderr)
	}
	s.end(t)

	s = start(t, "200", "--listen", "0.0.0.0:0")
	if !strings.HasPrefix(s.url, "http://127.0.0.1:") || !strings.Contains(s.stderr.String(), "other machines can reach") {
		t.Errorf("--listen 0.0.0.0:0: got %s and %q, want a URL that works and a warning", s.url, s.stderr)
	}
	get(t, http.DefaultClient, s.url)
	s.end(t)
}

func TestAPortThatIsTakenIsNoMistakeInTheArguments(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = Run(t.Context(), []string{"--listen", l.Addr().String(), "200"}, io.Discard, io.Discard)
	if exit.Code(err) != exit.NotFine {
		t.Errorf("riprap flaky on a port that is taken: got %v, exit code %d, want %d", err, exit.Code(err), exit.NotFine)
	}
}

func TestWhoeverReadsNoURLGetsNoServer(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if err := Run(t.Context(), []string{"200"}, w, io.Discard); exit.Code(err) != exit.NotFine {
		t.Errorf("riprap flaky with stdout closed: got %v, want an error", err)
	}
}

func TestArgumentsThatMakeNoSenseAreUsageErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no script":                     {nil, "no script given"},
		"a script in pieces":            {[]string{"503,", "200"}, "needs quotation marks"},
		"a bad script":                  {[]string{"503*2, 429 retry-aftr=1"}, "column 12: unknown option \"retry-aftr\", did you mean \"retry-after\"?\n\t503*2, 429 retry-aftr=1\n\t           ^\n (riprap flaky -h"},
		"an unknown flag":               {[]string{"-frob", "200"}, "-frob"},
		"an address without a port":     {[]string{"-listen", "localhost", "200"}, "want HOST:PORT"},
		"an end before the beginning":   {[]string{"-for", "-1s", "200"}, "-for -1s"},
		"an end without a unit":         {[]string{"-for", "5", "200"}, `invalid value "5" for flag -for: did you mean 5s?`},
		"a flag behind a script, wrong": {[]string{"200", "-for", "soon"}, "soon"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := Run(t.Context(), tt.args, &stdout, &stderr)
			if err == nil || !strings.Contains(err.Error(), tt.want) || exit.Code(err) != exit.Usage {
				t.Errorf("riprap flaky %q: got %v, exit code %d, want %q and %d", tt.args, err, exit.Code(err), tt.want, exit.Usage)
			}
			if stdout.Len() > 0 || stderr.Len() > 0 {
				t.Errorf("riprap flaky %q: got %q and %q, want nothing printed", tt.args, &stdout, &stderr)
			}
		})
	}
}

func TestHelpNamesTheStepsAndFitsIntoATerminal(t *testing.T) {
	var stdout bytes.Buffer
	if err := Run(t.Context(), []string{"-h"}, &stdout, io.Discard); err != nil {
		t.Errorf("riprap flaky -h: got %v, want none", err)
	}
	for _, want := range []string{"hang", "reset", "close", "cut", "slow", "endless", "body=", "retry-after=", "header=", "delay=", "/_log", "-listen", "-for", "-tls", "-v"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("riprap flaky -h: no word of %s", want)
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(stdout.String(), "\t", "    ")) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 80 {
			t.Errorf("riprap flaky -h: a line of %d columns: %s", n, line)
		}
	}
}
