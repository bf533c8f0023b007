package deadline_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// isBrokenOff reports whether the answer of a handler with a second of time is broken off.
func isBrokenOff(method string, h http.HandlerFunc) bool {
	return isBroken(httptest.NewRecorder(), httptest.NewRequest(method, "/", nil), h)
}

func isBroken(w http.ResponseWriter, r *http.Request, h http.HandlerFunc) (broken bool) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			broken = true
		default:
			panic(p)
		}
	}()
	deadline.Middleware{Limit: time.Second}.Handler(h).ServeHTTP(w, r)
	return false
}

func TestAnAnswerThatIsNotEndedInTimeIsBrokenOff(t *testing.T) {
	write := func(w http.ResponseWriter) { io.WriteString(w, "half") }
	length := func(n string, f func(http.ResponseWriter)) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header().Set("Content-Length", n); f(w) }
	}
	status := func(code int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	for _, test := range []struct {
		name   string
		begin  func(http.ResponseWriter)
		broken bool
	}{
		{"a part of a body", write, true},
		{"bytes", func(w http.ResponseWriter) { w.Write([]byte("half")) }, true},
		{"a copy", func(w http.ResponseWriter) { io.Copy(w, strings.NewReader("half")) }, true},
		{"a header", status(200), true},
		{"a flush", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, true},
		{"a failure", func(w http.ResponseWriter) { http.Error(w, "half", 500) }, true},
		{"less than was said", length("5", write), true},
		{"a length that is none", length("four", write), true},
		{"as much as was said", length("4", write), false},
		{"as much as was said, copied", length("4", func(w http.ResponseWriter) { io.Copy(w, strings.NewReader("half")) }), false},
		{"as much as was said, in two parts", length("8", func(w http.ResponseWriter) { write(w); w.Write([]byte("half")) }), false},
		{"a body of no length", length("0", status(200)), false},
		{"no content", status(204), false},
		{"not modified", status(304), false},
		{"a change of protocol", status(101), false},
		{"a hint", status(103), false}, // then it has said nothing, and is answered for
	} {
		inBubble(t, test.name, func(t *testing.T) {
			late := func(w http.ResponseWriter, r *http.Request) { test.begin(w); <-r.Context().Done() }
			if got := isBrokenOff("GET", late); got != test.broken {
				t.Errorf("GET, and the handler returns after the deadline: broken off %t, want %t", got, test.broken)
			}
			if isBrokenOff("HEAD", late) {
				t.Error("HEAD: broken off, want it as it is: there is no body")
			}
			if isBrokenOff("GET", func(w http.ResponseWriter, r *http.Request) { test.begin(w); time.Sleep(time.Second - 1) }) {
				t.Error("GET, and the handler returns in time: broken off, want it as it is")
			}
		})
	}
}

// The writer of net/http counts what it copies itself.
func TestAWholeAnswerThatTheWriterInsideCopiedIsNotBrokenOff(t *testing.T) {
	const size = 10_000
	for said, want := range map[int]bool{size: false, size + 1: true} {
		inBubble(t, strconv.Itoa(said), func(t *testing.T) {
			inside := &copier{plainWriter: plainWriter{httptest.NewRecorder()}}
			broken := isBroken(inside, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(said))
				w.(io.ReaderFrom).ReadFrom(strings.NewReader(strings.Repeat("x", size)))
				<-r.Context().Done()
			})
			if broken != want || inside.copied == 0 {
				t.Errorf("%d bytes, of which the writer inside copied %d: broken off %t, want %t", size, inside.copied, broken, want)
			}
		})
	}
}

func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// Rows that are written as they come, by a handler that ends its loop with its context and says nothing of it. The client
// sees the header also where nothing was flushed: net/http would take an end without one for that of an old connection.
func TestAClientDoesNotTakeAPartForTheWhole(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, flushed := range []bool{false, true} {
			asked := 0
			server := httptest.NewUnstartedServer(deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/first" {
					return
				}
				asked++
				io.WriteString(w, "row\n")
				if flushed {
					http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})))
			server.EnableHTTP2 = http2
			server.StartTLS()
			get(t, server.Client(), server.URL+"/first") // keeps its connection
			req, err := http.NewRequest("GET", server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(deadline.TimeoutHeader, "200")
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatalf("HTTP/2 %t, flushed %t: %v, want an answer that breaks off", http2, flushed, err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "row\n" || err == nil {
				t.Errorf("%s, flushed %t: body %q, %v, want the row and an error", resp.Proto, flushed, body, err)
			}
			server.Close()
			if asked != 1 {
				t.Errorf("%s, flushed %t: sent %d times, want once", resp.Proto, flushed, asked)
			}
		}
	}
}
