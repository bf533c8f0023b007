package integration_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// counted counts what is read of a body, by all of its readers.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// upload returns a request with a large body, and a count of what has been read of it.
func upload(t *testing.T, method, url, key string, content []byte) (*http.Request, *atomic.Int64) {
	t.Helper()
	read := new(atomic.Int64)
	req := request(t, method, url, key, nil)
	req.ContentLength = int64(len(content))
	req.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(counted{bytes.NewReader(content), read}), nil
	}
	req.Body, _ = req.GetBody()
	return req, read
}

func TestLargeUploadThatTheConnectionDoesNotSurviveIsSentTwiceAtMost(t *testing.T) {
	content := noise(32 << 20)
	const refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	for _, test := range []struct {
		name, key string
		script    []step
		sends     int32 // at most
	}{
		// The reset that the bytes not read provoke may overtake the refusal.
		{"refused and closed, with a key", "k1", []step{readHeader, write(refusal)}, 2},
		{"refused and closed, without a key", "", []step{readHeader, write(refusal)}, 1},
		{"refused and read to its end", "k1", []step{readHeader, write(refusal), eof}, 1},
		{"reset within the body, with a key", "k1", []step{readHeader, readSome(1 << 20), rst}, 2},
		{"reset within the body, without a key", "", []step{readHeader, readSome(1 << 20), rst}, 1},
		{"reset after the body, with a key", "k1", []step{read, rst}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			server := raw(t, test.script)
			c := call(t, plain())
			c.transport.Policy.MaxAttempts = 10
			req, sent := upload(t, "POST", server.url, test.key, content)
			resp, _, err := c.do(t, req)
			switch {
			case err == nil && resp.StatusCode != http.StatusRequestEntityTooLarge:
				t.Errorf("POST = %d, want 413 or an error", resp.StatusCode)
			case err != nil && test.key == "" && !errors.Is(err, riphttp.ErrOutcomeUnknown):
				t.Errorf("POST: %v, want ErrOutcomeUnknown", err)
			case err != nil && test.key != "" && !errors.Is(err, riprap.ErrAttempts):
				t.Errorf("POST: %v, want ErrAttempts", err)
			}
			if got := server.conns.Load(); got < 1 || got > test.sends {
				t.Errorf("POST was sent %d times, want at most %d", got, test.sends)
			}
			if got := sent.Load(); got > int64(len(content))*int64(test.sends) {
				t.Errorf("POST read %d bytes of its body of %d", got, len(content))
			}
		})
	}
}

// What breaks before the request can have begun costs nothing: no limit but that on attempts holds.
func TestLargeUploadIsTriedAgainAsOftenAsOthersWhileTheHandshakeFails(t *testing.T) {
	for name, script := range map[string][]step{"reset": {readSome(1), rst}, "cut off": {readSome(1), eof}} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			server := raw(t, script)
			base := plain()
			defer base.CloseIdleConnections()
			req, read := upload(t, "PUT", "https://"+server.addr, "", noise(2<<20))
			_, err := (&riphttp.Transport{Base: base, Policy: &riprap.Policy{
				MaxAttempts: 3, Backoff: riprap.Backoff{Base: time.Nanosecond},
			}}).RoundTrip(req)
			if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Attempts != 3 || read.Load() != 0 {
				t.Errorf("PUT: %v with %d bytes read of the body, want three attempts and none", err, read.Load())
			}
		})
	}
}

func TestFailedExpectationIsFinal(t *testing.T) {
	settles(t)
	server := raw(t, []step{readHeader, write("HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), hang})
	c := call(t, plain())
	req, sent := upload(t, "PUT", server.url, "", noise(2<<20))
	req.Header.Set("Expect", "100-continue")
	c.transport.Base.(*http.Transport).ExpectContinueTimeout = patience
	c.answer(t, req, 417, "no")
	if server.conns.Load() != 1 || sent.Load() != 0 {
		t.Errorf("PUT was sent %d times with %d bytes, want once and without its body", server.conns.Load(), sent.Load())
	}
}

func TestExpectedContinueKeepsTheBodyBackUntilTheServerWantsIt(t *testing.T) {
	settles(t)
	content := noise(2 << 20)
	server := serve(t, flaky(2, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // which says 100 Continue
		if bytes.Equal(body, content) && r.Header.Get("Expect") == "100-continue" {
			io.WriteString(w, "hello")
		}
	}))
	base := server.base()
	base.ExpectContinueTimeout = patience
	c := call(t, base)
	req, sent := upload(t, "PUT", server.URL, "", content)
	req.Header.Set("Expect", "100-continue")
	c.answer(t, req, 200, "hello")
	if server.requests.Load() != 3 || sent.Load() != int64(len(content)) {
		t.Errorf("PUT was sent %d times with %d bytes, want three times and its body of %d once", server.requests.Load(), sent.Load(), len(content))
	}
}

func TestRequestBodyIsClosedOnceForEachReader(t *testing.T) {
	for name, change := range map[string]func(*caller, *http.Request) (failures int){
		"an answer":              func(*caller, *http.Request) int { return 0 },
		"an answer in the end":   func(*caller, *http.Request) int { return 2 },
		"no answer":              func(*caller, *http.Request) int { return 5 },
		"a body read in advance": func(_ *caller, r *http.Request) int { r.GetBody, r.ContentLength = nil, 5; return 2 },
		"a body sent once":       func(_ *caller, r *http.Request) int { r.GetBody, r.ContentLength = nil, -1; return 2 },
		"a server that is gone":  func(_ *caller, r *http.Request) int { r.URL.Host = "127.0.0.1:1"; return 0 },
		"a bad header":           func(_ *caller, r *http.Request) int { r.Header.Set("A", "\x00"); return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			var opened, closed atomic.Int32
			open := func() (io.ReadCloser, error) {
				opened.Add(1)
				return &closing{Reader: strings.NewReader("order"), count: &closed}, nil
			}
			var failures atomic.Int32
			server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				flaky(int(failures.Load()), say("hello"))(n, w, r)
			})
			c := call(t, server.base())
			req := request(t, "PUT", server.URL, "", nil)
			req.GetBody = open
			req.Body, _ = open()
			failures.Store(int32(change(c, req)))
			c.do(t, req)
			waitFor(t, "all bodies to be closed", func() bool { return opened.Load() == closed.Load() })
		})
	}
}

// A closing reader counts that it was closed, and counts more if it was closed twice.
type closing struct {
	io.Reader
	closed atomic.Bool
	count  *atomic.Int32
}

func (c *closing) Close() error {
	if c.closed.Swap(true) {
		c.count.Add(1000)
	}
	c.count.Add(1)
	return nil
}
