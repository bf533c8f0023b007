package riprap_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// slow is a timeout as net/http has several of its own.
type slow struct{}

func (slow) Error() string   { return "TLS handshake timeout" }
func (slow) Timeout() bool   { return true }
func (slow) Temporary() bool { return true }

func TestTransientTellsTroubleThatTimeMayCure(t *testing.T) {
	_, badNumber := strconv.Atoi("x")
	_, badAddress := net.ResolveTCPAddr("tcp", "no port")
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"a name server that is in trouble", &net.DNSError{Err: "server misbehaving", IsTemporary: true}, true},
		{"a name server that does not answer", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, true},
		{"a name that does not exist", &net.DNSError{Err: "no such host", IsNotFound: true}, false},
		{"the end of an attempt", context.DeadlineExceeded, true},
		{"a read past its deadline", os.ErrDeadlineExceeded, true},
		{"a connection cut off", io.EOF, true},
		{"a connection cut off in the middle", io.ErrUnexpectedEOF, true},
		{"a caller that left", context.Canceled, false},
		{"a look-up whose caller left", &net.DNSError{Err: "operation was canceled", UnwrapErr: context.Canceled}, false},
		{"a timeout by any other name", slow{}, true},
		{"the end of a connection closed on this side", errors.Join(io.EOF, net.ErrClosed), false},
		{"a connection closed on this side", net.ErrClosed, false},
		{"a certificate by a stranger", x509.UnknownAuthorityError{}, false},
		{"a certificate that is not valid", x509.CertificateInvalidError{Reason: x509.Expired}, false},
		{"a certificate for another name", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h.test"}, false},
		{"a certificate that was not accepted", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
		{"a peer that does not speak TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false},
		{"an alert", tls.AlertError(40), false},
		{"an address that is none", badAddress, false},
		{"a network that is none", net.UnknownNetworkError("tpc"), false},
		{"input that is wrong", badNumber, false},
		{"anything else", errFlaky, false},
		{"a loop that gave up", &riprap.Error{Reason: riprap.ErrAttempts, Err: io.EOF}, false},
	} {
		for wrapping, err := range map[string]error{
			"bare":             tt.err,
			"wrapped":          fmt.Errorf("call: %w", tt.err),
			"in a url.Error":   &url.Error{Op: "Get", URL: "http://h.test", Err: tt.err},
			"in a net.OpError": &net.OpError{Op: "dial", Net: "tcp", Err: tt.err},
			"in a url.Error under a wrapper": &url.Error{Op: "Get", URL: "http://h.test",
				Err: fmt.Errorf("transport: %w", &net.OpError{Op: "read", Net: "tcp", Err: tt.err})},
			"marked": riprap.After(time.Second, tt.err),
		} {
			if tt.err == nil && wrapping != "bare" {
				continue
			}
			if got := riprap.Transient(err); got != tt.want {
				t.Errorf("%s, %s: Transient(%v) = %v, want %v", tt.name, wrapping, err, got, tt.want)
			}
		}
	}
}

func TestTransientKnowsARefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody listens there any more
	_, err = net.Dial("tcp", address)
	if err == nil || !riprap.Transient(err) {
		t.Errorf("Transient(%v) = false, want true", err)
	}
	_, err = http.Get("http://" + address)
	if err == nil || !riprap.Transient(err) {
		t.Errorf("through net/http: Transient(%v) = false, want true", err)
	}
}

// serve accepts one connection, hands it to act and closes it.
func serve(t *testing.T, act func(*net.TCPConn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return // the test is over
		}
		act(c.(*net.TCPConn))
		c.Close()
	}()
	return l.Addr().String()
}

func TestTransientKnowsAConnectionThatWasResetOrCutOff(t *testing.T) {
	for name, act := range map[string]func(*net.TCPConn){
		"reset":   func(c *net.TCPConn) { c.Read(make([]byte, 1)); c.SetLinger(0) },
		"cut off": func(c *net.TCPConn) { c.Read(make([]byte, 1)); c.CloseWrite(); io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", serve(t, act))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err = c.Write([]byte("x")); err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			if err == nil || !riprap.Transient(err) {
				t.Errorf("Transient(%v) = false, want true", err)
			}
		})
	}
}

func TestTransientKnowsAReadPastItsDeadlineAndAConnectionClosedHere(t *testing.T) {
	c, err := net.Dial("tcp", serve(t, func(c *net.TCPConn) { io.Copy(io.Discard, c) }))
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Unix(1, 0))
	if _, err := c.Read(make([]byte, 1)); err == nil || !riprap.Transient(err) {
		t.Errorf("past the deadline: Transient(%v) = false, want true", err)
	}
	c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil || riprap.Transient(err) {
		t.Errorf("on a closed connection: Transient(%v) = true, want false", err)
	}
}

func TestTransientIsFalseForAnUnknownCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quiet
	server.StartTLS()
	defer server.Close()
	transport := &http.Transport{} // that does not know the server's certificate
	defer transport.CloseIdleConnections()
	calls := 0
	err := riprap.Do(t.Context(), &riprap.Policy{Retryable: riprap.Transient}, func(context.Context) error {
		calls++
		r, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err == nil {
			r.Body.Close()
		}
		return err
	})
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || calls != 1 {
		t.Errorf("Do = %v after %d calls, want the certificate's error after one", err, calls)
	}
}
