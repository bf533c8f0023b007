package proxies

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A client is a program that sends exchanges.
type client struct {
	name     string
	kind     string // what exchanges name in only
	protocol protocol
	send     func(t *testing.T, base, ca string, all []exchange) []answer
}

func (c client) can(e exchange) bool { return e.only == nil || slices.Contains(e.only, c.kind) }

// clients returns all that this machine has.
func clients(t *testing.T) (all []client) {
	t.Helper()
	for _, p := range []protocol{http1, h2c, h2} {
		all = append(all, client{"go-" + string(p), "go", p, sendGo(p)}, client{"curl-" + string(p), "curl", p, sendCurl(t, p)})
	}
	node := newWorker(t, needs(t, "node"), "testdata/client.mjs")
	python := newWorker(t, needs(t, "python3", "python"), "testdata/client.py")
	return append(all,
		client{"node-fetch", "node", http1, node.send("fetch")},
		client{"node-h2c", "node-h2", h2c, node.send("http2")},
		client{"node-h2", "node-h2", h2, node.send("http2")},
		client{"python-http.client", "python", http1, python.send("client")},
		client{"python-urllib", "urllib", http1, python.send("urllib")},
	)
}

// A worker is a program that answers jobs in lines of JSON.
type worker struct {
	in  io.Writer
	out *bufio.Reader
}

func newWorker(t *testing.T, program string, args ...string) *worker {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // which ends it
		cmd.Wait()
	})
	return &worker{in, bufio.NewReaderSize(out, 1<<20)}
}

func (w *worker) send(via string) func(*testing.T, string, string, []exchange) []answer {
	return func(t *testing.T, base, ca string, all []exchange) (answers []answer) {
		t.Helper()
		for _, e := range all {
			e.Fields = append([][2]string{}, e.Fields...) // in JSON, nil is no list
			job, err := json.Marshal(struct {
				exchange
				Base string `json:"base"`
				Via  string `json:"via"`
				CA   string `json:"ca"`
			}{e, base, via, ca})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.in.Write(append(job, '\n')); err != nil {
				t.Fatal(err)
			}
			line, err := w.out.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%s %v: the client died: %v", via, e, err)
			}
			var a answer
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, a)
		}
		return answers
	}
}

// newTransport returns a transport of net/http that speaks one protocol and does nothing by itself.
func newTransport(t testing.TB, p protocol, ca string) *http.Transport {
	t.Helper()
	tr := &http.Transport{DisableCompression: true, Protocols: new(http.Protocols), MaxIdleConnsPerHost: 256}
	tr.Protocols.SetHTTP1(p == http1)
	tr.Protocols.SetUnencryptedHTTP2(p == h2c)
	tr.Protocols.SetHTTP2(p == h2)
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		tr.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// sendGo sends exchanges by net/http.
func sendGo(p protocol) func(*testing.T, string, string, []exchange) []answer {
	return func(t *testing.T, base, ca string, all []exchange) (answers []answer) {
		t.Helper()
		tr := newTransport(t, p, ca)
		defer tr.CloseIdleConnections()
		for _, e := range all {
			a, err := goExchange(tr, base, e)
			if err != nil {
				a.Error = err.Error()
			}
			answers = append(answers, a)
		}
		return answers
	}
}

func goExchange(tr *http.Transport, base string, e exchange) (a answer, err error) {
	var body io.Reader
	switch {
	case e.Blocks > 0:
		body = bytes.NewReader(bytes.Repeat(block, e.Blocks))
	case e.Body != "":
		body = strings.NewReader(e.Body)
	}
	if e.Chunked {
		body = io.MultiReader(body) // which has no length
	}
	req, err := http.NewRequest(e.Method, base, body)
	if err != nil {
		return a, err
	}
	raw, query, queried := strings.Cut(e.Target, "?")
	req.URL.Opaque, req.URL.RawQuery, req.URL.ForceQuery = raw, query, queried && query == ""
	if e.Target == "*" {
		req.URL = &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: "*"}
	}
	req.Host = "shop.test"
	for _, f := range e.Fields {
		req.Header.Add(f[0], f[1])
	}
	if len(e.Trailers) > 0 {
		req.Trailer = make(http.Header)
		for _, f := range e.Trailers {
			req.Trailer.Add(f[0], f[1])
		}
	}
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			a.Early = append(a.Early, struct {
				Status int         `json:"status"`
				Fields [][2]string `json:"fields"`
			}{code, flat(http.Header(header))})
			return nil
		},
	})
	resp, err := tr.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	s := newSum()
	var start bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(s, &limited{&start}), resp.Body); err != nil {
		return a, err
	}
	a.Status, a.Fields, a.Trailers = resp.StatusCode, flat(resp.Header), flat(resp.Trailer)
	a.Length, a.Hash, a.Body = s.n, s.String(), short(start.Bytes(), s.n)
	return a, nil
}

// short is a body if it is short.
func short(body []byte, length int64) string {
	if length > 8192 {
		return ""
	}
	return string(body)
}

// limited keeps the beginning of what is written to it.
type limited struct{ *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, 8192-l.Len()))])
	return len(p), nil
}

func flat(h http.Header) (fields [][2]string) {
	for name, values := range h {
		for _, v := range values {
			fields = append(fields, [2]string{name, v})
		}
	}
	return fields
}

// sendCurl sends exchanges by curl, over one connection as far as that lasts.
func sendCurl(t *testing.T, p protocol) func(*testing.T, string, string, []exchange) []answer {
	program := needs(t, "curl")
	return func(t *testing.T, base, ca string, all []exchange) (answers []answer) {
		t.Helper()
		if len(all) == 0 {
			return nil
		}
		dir := t.TempDir()
		var config strings.Builder
		say := func(option, value string) {
			fmt.Fprintf(&config, "%s = \"%s\"\n", option, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(value))
		}
		for i, e := range all {
			if i > 0 {
				config.WriteString("next\n")
			}
			config.WriteString("silent\ngloboff\npath-as-is\n")
			config.WriteString(map[protocol]string{http1: "http1.1\n", h2c: "http2-prior-knowledge\n", h2: "http2\n"}[p])
			if ca != "" {
				say("cacert", ca)
			}
			if p == h2c { // which this curl cannot speak twice on a connection
				say("connect-to", "::"+strings.TrimPrefix(base, "http://"))
				say("url", fmt.Sprintf("http://connection%d.test", i))
			} else {
				say("url", base)
			}
			say("header", "Host: shop.test")
			say("request-target", e.Target)
			say("dump-header", filepath.Join(dir, "header"+strconv.Itoa(i)))
			say("output", filepath.Join(dir, "body"+strconv.Itoa(i)))
			if e.Method == "HEAD" {
				config.WriteString("head\n")
			} else {
				say("request", e.Method)
			}
			switch {
			case e.Blocks > 0:
				name := filepath.Join(dir, "blocks"+strconv.Itoa(e.Blocks))
				if err := os.WriteFile(name, bytes.Repeat(block, e.Blocks), 0o600); err != nil {
					t.Fatal(err)
				}
				say("upload-file", name)
			case e.Body != "":
				say("data-raw", e.Body)
			}
			if e.Chunked && p == http1 {
				say("header", "Transfer-Encoding: chunked")
			}
			for _, own := range []string{"Content-Type", "Expect"} { // which it would add
				if !slices.ContainsFunc(e.Fields, func(f [2]string) bool { return f[0] == own }) {
					say("header", own+":")
				}
			}
			for _, f := range e.Fields {
				say("header", f[0]+": "+f[1])
			}
		}
		name := filepath.Join(dir, "config")
		if err := os.WriteFile(name, []byte(config.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "--disable", "--config", name).CombinedOutput()
		if err != nil {
			t.Logf("curl: %v\n%s", err, out) // some exchange has no answer
		}
		for i, e := range all {
			answers = append(answers, curled(t, e, dir, strconv.Itoa(i)))
		}
		return answers
	}
}

// curled reads what curl has written of an answer.
func curled(t *testing.T, e exchange, dir, number string) (a answer) {
	t.Helper()
	header, err := os.ReadFile(filepath.Join(dir, "header"+number))
	if err != nil || len(header) == 0 {
		a.Error = "curl got no answer"
		return a
	}
	for _, part := range strings.Split(strings.TrimSuffix(string(header), "\r\n"), "\r\n\r\n") {
		lines := strings.Split(strings.TrimSuffix(part, "\r\n"), "\r\n")
		var fields [][2]string
		for _, line := range lines {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "HTTP/") {
				fields = append(fields, [2]string{name, strings.TrimSpace(value)})
			}
		}
		status := 0
		if strings.HasPrefix(lines[0], "HTTP/") {
			status, _ = strconv.Atoi(strings.Fields(lines[0])[1])
		}
		switch {
		case status >= 200:
			a.Status, a.Fields = status, fields
		case status > 0:
			a.Early = append(a.Early, struct {
				Status int         `json:"status"`
				Fields [][2]string `json:"fields"`
			}{status, fields})
		case len(fields) > 0:
			a.Trailers = fields
		}
	}
	body, err := os.ReadFile(filepath.Join(dir, "body"+number))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if e.Method == "HEAD" {
		body = nil // where curl repeats the header
	}
	s := newSum()
	s.Write(body)
	a.Length, a.Hash, a.Body = s.n, s.String(), short(body, s.n)
	return a
}
