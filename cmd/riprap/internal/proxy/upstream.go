package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/riprap-go/riprap/riphttp"
)

const (
	defaultConnectTimeout = 2 * time.Second

	// Node and uvicorn close a connection that was idle for 5 s. A request that is written at that moment is lost, and an
	// unsafe one must not be sent again: so we close it first.
	idleTime = 4 * time.Second

	// As many idle connections are kept as there are requests at once, within reason: to dial again is what makes a proxy slow.
	idlePerService = 512

	largestAnswerHeader = 1 << 20
)

// An upstream sends requests to the service, each unsafe one once. It is the Base of a riphttp.Transport, which does not repeat
// such a request unless it was surely not sent; this type keeps net/http from doing so by itself.
type upstream struct {
	*http.Transport
	uploads   *http.Transport // the same with a bound for the header, whose timer the others would pay for and do not need
	mayRepeat func(*http.Request) bool
	http2     bool // it may be spoken
}

// newTransport makes what sends requests to a service. Header bounds how long the service may think about a request that
// was sent to its end; zero means no bound.
func newTransport(scheme string, connect, header time.Duration, roots *tls.Config) *http.Transport {
	var protocols http.Protocols
	switch scheme {
	case "http":
		protocols.SetHTTP1(true)
	case "h2c":
		protocols.SetUnencryptedHTTP2(true)
	default:
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
	}
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        roots.Clone(), // net/http writes to it
		TLSHandshakeTimeout:    connect,
		DisableCompression:     true, // the client's Accept-Encoding is not ours to change
		MaxIdleConnsPerHost:    idlePerService,
		IdleConnTimeout:        idleTime,
		ResponseHeaderTimeout:  header,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: largestAnswerHeader,
		Protocols:              &protocols,
	}
}

// Fields that net/http takes for permission to send a request again.
var keyFields = [...]string{"Idempotency-Key", "X-Idempotency-Key"}

// RoundTrip sends the request. What net/http sends again by itself is, among others, a request without a body that carries
// a key, and on HTTP/2 any request without a body after a PROTOCOL_ERROR. Both prove nothing of what the service did.
func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	transport := u.Transport
	if v := visitOf(req.Context()); v != nil && v.upload {
		transport = u.uploads
	}
	if u.mayRepeat(req) {
		return transport.RoundTrip(req)
	}
	once := *req
	for _, name := range keyFields {
		if values, ok := once.Header[name]; ok {
			once.Header = once.Header.Clone()
			delete(once.Header, name)
			once.Header[strings.ToLower(name)] = values // on the wire the case of a name means nothing
		}
	}
	once.GetBody = nil
	if u.http2 && (once.Body == nil || once.Body == http.NoBody) {
		// Where HTTP/1 is agreed upon it goes out as an empty chunked body.
		once.Body = io.NopCloser(nothing{})
	}
	resp, err := transport.RoundTrip(&once)
	if err != nil && u.http2 && unprocessed(err) {
		err = fmt.Errorf("%w: %w", riphttp.ErrNotProcessed, err)
	}
	return resp, err
}

// unprocessed reports whether net/http would have sent a request again, could it have had its body a second time, for one of the two
// reasons that prove that the service did not process it: the stream was refused, or a GOAWAY left it out (RFC 9113 section 8.7). Each
// rolling deploy sends such a GOAWAY. The error holds the reason as text only, and PROTOCOL_ERROR, which proves nothing, comes in
// the same way. If the text changes, outcomes are unknown that need not be, and a test fails.
func unprocessed(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "http2: Transport: cannot retry err [") &&
		(strings.Contains(text, "; REFUSED_STREAM; received from peer]") || strings.Contains(text, " graceful shutdown GOAWAY]"))
}

func (u *upstream) CloseIdleConnections() {
	u.Transport.CloseIdleConnections()
	u.uploads.CloseIdleConnections()
}

// Nothing is a body that has no bytes, and of which net/http does not know it.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
