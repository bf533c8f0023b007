package riphttp

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// The header of the idempotency key (draft-ietf-httpapi-idempotency-key-header), and a common other spelling that net/http
// knows too.
const (
	keyHeader  = "Idempotency-Key"
	keyHeaderX = "X-Idempotency-Key"
)

func hasKey(req *http.Request) bool {
	return req.Header.Get(keyHeader) != "" || req.Header.Get(keyHeaderX) != ""
}

// keyed returns the request with the key that it needs, or without one that is not for its origin: req itself, or a copy
// if it must change.
//
// A RoundTripper sees each hop of a redirect as a request of its own, and http.Client copies the caller's headers from
// hop to hop. A key belongs to the service that it was made for: another origin does not get it, and there it might
// even block or replay. On the same origin the call keeps the key that it was given on its first hop.
func (t *Transport) keyed(req *http.Request) *http.Request {
	first := firstHop(req)
	if first != nil && origin(first.URL) != origin(req.URL) {
		req = withHeader(req)
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool { // whatever the case of its letters
			name = http.CanonicalHeaderKey(name)
			return name == keyHeader || name == keyHeaderX
		})
		return req
	}
	if IsRepeatable(req) {
		return req
	}
	var key []string
	switch {
	case first != nil && first.Method == req.Method && len(first.Header[keyHeader]) > 0:
		key = first.Header[keyHeader]
	case t.NewKey != nil:
		if made := t.NewKey(req); made != "" {
			key = []string{made}
		}
	}
	if key == nil {
		return req
	}
	req = withHeader(req)
	req.Header[keyHeader] = key
	return req
}

// withHeader returns a copy of a request with a header of its own.
func withHeader(req *http.Request) *http.Request {
	req = req.WithContext(req.Context())
	req.Header = req.Header.Clone()
	return req
}

// firstHop returns the request that a chain of redirects began with, nil if req is no redirect.
func firstHop(req *http.Request) (first *http.Request) {
	for req.Response != nil && req.Response.Request != nil && req.Response.Request.URL != nil {
		first, req = req.Response.Request, req.Response.Request
	}
	return first
}

// origin returns scheme, host and port of a URL (RFC 6454), the default port left out.
func origin(u *url.URL) service {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return service{scheme, host}
}

// sameRequest reports whether two transports have the same request in hand. The user in its URL does not count: a copy
// of the request has one of its own, and what stands between may have made a header of it.
func sameRequest(outer, inner *http.Request) bool {
	if outer.Method != inner.Method || inner.URL == nil {
		return false
	}
	a, b := *outer.URL, *inner.URL
	a.User, b.User = nil, nil
	return a == b
}
