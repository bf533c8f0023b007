package call

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/riprap-go/riprap/internal/memhttp"
)

const secretURL = "https://u:p4ss@h.test/v1/KEYINPATH/x?token=T0K&sig=S1G#f"

var secrets = []string{"p4ss", "KEYINPATH", "T0K", "S1G", "dTpwNHNz", "B34R", "K3Y", "B0DY"}

// A failing is a base that fails in one way.
type failing func(*http.Request) (*http.Response, error)

func (f failing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return f(req)
}

func TestNoSecretOnStderr(t *testing.T) {
	named := func(err error) error { return &url.Error{Op: "Get", URL: secretURL, Err: err} }
	fail := func(err error) failing { return func(*http.Request) (*http.Response, error) { return nil, err } }
	answer := func(code int, header ...string) failing {
		return func(*http.Request) (*http.Response, error) {
			h := http.Header{}
			for i := 0; i < len(header); i += 2 {
				h.Set(header[i], header[i+1])
			}
			return &http.Response{StatusCode: code, Header: h, Body: http.NoBody}, nil
		}
	}
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, base := range map[string]failing{
		"a connection refused":         fail(dial),
		"an error that names the URL":  fail(named(dial)),
		"a URL within another":         fail(named(fmt.Errorf("proxy: %w", named(errors.New("lost"))))),
		"a certificate":                fail(named(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})),
		"what the server said, quoted": fail(fmt.Errorf("malformed HTTP response %q", "T0K S1G")),
		"a host that does not exist":   fail(&net.DNSError{Err: "no such host", Name: "h.test", IsNotFound: true}),
		"a status":                     answer(503, "Set-Cookie", "T0K"),
		"a status that stays":          answer(501, "Set-Cookie", "T0K"),
		"a wait that is too long":      answer(429, "Retry-After", "3600"),
		"an answer":                    answer(200, "X-T", "T0K"),
		"a redirect":                   answer(302, "Location", secretURL),
		"a redirect that is wrong":     answer(302, "Location", "https://[p4ss/T0K"),
	} {
		for _, args := range []string{"", "--json", "-L", "-d B0DY-user", "--json -L -X PUT"} {
			t.Run(name+" "+args, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := append(strings.Fields(args), secretURL, "-H", "Authorization: Bearer B34R", "--key", "K3Y")
					r := makeCall(t.Context(), t, base, all...)
					if r.stderr == "" {
						t.Error("got nothing on stderr, want lines")
					}
					for _, s := range secrets {
						if strings.Contains(r.stderr, s) || r.err != nil && strings.Contains(r.err.Error(), s) {
							t.Errorf("got %s in %v and\n%s", s, r.err, r.stderr)
						}
					}
				})
			})
		}
	}
}

func TestNoSecretInUsageErrorsAndPlans(t *testing.T) {
	for _, args := range [][]string{
		{secretURL, "T0K"},
		{"https://u:p4ss@h.test:x/KEYINPATH?token=T0K"},
		{"https://u:p4ss%zz@h.test"},
		{"https://h.test/\x00T0K"},
		{"p4ss://T0K"},
		{secretURL, "-H", "Authorization", "Bearer", "B34R"},
		{secretURL, "-H", "B34R"},
		{secretURL, "-H", "Authorization: B34R\n"},
		{secretURL, "--key", "K3Y\n"},
		{secretURL, "-uu:p4ss"},
		{secretURL, "--user=u:p4ss"},
		{secretURL, "--tokens=T0K"},
		{secretURL, "-zp4ss"},
		{"--plan", secretURL, "-H", "Authorization: Bearer B34R", "--key", "K3Y", "-d", "B0DY"},
		{"--plan", "--json", secretURL, "-H", "Authorization: Bearer B34R", "--key", "K3Y", "-d", "B0DY"},
	} {
		var stdout, stderr bytes.Buffer
		err := Run(t.Context(), args, &stdout, &stderr)
		for _, s := range secrets {
			if strings.Contains(fmt.Sprint(err)+stdout.String()+stderr.String(), s) {
				t.Errorf("riprap call %q: got %s in %v and\n%s%s", args, s, err, &stdout, &stderr)
			}
		}
	}
}

func TestNextServiceIsNotToldWhereItIsCalledFrom(t *testing.T) {
	for args, want := range map[string]string{"": "", "-H Referer:http://mine.test/": "http://mine.test/"} {
		var got http.Header
		base := failing(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "other.test" {
				got = req.Header
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"https://other.test/"}}, Body: http.NoBody}, nil
		})
		all := append(strings.Fields(args), secretURL, "-L", "-d", "x", "--key", "K3Y")
		makeCall(context.Background(), t, base, all...)
		if got.Get("Referer") != want || got.Get("Authorization") != "" || got.Get("Idempotency-Key") != "" {
			t.Errorf("%s: the other service got %v, want the Referer %q, no Authorization and no key", args, got, want)
		}
	}
}

func TestErrorsAreInPlainWords(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}}, "no answer from the name server"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{}}, "the name server failed"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "connection reset by peer"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, "tls: handshake failure"},
		{tls.RecordHeaderError{RecordHeader: [5]byte([]byte("HTTP/"))}, "the server speaks HTTP and not HTTPS"},
		{tls.RecordHeaderError{}, "the server does not speak TLS"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "certificate not accepted: x509: certificate signed by unknown authority"},
		{&url.Error{Op: "Get", URL: secretURL, Err: errors.New("lost")}, "lost"},
		{fmt.Errorf("malformed HTTP status code %q", "2OO"), "malformed HTTP status code"},
		{fmt.Errorf("multiple Content-Length headers; got %q", []string{"3", "4"}), "multiple Content-Length headers"},
		{fmt.Errorf("too many transfer encodings: %q", []string{"a", "b"}), "too many transfer encodings"},
		{fmt.Errorf("unknown authority (possibly because of %q)", "x"), "unknown authority"},
		{fmt.Errorf("closed (by the server), debug=%q", ""), "closed (by the server)"},
		{errors.New("sent [3 4"), "sent [3 4"},
	} {
		if got := plain(tt.err); got != tt.want {
			t.Errorf("plain(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestConnectionThatTakesTooLongIsNamed(t *testing.T) {
	timeout := &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
	synctest.Test(t, func(t *testing.T) {
		r := makeCall(t.Context(), t, failing(func(*http.Request) (*http.Response, error) { return nil, timeout }), "-XPOST", "--attempts=2", memhttp.URL)
		compare(t, "stderr", r.stderr,
			"attempt 1: no connection within 2s · waiting 338ms (retry 1 of 1, budget 9 left)",
			"attempt 2: no connection within 2s · gave up: no attempts left (2 of 2), 338ms in all")
	})
}

func TestKeyIsNoReasonToRepeatAtAnotherService(t *testing.T) {
	base := failing(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "other.test" {
			return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
		}
		return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"https://other.test/"}}, Body: http.NoBody}, nil
	})
	synctest.Test(t, func(t *testing.T) {
		r := makeCall(t.Context(), t, base, secretURL, "-L", "-d", "x", "--key", "K3Y")
		compare(t, "stderr", r.stderr,
			"attempt 1: 307 · redirect to https://other.test",
			"attempt 1: 503 · gave up: the key was made for another service, and a POST without one is not safe to send twice, 0s in all")
	})
}

func TestNetHTTPCannotRepeatWhatMustNotBeSentTwice(t *testing.T) {
	for args, want := range map[string]bool{"-d x": false, "-d x --key auto": true, "-d x -X PUT": true} {
		may := false
		makeCall(t.Context(), t, failing(func(req *http.Request) (*http.Response, error) {
			may = req.GetBody != nil
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		}), append(strings.Fields(args), "h.test")...)
		if may != want {
			t.Errorf("%s: net/http may repeat it: got %v, want %v", args, may, want)
		}
	}
}

func TestARedirectsHostCannotSpeakToTheTerminal(t *testing.T) {
	for _, flags := range []string{"-L", "-L --json"} {
		r := inMemory(t, script(t, `302 header="Location: http://%C2%9B31m%E2%80%AEhost.invalid/"`), flags+" --attempts 1 URL")
		for _, c := range r.stderr {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("riprap call %s prints %q on stderr:\n%s", flags, c, r.stderr)
				break
			}
		}
		if !strings.Contains(r.stderr, "redirect to http://") {
			t.Errorf("riprap call %s: got no redirect on stderr:\n%s", flags, r.stderr)
		}
	}
}
