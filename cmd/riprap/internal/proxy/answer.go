package proxy

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// An answer is the ResponseWriter of a request. It gives up on a client that does not read.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	visit   *Visit
	silence time.Duration // zero means that the client may take its time
	bodied  bool          // the request has a body
	duplex  bool          // the body may still come when the answer begins
	close   bool          // the connection is not used again
	begun   bool
	hurried time.Time
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(code int) {
	if code == http.StatusContinue {
		return // net/http says it by itself when the body is read, and that is when the service has said it
	}
	if code >= 200 || code == http.StatusSwitchingProtocols {
		a.begin(code)
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) begin(code int) {
	if a.begun {
		return
	}
	a.begun = true
	a.visit.Status = code
	if a.Header().Get(deadline.ExceededHeader) == "true" {
		a.visit.outOfTime()
	}
	if a.visit.answered { // by the service
		a.visit.intake.release()
	} else if a.bodied && (a.visit.intake == nil || a.visit.intake.unread()) {
		a.control.SetReadDeadline(time.Now().Add(grace)) // net/http takes in what is left of the body first
	}
	if _, told := a.Header()["Content-Type"]; !told {
		a.Header()["Content-Type"] = nil // else net/http would guess one
	}
	if a.duplex && a.visit.intake.unread() {
		// net/http would use the connection again without a look at what is left of the body, which would then be a request.
		a.close = true
	}
	if a.close && code != http.StatusSwitchingProtocols {
		a.Header().Set("Connection", "close")
	}
	a.hurry()
}

// hurry bounds the next write. It may need none: net/http has a buffer. To move the bound costs more than to write into that, so
// it is moved only if that makes a difference.
func (a *answer) hurry() {
	if a.silence <= 0 {
		return
	}
	if now, slack := time.Now(), a.silence/64; now.Sub(a.hurried) > slack {
		a.hurried = now
		a.control.SetWriteDeadline(now.Add(a.silence + slack))
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	a.hurry()
	return a.ResponseWriter.Write(p)
}

func (a *answer) FlushError() error {
	a.begin(http.StatusOK)
	a.hurry()
	return a.control.Flush()
}

// Flush is for those who look for an http.Flusher. The server's writer is one.
func (a *answer) Flush() { a.FlushError() }

// Hijack gives the connection away, without our bounds: net/http takes its deadlines off.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := a.control.Hijack()
	if err == nil {
		a.begun = true
		a.visit.Status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}
