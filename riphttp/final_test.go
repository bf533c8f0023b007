package riphttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func TestErrorsThatTimeDoesNotHealAreMetOnce(t *testing.T) {
	wrap := func(err error) error {
		return &url.Error{Op: "Get", URL: serviceURL, Err: &net.OpError{Op: "dial", Err: err}}
	}
	tlsFailed := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for _, test := range []struct {
		name  string
		err   error
		calls int
	}{
		{"unknown authority", tlsFailed(x509.UnknownAuthorityError{}), 1},
		{"wrong host name", tlsFailed(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}), 1},
		{"expired", tlsFailed(x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}), 1},
		{"unknown authority, bare", x509.UnknownAuthorityError{}, 1},
		{"wrong host name, bare", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, 1},
		{"expired, bare", x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, 1},
		{"no roots", x509.SystemRootsError{}, 1},
		{"HTTP for HTTPS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, 1},
		{"HTTP for HTTPS, as net/http has it", http.ErrSchemeMismatch, 1},
		{"alert", &net.OpError{Op: "remote error", Err: tls.AlertError(42)}, 1},
		{"ECH refused", &tls.ECHRejectionError{}, 1},
		{"not supported", http.ErrNotSupported, 1},
		{"cancelled below, while the caller is there", context.Canceled, 3},
		{"a port that is none", &net.AddrError{Err: "invalid port", Addr: "99999"}, 1},
		{"an address that is none", &net.ParseError{Type: "IP address", Text: "x"}, 1},
		{"an address of another kind", net.InvalidAddrError("x"), 1},
		{"a network that is none", net.UnknownNetworkError("tpc"), 1},
		{"no such host", &net.DNSError{IsNotFound: true}, 1},
		{"resolver times out", &net.DNSError{IsTimeout: true}, 3},
		{"resolver fails", &net.DNSError{IsTemporary: true, Err: "server misbehaving"}, 3},
		{"handshake cut", io.EOF, 3},
		{"handshake reset", syscall.ECONNRESET, 3},
		{"handshake timeout", errors.New("net/http: TLS handshake timeout"), 3},
	} {
		for how, err := range map[string]error{"bare": test.err, "wrapped": wrap(test.err)} {
			inBubble(t, test.name+" "+how, func(t *testing.T) {
				start := time.Now()
				service := script(err)
				policy := even()
				policy.MaxAttempts = 3
				_, got := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, "GET", serviceURL, nil))
				wantCalls(t, service, test.calls)
				if test.calls == 1 && (got != err || time.Since(start) != 0) {
					t.Errorf("err = %v after %v, want %v as it came and at once", got, time.Since(start), err)
				}
				if test.calls > 1 && (!errors.Is(got, err) || !errors.Is(got, riprap.ErrAttempts)) {
					t.Errorf("err = %v, want ErrAttempts and %v", got, err)
				}
			})
		}
	}
}

func TestResolverInTroubleIsAskedAgainForAnyMethod(t *testing.T) {
	for _, fail := range []*net.DNSError{{IsTimeout: true}, {IsTemporary: true, Err: "server misbehaving"}} {
		inBubble(t, fail.Error(), func(t *testing.T) {
			service := script(&net.OpError{Op: "dial", Net: "tcp", Err: fail}, 200)
			wantAnswer(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "POST", serviceURL, "pay"), 200, "OK")
		})
	}
}
