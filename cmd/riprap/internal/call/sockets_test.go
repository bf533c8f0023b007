package call

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/flaky"
)

// overSockets makes a call as the command does, from arguments to connections. URL stands for the server's.
func overSockets(t *testing.T, server *httptest.Server, args string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := Run(t.Context(), strings.Fields(strings.ReplaceAll(args, "URL", server.URL)), &stdout, &stderr)
	return result{stdout.String(), stderr.String(), err}
}

func TestCallOverSockets(t *testing.T) {
	const quick = " --backoff 1ms..1ms --jitter none"
	for name, tt := range map[string]struct {
		script, args string
		code         int
		body         string
		want         string // how the lines begin
	}{
		"a reset, then an answer": {"reset, 200 body=ok", "URL" + quick, 0, "ok",
			"attempt 1: connection reset by peer · waiting 1ms (retry 1 of 3, budget 9 left)\nattempt 2: 200 · answered after "},
		"a POST that is reset": {"reset", "URL -d x" + quick, 1, "",
			"attempt 1: connection reset by peer · gave up: outcome unknown, the request may have been processed and is not sent again; add --key"},
		"a body that is cut short": {"cut=3 body=abcdef", "URL" + quick, 1, "abc",
			"attempt 1: 200 · answered after "},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := flaky.New(tt.script)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(h)
			defer server.Close()
			r := overSockets(t, server, tt.args)
			if r.code(t) != tt.code || r.stdout != tt.body || !strings.HasPrefix(r.stderr, tt.want) {
				t.Errorf("got exit code %d, %q and\n%swant %d, %q and\n%s", r.code(t), r.stdout, r.stderr, tt.code, tt.body, tt.want)
			}
			for _, a := range h.Arrivals("") {
				if a.Header["User-Agent"][0] != "riprap" {
					t.Errorf("got the request's header %v, want the User-Agent riprap", a.Header)
				}
			}
		})
	}
}

func TestRetriesUseTheConnectionAgain(t *testing.T) {
	h := script(t, "503*3, 200")
	server := httptest.NewServer(h)
	defer server.Close()
	r := overSockets(t, server, "URL --backoff 1ms..1ms")
	sent := h.Arrivals("")
	if len(sent) != 4 {
		t.Fatalf("got %d attempts, want 4:\n%s", len(sent), r.stderr)
	}
	for i, a := range sent {
		if a.Conn != sent[0].Conn {
			t.Errorf("attempt %d came by the connection %s, the first by %s", i+1, a.Conn, sent[0].Conn)
		}
	}
}

func TestBodyComesAsItWasSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "no gzip, asked for "+r.Header.Get("Accept-Encoding"))
	}))
	defer server.Close()
	if r := overSockets(t, server, "URL"); r.stdout != "no gzip, asked for " || r.code(t) != 0 {
		t.Errorf("got %q and\n%swant the body as it is", r.stdout, r.stderr)
	}
}

func TestCertificateThatIsNotAcceptedIsNotTriedAgain(t *testing.T) {
	server := httptest.NewUnstartedServer(script(t, "200"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	r := overSockets(t, server, "URL")
	if want := "attempt 1: certificate not accepted: "; r.code(t) != 1 || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("got exit code %d and\n%swant 1 and a line %s…", r.code(t), r.stderr, want)
	}
}

func TestServerThatSpeaksOnlyHTTPIsNamed(t *testing.T) {
	server := httptest.NewServer(script(t, "200"))
	defer server.Close()
	r := overSockets(t, server, strings.Replace(server.URL, "http:", "https:", 1))
	if want := "attempt 1: the server speaks HTTP and not HTTPS · not retried: a repeat would not cure it, "; r.code(t) != 1 || !strings.HasPrefix(r.stderr, want) {
		t.Errorf("got exit code %d and\n%swant 1 and a line %s…", r.code(t), r.stderr, want)
	}
}

func TestPostIsRepeatedWhereNobodyListens(t *testing.T) {
	server := httptest.NewServer(script(t, "200"))
	server.Close()
	r := overSockets(t, server, "URL -d x --attempts 2 --backoff 1ms..1ms --jitter none")
	if want := "attempt 1: connection refused · waiting 1ms (retry 1 of 1, budget 9 left)\nattempt 2: connection refused · gave up: no attempts left (2 of 2), "; r.code(t) != 1 || !strings.HasPrefix(r.stderr, want) {
		t.Errorf("got exit code %d and\n%swant 1 and\n%s", r.code(t), r.stderr, want)
	}
}

func TestUploadIsWholeOnEverySend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, bytes.Repeat([]byte("riprap\n"), 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	h := script(t, "503, 429, 200")
	server := httptest.NewServer(h)
	defer server.Close()
	r := overSockets(t, server, "URL -X PUT --backoff 1ms..1ms -d @"+file)
	all := h.Arrivals("")
	if r.code(t) != 0 || len(all) != 3 {
		t.Fatalf("got exit code %d after %d sends, want 0 after 3:\n%s", r.code(t), len(all), r.stderr)
	}
	for i, a := range all {
		if !a.Whole || a.Body != 7<<20 || a.Hash != all[0].Hash {
			t.Errorf("send %d: got %d bytes, whole %v, hash %s, want the file", i+1, a.Body, a.Whole, a.Hash)
		}
	}
}
