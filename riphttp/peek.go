package riphttp

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

// Peek returns up to n bytes from the start of a response's body and leaves the body whole for whoever reads it next.
// It is for a Judge that must look at an error's machine code. Fewer bytes come back if the body ends before, or if
// reading it fails; that failure is then met by the reader of the body, behind the bytes that were read.
//
// Peek waits until the bytes are there, for as long as the request's context allows. It replaces r.Body; closing the
// new one closes the original, once. The bytes belong to the body and must not be changed. A body that is also
// written to, that of a 101 Switching Protocols, is left alone and nil comes back. Peek is not safe for concurrent
// use with the same response.
func Peek(r *http.Response, n int64) []byte {
	if r.Body == nil || r.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	if _, both := r.Body.(io.Writer); both {
		return nil
	}
	start, err := io.ReadAll(io.LimitReader(r.Body, n))
	r.Body = &peekedBody{start: bytes.NewReader(start), err: err, rest: r.Body}
	return start
}

// A peekedBody is a body of which the start has been read.
type peekedBody struct {
	start  *bytes.Reader
	err    error // what ended the reading of the start, if it failed
	rest   io.ReadCloser
	closed atomic.Bool
}

func (b *peekedBody) Read(p []byte) (int, error) {
	switch {
	case b.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	case b.start.Len() > 0:
		return b.start.Read(p)
	case b.err != nil:
		return 0, b.err
	}
	return b.rest.Read(p)
}

func (b *peekedBody) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.rest.Close()
}
