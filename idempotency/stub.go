package idempotency

import (
	"crypto/sha256"
	"errors"
	"net/http"
)

func parseKey(values []string) (string, error) {
	if len(values) != 1 || values[0] == "" || len(values[0]) > 255 {
		return "", errors.New("one key of 1 to 255 bytes")
	}
	return values[0], nil
}

func (m *Middleware) fingerprint(r *http.Request, body []byte) []byte {
	h := sha256.New()
	writePart(h, r.Method)
	writePart(h, r.URL.RequestURI())
	writePart(h, r.Header.Get("Content-Type"))
	writePart(h, body)
	return h.Sum([]byte{1})
}
