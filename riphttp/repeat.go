package riphttp

import "net/http"

// IsRepeatable reports whether a request may be sent twice: its method is idempotent (RFC 9110 §9.2.2), or it carries an
// Idempotency-Key or X-Idempotency-Key, which net/http takes as permission too.
func IsRepeatable(req *http.Request) bool {
	switch req.Method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return hasKey(req)
}

func (t *Transport) repeatable(req *http.Request) bool {
	if t.Repeatable != nil {
		return t.Repeatable(req)
	}
	return IsRepeatable(req)
}
