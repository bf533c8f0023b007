package idempotency

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// The first byte of a fingerprint: how it was made. Fingerprints of two kinds are never equal, so that a new version of the
// algorithm gets a number of its own and no request passes for another one.
const (
	fingerprintStandard byte = 1
	fingerprintOwn      byte = 0x81 // by the Middleware's Fingerprint
)

// fingerprint returns what tells the request from another one with the same key: a byte for how it was made and a SHA-256.
func fingerprint(m *Middleware, r *http.Request, body []byte) []byte {
	h := sha256.New()
	if m.Fingerprint != nil {
		writePart(h, []byte{fingerprintOwn})
		writePart(h, r.Method)
		writePart(h, asked(r, (*url.URL).EscapedPath))
		writePart(h, m.Fingerprint(r, body))
		return h.Sum([]byte{fingerprintOwn})
	}
	contentType, boundary := mediaType(r.Header.Get("Content-Type"))
	writePart(h, []byte{fingerprintStandard})
	writePart(h, r.Method)
	writePart(h, asked(r, (*url.URL).RequestURI))
	writePart(h, contentType)
	writeMultipart(h, body, boundary)
	return h.Sum([]byte{fingerprintStandard})
}

// mediaType returns a Content-Type, and the boundary if it is multipart: that is left out of the type, since clients make a
// new one up for each send.
func mediaType(contentType string) (_, boundary string) {
	if len(contentType) < len("multipart/") || !strings.EqualFold(contentType[:len("multipart/")], "multipart/") {
		return contentType, ""
	}
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return contentType, ""
	}
	boundary = params["boundary"]
	delete(params, "boundary")
	if plain := mime.FormatMediaType(name, params); plain != "" {
		return plain, boundary
	}
	return contentType, ""
}

// writeMultipart hashes what stands between the boundaries of a body (RFC 2046, section 5.1.1), each with its length, or
// all of it if there are none.
func writeMultipart(h hash.Hash, body []byte, boundary string) {
	if boundary != "" {
		delimiter := []byte("\r\n--" + boundary)
		if after, ok := bytes.CutPrefix(body, delimiter[len("\r\n"):]); ok {
			writePart(h, "")
			body = after
		}
		for {
			part, after, ok := bytes.Cut(body, delimiter)
			if !ok {
				break
			}
			writePart(h, part)
			body = after
		}
	}
	writePart(h, body)
}
