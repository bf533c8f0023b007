package riphttp

import "net/http"

// IsRepeatable reports whether a request may be sent twice: its method is idempotent (RFC 9110 §9.2.2), or it carries an
// Idempotency-Key or X-Idempotency-Key, which net/http takes as permission too.
func IsRepeatable(req *http.Request) bool {
	return isIdempotent(req.Method) || hasKey(req)
}

func isIdempotent(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}

func (t *Transport) repeatable(req *http.Request) bool {
	if t.Repeatable != nil {
		return t.Repeatable(req)
	}
	return IsRepeatable(req)
}
