package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An echo fails twice, keeps what it is sent, and then answers.
type echo struct {
	bodies  []string
	lengths []int64
	types   []string
	then    func() // after each request
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	e.bodies = append(e.bodies, string(content))
	e.lengths = append(e.lengths, r.ContentLength)
	e.types = append(e.types, r.Header.Get("Content-Type"))
	if e.then != nil {
		synctest.Wait() // until the client has read the body to its end
		e.then()
	}
	if len(e.bodies) < 3 {
		w.WriteHeader(503)
	}
}

func textFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEverySendCarriesTheWholeBody(t *testing.T) {
	file := textFile(t, "order.json", "{\r\n}\n")
	large := textFile(t, "large", strings.Repeat("x", 3<<20))
	for name, tt := range map[string]struct{ args, want string }{
		"text":                       {"-d a=1", "a=1"},
		"several texts":              {"-d a=1 -d b=2", "a=1&b=2"},
		"a file, line ends and all":  {"-d @" + file, "{\r\n}\n"},
		"a large file":               {"-d @" + large, strings.Repeat("x", 3<<20)},
		"stdin":                      {"-d @-", "from stdin"},
		"all of them":                {"-d a=1 -d @" + file + " -d @- --data @" + file, "a=1&{\r\n}\n&from stdin&{\r\n}\n"},
		"a long name and a sign":     {"--data=a=@b", "a=@b"},
		"the letter and the file":    {"-d@" + file, "{\r\n}\n"},
		"nothing, but it is a body":  {"--data=", ""},
		"an empty file":              {"-d @" + textFile(t, "empty", ""), ""},
		"nothing and something":      {"--data= -d a", "&a"},
		"a body of a GET, if forced": {"-X GET -d a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &echo{}
			r := inMemory(t, e, "URL --key auto "+tt.args)
			if r.code(t) != 0 || len(e.bodies) != 3 {
				t.Fatalf("got exit code %d after %d sends, want 0 after 3:\n%s", r.code(t), len(e.bodies), r.stderr)
			}
			for i := range e.bodies {
				if e.bodies[i] != tt.want || e.lengths[i] != int64(len(tt.want)) {
					t.Errorf("send %d: got %d bytes, length %d, want %d", i+1, len(e.bodies[i]), e.lengths[i], len(tt.want))
				}
				if e.types[i] != "application/x-www-form-urlencoded" {
					t.Errorf("send %d: got the type %q, want a form's", i+1, e.types[i])
				}
			}
		})
	}
}

func TestFileIsReadAnewForEachAttempt(t *testing.T) {
	file := textFile(t, "counter", "0")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{}
	e.then = func() { // a change that nobody can see from outside
		err := os.WriteFile(file, []byte{"0123"[len(e.bodies)]}, 0o644)
		if err := errors.Join(err, os.Chtimes(file, info.ModTime(), info.ModTime())); err != nil {
			t.Error(err)
		}
	}
	inMemory(t, e, "URL -X PUT -d @"+file)
	if got := strings.Join(e.bodies, " "); got != "0 1 2" {
		t.Errorf("got the bodies %s, want 0 1 2", got)
	}
}

func TestFileThatChangesEndsTheCall(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(file string) error
		want string
	}{
		"longer":          {func(f string) error { return os.WriteFile(f, []byte("abcd"), 0o644) }, "%s has changed since the call began"},
		"shorter":         {func(f string) error { return os.WriteFile(f, []byte("ab"), 0o644) }, "%s has changed since the call began"},
		"of another time": {func(f string) error { return os.Chtimes(f, time.Time{}, time.Unix(1, 0)) }, "%s has changed since the call began"},
		"gone":            {os.Remove, "open %s: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file := textFile(t, "body", "abc")
			e := &echo{then: func() {
				if err := tt.then(file); err != nil {
					t.Error(err)
				}
			}}
			r := inMemory(t, e, "URL -X PUT -d @"+file)
			compare(t, "stderr", r.stderr,
				"attempt 1: 503 · waiting 338ms (retry 1 of 3, budget 9 left)",
				"no attempt 2: gave up: the request body cannot be read again: "+fmt.Sprintf(tt.want, file)+", 338ms in all")
			if r.code(t) != 1 || len(e.bodies) != 1 {
				t.Errorf("got exit code %d after %d sends, want 1 after 1", r.code(t), len(e.bodies))
			}
		})
	}
}

func TestBodyIsInMemoryOnlyIfItCannotBeReadAgain(t *testing.T) {
	b, err := readBody(t.Context(), []string{"@" + textFile(t, "x", "abc")}, nil)
	if err != nil || b.size != 3 || len(b.parts) != 1 || b.parts[0].text != nil {
		t.Errorf("got %+v, %v, want a file of 3 bytes and no text", b, err)
	}
	if _, err := readBody(t.Context(), []string{"@-"}, bytes.NewReader(make([]byte, memory))); err != nil {
		t.Errorf("stdin of the most that is kept: got error %v", err)
	}
	want := "-d @-: it is more than 32 MiB: put it into a file, which is read anew for each attempt"
	if _, err := readBody(t.Context(), []string{"@-"}, bytes.NewReader(make([]byte, memory+1))); err == nil || err.Error() != want {
		t.Errorf("stdin of a byte more: got error %v, want %s", err, want)
	}
}

func TestPipeIsReadOnceAndKept(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip(err)
	}
	w.WriteString("from a pipe")
	w.Close()
	e := &echo{}
	inMemory(t, e, "URL -X PUT -d @"+name)
	if got := strings.Join(e.bodies, "|"); got != "from a pipe|from a pipe|from a pipe" {
		t.Errorf("got the bodies %s, want the same three times", got)
	}
}

func TestStdinThatNeverEndsDoesNotHoldUpAnInterrupt(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readBody(ctx, []string{"@-"}, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}
