package deadline_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/deadline"
)

// plainWriter has no method but those that every ResponseWriter has.
type plainWriter struct{ http.ResponseWriter }

// wrapped hides a writer behind Unwrap alone.
type wrapped struct{ plainWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// hollow has no writer inside.
type hollow struct{ plainWriter }

func (hollow) Unwrap() http.ResponseWriter { return nil }

// hijackable can be taken over, or says that it cannot.
type hijackable struct {
	*httptest.ResponseRecorder
	err error
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, h.err }

// copier counts the bytes that it was left to copy.
type copier struct {
	plainWriter
	copied int64
}

func (c *copier) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(c.plainWriter, src)
	c.copied += n
	return n, err
}

// through lets h answer one request on w, behind a Middleware whose time is over when h begins.
func through(t *testing.T, w http.ResponseWriter, h http.HandlerFunc) {
	t.Helper()
	deadline.Middleware{Limit: 1, Least: -1}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		h(w, r)
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
}

func TestAWriterHasTheMethodsOfTheOneInside(t *testing.T) {
	recorder := httptest.NewRecorder
	for _, test := range []struct {
		name            string
		inside          http.ResponseWriter
		flushes, hijack bool
	}{
		{"none", plainWriter{recorder()}, false, false},
		{"Flush", recorder(), true, false},
		{"Flush, by Unwrap", wrapped{plainWriter{recorder()}}, true, false},
		{"Flush and Hijack", hijackable{recorder(), nil}, true, true},
		{"Flush and Hijack, by Unwrap", wrapped{plainWriter{hijackable{recorder(), nil}}}, true, true},
		{"Hijack", struct {
			plainWriter
			http.Hijacker
		}{plainWriter{recorder()}, hijackable{recorder(), nil}}, false, true},
		{"Unwrap to nothing", hollow{plainWriter{recorder()}}, false, false},
	} {
		var flushes, hijacks, copies, writes bool
		deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, flushes = w.(http.Flusher)
			_, hijacks = w.(http.Hijacker)
			_, copies = w.(io.ReaderFrom)
			_, writes = w.(io.StringWriter)
			if unwrapped := w.(interface{ Unwrap() http.ResponseWriter }).Unwrap(); unwrapped != test.inside {
				t.Errorf("%s: Unwrap() = %T, want the writer inside", test.name, unwrapped)
			}
		})).ServeHTTP(test.inside, httptest.NewRequest("GET", "/", nil))
		if flushes != test.flushes || hijacks != test.hijack || !copies || !writes {
			t.Errorf("%s: Flusher %t, Hijacker %t, ReaderFrom %t, StringWriter %t; want %t, %t, true, true",
				test.name, flushes, hijacks, copies, writes, test.flushes, test.hijack)
		}
	}
}

func TestAFlushThatIsNotSupportedBeginsNoAnswer(t *testing.T) {
	w := httptest.NewRecorder()
	through(t, plainWriter{w}, func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush() = %v, want not supported", err)
		}
	})
	if w.Code != http.StatusGatewayTimeout || w.Flushed {
		t.Errorf("status %d, flushed %t; want our 504, which is not flushed", w.Code, w.Flushed)
	}
}

func TestAConnectionTakenOverIsNotAnsweredOn(t *testing.T) {
	take := func(w http.ResponseWriter, _ *http.Request) { w.(http.Hijacker).Hijack() }
	w := httptest.NewRecorder()
	through(t, hijackable{w, nil}, take)
	if w.Body.Len() > 0 {
		t.Errorf("after a takeover there is an answer %d %q", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	through(t, hijackable{w, errors.New("cannot")}, take)
	if w.Code != http.StatusGatewayTimeout {
		t.Errorf("after a takeover that failed the status is %d, want our 504", w.Code)
	}
}

// The 200 to a CONNECT, by a handler that waits for the end of the tunnel.
func TestAConnectionTakenOverIsNotBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Hijacker).Hijack()
			<-r.Context().Done()
		})).ServeHTTP(hijackable{httptest.NewRecorder(), nil}, httptest.NewRequest("CONNECT", "/", nil)) // which does not panic
	})
}

func TestCopyingIsLeftToTheWriterInside(t *testing.T) {
	const size = 100_000
	inside := &copier{plainWriter: plainWriter{httptest.NewRecorder()}}
	through(t, inside, func(w http.ResponseWriter, _ *http.Request) {
		n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader(strings.Repeat("x", size)))
		if n != size || err != nil {
			t.Errorf("ReadFrom() = %d, %v, want %d", n, err, size)
		}
		n, err = w.(io.ReaderFrom).ReadFrom(strings.NewReader("more"))
		if n != 4 || err != nil {
			t.Errorf("second ReadFrom() = %d, %v, want 4", n, err)
		}
	})
	w := inside.ResponseWriter.(*httptest.ResponseRecorder)
	if want := strings.Repeat("x", size) + "more"; w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("answer %d with %d bytes, want 200 with %d", w.Code, w.Body.Len(), len(want))
	}
	if want := int64(size + 4 - 512); inside.copied != want {
		t.Errorf("the writer inside copied %d bytes, want %d", inside.copied, want)
	}
}

// Handler and test share a file system and nothing else: the whole way through net/http, with sendfile.
func TestAFileArrivesWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	content := strings.Repeat("0123456789", 100_000)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, name)
	})))
	defer server.Close()
	resp, body := get(t, server.Client(), server.URL)
	if body != content || resp.ContentLength != int64(len(content)) {
		t.Errorf("got %d bytes of %d announced, want %d", len(body), resp.ContentLength, len(content))
	}
}

func TestASourceThatFailsBeforeItsFirstByteBeginsNoAnswer(t *testing.T) {
	failing := io.MultiReader(strings.NewReader(""), readerFunc(func([]byte) (int, error) { return 0, errors.New("too slow") }))
	for name, inside := range map[string]http.ResponseWriter{
		"with ReadFrom":    &copier{plainWriter: plainWriter{httptest.NewRecorder()}},
		"without ReadFrom": httptest.NewRecorder(),
	} {
		through(t, inside, func(w http.ResponseWriter, _ *http.Request) {
			if n, err := io.Copy(w, failing); n != 0 || err == nil {
				t.Errorf("%s: Copy() = %d, %v, want an error", name, n, err)
			}
		})
		if inside.Header().Get("X-Deadline-Exceeded") != "true" {
			t.Errorf("%s: header %q, want our 504", name, inside.Header())
		}
	}
}

func TestASourceIsNotReadBeyondItsEnd(t *testing.T) {
	ends := 0
	src := readerFunc(func([]byte) (int, error) { ends++; return 0, io.EOF })
	through(t, &copier{plainWriter: plainWriter{httptest.NewRecorder()}}, func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.(io.ReaderFrom).ReadFrom(src); n != 0 || err != nil || ends != 1 {
			t.Errorf("ReadFrom() = %d, %v after %d ends, want 0 after one", n, err, ends)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// get fetches a page and its body.
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
