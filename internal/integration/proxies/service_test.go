package proxies

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A service is what a proxy stands in front of.
type service struct {
	name     string
	url      string // as a program that calls it directly has it
	to       string // as the proxy has it
	protocol protocol
	paths    []string // the first words of the paths that it serves
}

// paths are what the services in Go, Node and Python all serve, in the same way.
var paths = []string{
	"small", "empty", "nothing", "tagged", "range", "packed", "chunked", "trailers", "early", "events", "cookies",
	"fields", "status", "moved", "echo", "down", "up", "unending",
}

// unforwarded are fields that an echo leaves out: those of the connection, and those that a proxy adds.
var unforwarded = []string{
	"connection", "keep-alive", "te", "trailer", "transfer-encoding", "content-length", "expect", "host", "user-agent", "via", "x-forwarded-for",
	"x-forwarded-host", "x-forwarded-proto", "x-request-timeout-ms", "x-request-deadline", "x-correlation-id",
}

// block is what large bodies are made of: a MiB of numbered lines.
var block = func() []byte {
	var b bytes.Buffer
	for i := range 1 << 16 {
		fmt.Fprintf(&b, "%015d\n", i)
	}
	return b.Bytes()
}()

var packed = func() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	fmt.Fprint(w, strings.Repeat("a body that is compressed\n", 40))
	w.Close()
	return b.Bytes()
}()

const lastModified = "Mon, 02 Feb 2026 10:00:00 GMT"

// serveGo is the service in Go.
func serveGo(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	flush := http.NewResponseController(w).Flush
	if r.Method == http.MethodOptions && r.RequestURI == "*" {
		echo(w, r)
		return
	}
	word, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	h.Set("Content-Type", "text/plain")
	switch word {
	case "small":
		io.WriteString(w, "hello\n")
	case "empty":
		w.WriteHeader(http.StatusOK)
	case "nothing":
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNoContent)
	case "tagged":
		h.Set("ETag", `"v1"`)
		h.Set("Last-Modified", lastModified)
		h.Set("Cache-Control", "max-age=60, must-revalidate")
		h.Set("Vary", "Accept-Encoding")
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, "the first version\n")
	case "range":
		h.Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(block[:4096]))
	case "packed":
		h.Set("Content-Encoding", "gzip")
		w.Write(packed)
	case "chunked":
		for i := range 3 {
			fmt.Fprintf(w, "piece %d\n", i)
			flush()
		}
	case "trailers":
		io.Copy(io.Discard, r.Body)
		h.Set("Trailer", "X-Sum, X-Got")
		fmt.Fprintln(w, "what the sum is of")
		flush()
		h.Set("X-Sum", "42")
		h.Set("X-Got", r.Trailer.Get("X-Sum"))
	case "early":
		h.Add("Link", "</style.css>; rel=preload; as=style")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "late\n")
	case "events":
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		for i := range 3 {
			fmt.Fprintf(w, "id: %d\nevent: tick\ndata: {\"n\":%d}\n\n", i, i)
			flush()
		}
	case "cookies":
		h["Set-Cookie"] = []string{"a=1; Path=/; HttpOnly", "b=2; Max-Age=5; SameSite=Lax"}
		h["Www-Authenticate"] = []string{`Basic realm="one, two"`, `Bearer scope="x"`}
		h["Link"] = []string{"</1>; rel=next", "</2>; rel=prev"}
		io.WriteString(w, "cookies\n")
	case "fields":
		for i := range 80 {
			h.Set(fmt.Sprintf("X-Field-%d", i), strings.Repeat(string(rune('a'+i%26)), i))
		}
		h["X-Many"] = []string{"1", "2", "", "3, 4"}
		h.Set("X-Odd", "tab\tand \"quotes\"; ü=1")
		io.WriteString(w, "fields\n")
	case "status":
		code, _ := strconv.Atoi(rest)
		switch code {
		case 401:
			h.Set("WWW-Authenticate", "Bearer")
		case 405:
			h.Set("Allow", "GET, HEAD")
		case 429, 503:
			h.Set("Retry-After", "7")
		}
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(code)
		fmt.Fprintf(w, "{\"status\":%d}\n", code)
	case "moved":
		code, _ := strconv.Atoi(rest)
		h.Set("Location", "/small?from="+rest+"#part")
		w.WriteHeader(code)
		io.WriteString(w, "elsewhere\n")
	case "down":
		n, _ := strconv.Atoi(rest)
		h.Set("Content-Length", strconv.Itoa(n<<20))
		for range n {
			w.Write(block)
		}
	case "up":
		s := newSum()
		io.Copy(s, r.Body)
		fmt.Fprintf(w, "%d %s\n", s.n, s)
	case "unending": // its end is that of the connection
		if r.ProtoMajor == 1 {
			h.Set("Connection", "close")
		}
		io.WriteString(w, "until the end\n")
		flush()
	default:
		echo(w, r)
	}
}

// echo tells what the request was.
func echo(w http.ResponseWriter, r *http.Request) {
	s := newSum()
	io.Copy(s, r.Body)
	var lines []string
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if slices.Contains(unforwarded, name) {
			continue
		}
		for i, v := range values {
			lines = append(lines, fmt.Sprintf("%s %d: %s\n", name, i, v))
		}
	}
	slices.Sort(lines)
	text := fmt.Sprintf("%s %s\n%s%d %s\n", r.Method, r.RequestURI, strings.Join(lines, ""), s.n, s)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	io.WriteString(w, text)
}

// A sum is of what is written to it.
type sum struct {
	hash.Hash
	n int64
}

func newSum() *sum { return &sum{Hash: sha256.New()} }

func (s *sum) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	return s.Hash.Write(p)
}

func (s *sum) String() string { return fmt.Sprintf("%x", s.Sum(nil)) }

// goServices starts the service in Go, over each protocol. Its certificate is in the file ca.
func goServices(t testing.TB) (all []service, ca string) {
	t.Helper()
	for _, p := range []protocol{http1, h2c, h2} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(serveGo))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(p != h2c)
		s.Config.Protocols.SetHTTP2(p == h2)
		s.Config.Protocols.SetUnencryptedHTTP2(p == h2c)
		if p == h2 {
			s.EnableHTTP2 = true
			s.TLS = new(tls.Config)
			s.StartTLS()
			ca = filepath.Join(t.TempDir(), "service.pem")
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			if err := os.WriteFile(ca, text, 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		served := service{name: "go-" + string(p), url: s.URL, to: s.URL, protocol: p, paths: paths}
		if p == h2c {
			served.to = "h2c://" + s.Listener.Addr().String()
		}
		all = append(all, served)
	}
	return all, ca
}
