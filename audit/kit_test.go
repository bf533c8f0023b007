package audit

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/internal/memhttp"
)

// A memory is a network in which fake time passes: the audit's places, and how clients get there.
type memory struct {
	main, other, tls *memhttp.Listener
}

func newMemory() *memory {
	return &memory{memhttp.Listen(), memhttp.Listen(), memhttp.Listen()}
}

func (m *memory) places() (*places, error) {
	return &places{main: m.main, other: m.other, tls: m.tls,
		mainURL: "http://audit.test", otherURL: "http://other.test", tlsURL: "https://tls.test"}, nil
}

func (m *memory) dial(ctx context.Context, network, address string) (net.Conn, error) {
	switch {
	case strings.HasPrefix(address, "other."):
		return m.other.DialContext(ctx, network, address)
	case strings.HasPrefix(address, "tls."):
		conn, err := m.tls.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return readingAhead{conn, bufio.NewReaderSize(conn, 1<<16)}, nil
	default:
		return m.main.DialContext(ctx, network, address)
	}
}

// A readingAhead takes what was sent to it in one piece, as a socket does: who stops in the middle of a handshake to say why must
// not have to wait for the other's turn to end, which never does in a pipe without a buffer.
type readingAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c readingAhead) Read(p []byte) (int, error) { return c.r.Read(p) }

func (m *memory) transport() *http.Transport {
	return &http.Transport{DialContext: m.dial, TLSClientConfig: &tls.Config{ServerName: "tls.test"}}
}

// auditIn runs an audit in a bubble of fake time.
func auditIn(t *testing.T, a Audit, client func(*memory) Client) *Report {
	t.Helper()
	var report *Report
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		a.Client = client(m)
		a.listen = m.places
		var err error
		if report, err = a.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
	return report
}

func (r *Report) verdicts() map[string]Verdict {
	all := map[string]Verdict{}
	for _, f := range r.Findings {
		all[f.ID] = f.Verdict
	}
	return all
}

func (r *Report) finding(t *testing.T, id string) Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("the report has no finding of %s", id)
	return Finding{}
}

// tick is shorter than what any rule looks at.
const tick = time.Millisecond
