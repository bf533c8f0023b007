package idempotency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// read reads the request's body. If it cannot, it has answered.
func (q *request) read() (body []byte, ok bool) {
	if q.r.Body == nil || q.r.Body == http.NoBody {
		return nil, true
	}
	if q.r.ContentLength > q.MaxBody {
		q.tooLarge()
		return nil, false
	}
	// Whoever announces a large body gets room for it as it comes, not before.
	const ahead = 64 << 10
	var buf bytes.Buffer
	buf.Grow(int(min(max(q.r.ContentLength, 0), ahead)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(q.r.Body, q.MaxBody+1))
	if _, outer := errors.AsType[*http.MaxBytesError](err); outer || int64(buf.Len()) > q.MaxBody {
		q.tooLarge()
		return nil, false
	}
	if err == nil && (q.r.ContentLength >= 0 && int64(buf.Len()) != q.r.ContentLength || buf.Len() == 0 && hasForm(q.r)) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		q.refuse(bodyUnreadable, "The request's body could not be read to its end. Nothing was done.", nil)
		return nil, false
	}
	return buf.Bytes(), true
}

// hasForm reports whether an outer handler has read a form from the body. If it has not put the body back, nothing is left by which to tell
// this request from another one.
func hasForm(r *http.Request) bool {
	return len(r.PostForm) > 0 || r.MultipartForm != nil && len(r.MultipartForm.File) > 0
}

func (q *request) tooLarge() {
	q.refuse(bodyTooLarge, fmt.Sprintf("A request with a key may have a body of at most %d bytes.", q.MaxBody), nil)
}

// look returns the request for a function of the user's to look at: one that reads the body, or parses it as a form, takes nothing away from
// anybody else.
func (q *request) look(body []byte) *http.Request {
	r := *q.r
	return withBody(&r, body)
}

// withBody gives a request, which is the caller's own, a body that was read before.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body = http.NoBody
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}
