package riphttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// A countedBody counts how often it is closed.
type countedBody struct {
	io.Reader
	closed int
	err    error
}

func (b *countedBody) Close() error { b.closed++; return b.err }

func TestPeekLeavesTheBodyWhole(t *testing.T) {
	const text = "the database is down"
	for _, n := range []int64{-1, 0, 1, 3, int64(len(text)), 1 << 20} {
		r := &http.Response{StatusCode: 503, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))}
		want := text[:min(max(n, 0), int64(len(text)))]
		for range 2 { // a second look sees the same
			if got := Peek(r, n); string(got) != want {
				t.Errorf("Peek(%q, %d) = %q, want %q", text, n, got, want)
			}
		}
		if got, err := io.ReadAll(r.Body); string(got) != text || err != nil {
			t.Errorf("after Peek(%q, %d) the body reads %q, %v, want it whole", text, n, got, err)
		}
	}
}

func TestPeekedBodyClosesTheOriginalOnce(t *testing.T) {
	failed := errors.New("close failed")
	body := &countedBody{Reader: strings.NewReader("db down"), err: failed}
	r := &http.Response{StatusCode: 503, Body: body}
	Peek(r, 2)
	Peek(r, 4)
	if body.closed != 0 {
		t.Fatalf("Peek closed the body %d times, want 0", body.closed)
	}
	if err := r.Body.Close(); err != failed {
		t.Errorf("first Close() = %v, want the original's %v", err, failed)
	}
	if err := r.Body.Close(); err != nil {
		t.Errorf("second Close() = %v, want nil", err)
	}
	if body.closed != 1 {
		t.Errorf("the original was closed %d times, want once", body.closed)
	}
	if n, err := r.Body.Read(make([]byte, 8)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("Read() after Close() = %d, %v, want 0, %v", n, err, http.ErrBodyReadAfterClose)
	}
}

func TestPeekHandsAReadErrorToTheReaderOfTheBody(t *testing.T) {
	cut := errors.New("connection cut")
	r := &http.Response{StatusCode: 503, Body: io.NopCloser(io.MultiReader(strings.NewReader("db d"), iotest.ErrReader(cut)))}
	if got := Peek(r, 100); string(got) != "db d" {
		t.Errorf("Peek() = %q, want %q", got, "db d")
	}
	for range 2 {
		got, err := io.ReadAll(r.Body)
		if err != cut {
			t.Errorf("the body reads %q, %v, want the error %v", got, err, cut)
		}
		if want := "db d"; string(got) != want && string(got) != "" {
			t.Errorf("the body reads %q, want %q", got, want)
		}
	}
}

// A pipeBody is the body of a 101: it can be written to, and reading it would wait for the peer.
type pipeBody struct{ bytes.Buffer }

func (*pipeBody) Read([]byte) (int, error) { return 0, errors.New("read before its time") }
func (*pipeBody) Close() error             { return nil }

func TestPeekLeavesAConnectionAlone(t *testing.T) {
	for _, code := range []int{http.StatusSwitchingProtocols, http.StatusOK} {
		body := &pipeBody{}
		r := &http.Response{StatusCode: code, Body: body}
		if got := Peek(r, 10); got != nil || r.Body != body {
			t.Errorf("Peek(%d with a body to write to) = %q, body %T, want nil and the body itself", code, got, r.Body)
		}
	}
	r := &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: &countedBody{Reader: iotest.ErrReader(errors.New("read"))}}
	if got := Peek(r, 10); got != nil {
		t.Errorf("Peek(101) = %q, want nil", got)
	}
	if _, ok := r.Body.(*countedBody); !ok {
		t.Errorf("Peek(101) made the body a %T, want it untouched", r.Body)
	}
}

func TestPeekWithoutABody(t *testing.T) {
	if got := Peek(&http.Response{StatusCode: 503}, 10); got != nil {
		t.Errorf("Peek(nil body) = %q, want nil", got)
	}
	r := &http.Response{StatusCode: 503, Body: http.NoBody}
	if got := Peek(r, 10); len(got) != 0 {
		t.Errorf("Peek(http.NoBody) = %q, want nothing", got)
	}
}
