package integration_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

func TestCutBodyIsAnErrorOfTheReader(t *testing.T) {
	for _, test := range []struct {
		name, response string
		cut            bool // and the reader can tell
	}{
		{"shorter than its length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello", true},
		{"a part shorter than its length", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-99/200\r\nContent-Length: 100\r\n\r\nhello", true},
		{"chunked and without the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true},
		{"cut within a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhello", true},
		{"ended by the end of the connection", "HTTP/1.0 200 OK\r\n\r\nhello", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			server := raw(t, []step{read, write(test.response), eof})
			c := call(t, plain())
			budget := &riprap.Budget{Ratio: 1, Reserve: -1}
			c.transport.Policy.Budget = budget
			_, content, err := c.do(t, request(t, "GET", server.url, "", nil))
			if content != "hello" || errors.Is(err, io.ErrUnexpectedEOF) != test.cut || (err != nil) != test.cut {
				t.Errorf("body = %q, %v, want hello and io.ErrUnexpectedEOF: %t", content, err, test.cut)
			}
			if got := server.requests.Load(); got != 1 {
				t.Errorf("GET was sent %d times, want once", got)
			}
			// To the budget and to the trace it was a failure.
			deposits := 1
			if test.cut {
				deposits = 0
			}
			if got := budget.Left(time.Now()); got != deposits {
				t.Errorf("the budget got %d deposits, want %d", got, deposits)
			}
			if e := c.last(t); (e.Err != nil) != test.cut {
				t.Errorf("Done event = %+v, want an error: %t", e, test.cut)
			}
		})
	}
}

func TestLargeDownloadIsWhole(t *testing.T) {
	content := noise(16 << 20)
	for name, change := range map[string]func(*httptest.Server){
		"HTTP/1.1":                 func(*httptest.Server) {},
		"HTTP/1.1 over TLS":        overTLS,
		"HTTP/2 over TLS":          overTLSHTTP2,
		"HTTP/2 over plain TCP":    overHTTP2,
		"HTTP/1.1 with its length": func(*httptest.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			server := serve(t, flaky(1, func(w http.ResponseWriter, _ *http.Request) {
				if name == "HTTP/1.1 with its length" {
					w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				}
				w.Write(content)
			}), change)
			c := call(t, server.base())
			resp, err := c.Do(request(t, "GET", server.URL, "", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got := bytes.NewBuffer(make([]byte, 0, len(content)+bytes.MinRead))
			if _, err := got.ReadFrom(resp.Body); err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("body of %d bytes, %v, want the %d that were sent", got.Len(), err, len(content))
			}
			if wantHTTP2 := server.EnableHTTP2 || name == "HTTP/2 over plain TCP"; (resp.ProtoMajor == 2) != wantHTTP2 {
				t.Errorf("protocol %s, want HTTP/2: %t", resp.Proto, wantHTTP2)
			}
		})
	}
}

func TestCompressedResponseIsUnpacked(t *testing.T) {
	settles(t)
	server := serve(t, flaky(1, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding = %q, want gzip", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "hello")
		z.Close()
	}))
	c := call(t, server.base())
	resp := c.answer(t, request(t, "GET", server.URL, "", nil), 200, "hello")
	if !resp.Uncompressed || resp.ContentLength != -1 || resp.Header.Get("Content-Encoding") != "" {
		t.Errorf("Uncompressed %t, ContentLength %d, Content-Encoding %q; want true, -1 and none",
			resp.Uncompressed, resp.ContentLength, resp.Header.Get("Content-Encoding"))
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	for name, change := range map[string]func(*httptest.Server){"HTTP/1.1": func(*httptest.Server) {}, "HTTP/2": overHTTP2} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			server := serve(t, flaky(1, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				io.Copy(w, r.Body)
				w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
			}), change)
			c := call(t, server.base())
			req := request(t, "PUT", server.URL, "", nil)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewBufferString("hello")), nil }
			req.Body, _ = req.GetBody()
			req.ContentLength = -1
			req.Trailer = http.Header{"X-Sum": {"42"}}
			resp := c.answer(t, req, 200, "hello")
			if got := resp.Trailer.Get("X-Sum"); got != "42" {
				t.Errorf("trailer X-Sum = %q, want the request's 42", got)
			}
		})
	}
}

func TestHeadHasALengthAndNoBody(t *testing.T) {
	settles(t)
	server := serve(t, flaky(1, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000") }))
	c := call(t, server.base())
	resp := c.answer(t, request(t, "HEAD", server.URL, "", nil), 200, "")
	if resp.ContentLength != 1000 || server.requests.Load() != 2 {
		t.Errorf("HEAD sent %d times has ContentLength %d, want twice and 1000", server.requests.Load(), resp.ContentLength)
	}
	if e := c.last(t); e.Attempts != 2 || e.Err != nil {
		t.Errorf("Done event = %+v, want two attempts and no error", e)
	}
}
