package idempotency_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
)

// FuzzAReplayIsTheFirstAnswer lets a handler do what the input says, in the way of a program for a small machine, and sends its
// request twice: the second answer is the first one again, or says that it was not kept; and the handler ran once.
func FuzzAReplayIsTheFirstAnswer(f *testing.F) {
	f.Add([]byte{1, 201, 2, 5, 2, 7}, false)
	f.Add([]byte{0, 3, 2, 200, 2, 200, 6, 0}, true)
	f.Add([]byte{4, 0, 2, 9}, false)
	f.Add([]byte{3, 120, 3, 3, 5, 1, 7, 4, 2, 1}, false)
	f.Fuzz(func(t *testing.T, program []byte, transactional bool) {
		runs := 0
		m := idempotency.Middleware{Store: newBook(nil, nil), Scope: idempotency.SingleTenant, MaxAnswer: 250, Transactional: transactional}
		handler := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs++
			idempotency.Declare(r.Context(), idempotency.Final)
			for i := 0; i+1 < len(program); i += 2 {
				arg := int(program[i+1])
				switch program[i] % 8 {
				case 0:
					w.Header().Add("Link", strings.Repeat("l", arg))
				case 1:
					w.WriteHeader(200 + arg)
				case 2:
					w.Write([]byte(strings.Repeat("w", arg)))
				case 3:
					io.Copy(w, io.LimitReader(strings.NewReader(strings.Repeat("c", arg)), 1000))
				case 4:
					http.NewResponseController(w).Flush()
				case 5:
					io.WriteString(w, strings.Repeat("s", arg))
				case 6:
					w.Header().Set("Content-Encoding", "br")
				case 7:
					w.Header().Set("Etag", string(rune('a'+arg%26)))
				}
			}
		}))
		var answers [2]*http.Response
		var bodies [2]string
		for i := range answers {
			r := httptest.NewRequest("POST", "/", strings.NewReader("body"))
			r.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			answers[i], bodies[i] = w.Result(), w.Body.String()
		}
		if runs != 1 {
			t.Fatalf("the handler ran %d times", runs)
		}
		first, second := answers[0], answers[1]
		if second.StatusCode == http.StatusConflict && strings.Contains(bodies[1], "#answer-not-kept") {
			return
		}
		if first.StatusCode != second.StatusCode || bodies[0] != bodies[1] {
			t.Errorf("first %d %q, then %d %q", first.StatusCode, bodies[0], second.StatusCode, bodies[1])
		}
		for _, name := range []string{"Link", "Content-Encoding", "Etag", "Content-Type"} {
			if a, b := first.Header[name], second.Header[name]; len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
				t.Errorf("%s: first %q, then %q", name, a, b)
			}
		}
	})
}
