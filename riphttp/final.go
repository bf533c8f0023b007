package riphttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
)

// final reports whether an error of Base is one that time does not heal: the certificate, the protocol, the name, the
// request itself.
func final(req *http.Request, err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	for op, ok := errors.AsType[*net.OpError](err); ok; op, ok = errors.AsType[*net.OpError](op.Err) {
		if op.Op == "remote error" { // a TLS alert, from a proxy within an error of another operation
			return true
		}
	}
	for _, reason := range [...]error{http.ErrSchemeMismatch, http.ErrNotSupported} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return isA[*tls.CertificateVerificationError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err) || isA[x509.SystemRootsError](err) ||
		isA[tls.RecordHeaderError](err) || isA[*tls.ECHRejectionError](err) ||
		isA[*net.AddrError](err) || isA[net.InvalidAddrError](err) || isA[*net.ParseError](err) ||
		isA[net.UnknownNetworkError](err) || malformed(req)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// malformed reports whether net/http refuses to send a request: its errors for that have no types.
func malformed(req *http.Request) bool {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" || req.Method != "" && !isHTTPToken(req.Method) {
		return true
	}
	if req.Body == nil && req.ContentLength != 0 || strings.ContainsFunc(req.URL.RequestURI(), isControl) {
		return true
	}
	for _, fields := range [...]http.Header{req.Header, req.Trailer} {
		for name, values := range fields {
			for _, value := range values {
				if !isHTTPToken(name) || !isFieldValue(value) {
					return true
				}
			}
		}
	}
	return false
}

// isHTTPToken reports whether s is a token as RFC 9110 §5.6.2 has it.
func isHTTPToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// isFieldValue reports whether s has no control characters but tabs, RFC 9110 §5.5.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
