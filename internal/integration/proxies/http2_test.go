package proxies

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A speaker speaks HTTP/2 frame by frame, as a client.
type speaker struct {
	*http2.Framer
	conn  net.Conn
	block bytes.Buffer
	hpack *hpack.Encoder
}

func speak(t testing.TB, addr string) *speaker {
	t.Helper()
	conn, in := dial(t, addr)
	s := &speaker{Framer: http2.NewFramer(conn, in), conn: conn}
	s.AllowIllegalWrites = true
	s.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.hpack = hpack.NewEncoder(&s.block)
	io.WriteString(conn, http2.ClientPreface)
	s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	return s
}

// fields encodes a header of names and values.
func (s *speaker) fields(fields ...string) []byte {
	s.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		s.hpack.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(s.block.Bytes())
}

// end reads until the answer to a stream, or its reset, or the end of the connection.
func (s *speaker) end(stream uint32) (what string) {
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			return "the connection ended"
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				s.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			return "GOAWAY " + frame.ErrCode.String()
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "reset " + frame.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			if frame.StreamID == stream {
				return frame.PseudoValue("status")
			}
		}
	}
}

func TestNoRequestIsSmuggledOverHTTP2(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to)
	usual := []string{":method", "POST", ":scheme", "http", ":authority", "shop.test", ":path", "/a"}
	with := func(more ...string) []string { return append(append([]string{}, usual...), more...) }
	instead := func(name, value string) []string {
		all := with()
		for i := 0; i < len(all); i += 2 {
			if all[i] == name {
				all[i+1] = value
			}
		}
		return all
	}
	inLine := " HTTP/1.1\r\nHost: shop.test\r\n\r\n" + smuggled
	for _, c := range []struct {
		name   string
		fields []string
		body   string
		may    string // the request that the service may get
	}{
		{"a transfer coding", with("transfer-encoding", "chunked"), "0\r\n\r\n" + smuggled, "POST /a"},
		{"a length that is too short", with("content-length", "1"), smuggled, ""},
		{"a length that is too long", with("content-length", "100"), "x", ""},
		{"two lengths", with("content-length", "0", "content-length", "5"), smuggled, "POST /a"},
		{"a length of the connection", with("connection", "content-length", "content-length", "1"), "x", "POST /a"},
		{"a line end in a field", with("x-a", "b\r\nTransfer-Encoding: chunked"), "0\r\n\r\n" + smuggled, ""},
		{"a line feed in a field", with("x-a", "b\n\nGET /smuggled HTTP/1.1"), "x", ""},
		{"a NUL in a field", with("x-a", "b\x00c"), "x", ""},
		{"a line end in a name", with("x-a: b\r\nx-c", "d"), "x", ""},
		{"a colon in a name", with("x-a:", "d"), "x", ""},
		{"capitals in a name", with("Content-Length", "1"), "x", ""},
		{"a line end in the path", instead(":path", "/a"+inLine), "x", ""},
		{"a blank in the path", instead(":path", "/a HTTP/1.1"), "x", "POST /a%20HTTP/1.1"},
		{"a blank in the query", instead(":path", "/a?b HTTP/1.1"), "x", "POST /a?b%20HTTP/1.1"},
		{"a path without a slash", instead(":path", "a"), "x", ""},
		{"an empty path", instead(":path", ""), "x", ""},
		{"a line end in the method", instead(":method", "GET /smuggled HTTP/1.1\r\nX-A:"), "x", ""},
		{"a blank in the method", instead(":method", "GET /smuggled HTTP/1.1"), "x", ""},
		{"a line end in the authority", instead(":authority", "shop.test\r\nTransfer-Encoding: chunked"), "x", ""},
		{"a path in the authority", instead(":authority", "shop.test/smuggled?"), "x", ""},
		{"a line end in the scheme", instead(":scheme", "http\r\nX-A: b"), "x", ""},
		{"a second path", with(":path", "/smuggled"), "x", ""},
		{"a pseudo-field that is none", with(":smuggled", "x"), "x", ""},
		{"a pseudo-field after a field", append([]string{"x-a", "b"}, usual...), "x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h2 := speak(t, p.addr)
			h2.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h2.fields(c.fields...), EndHeaders: true})
			h2.WriteData(1, true, []byte(c.body))
			what := h2.end(1)
			got := s.take()
			if len(got) > 1 || len(got) == 1 && got[0] != c.may {
				t.Errorf("answered with %s, and the service got %q, want %q at most", what, got, c.may)
			}
			if host, _, header := s.last(); len(got) == 1 && (host != "shop.test" || header.Get("X-A") != "") {
				t.Errorf("the service got Host %q and %v", host, header)
			}
		})
	}
	h2 := speak(t, p.addr)
	h2.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h2.fields(with("host", "other.test")...), EndHeaders: true, EndStream: true})
	h2.end(1)
	if host, _, _ := s.last(); len(s.take()) > 0 && host != "shop.test" {
		t.Errorf("an authority, and another Host: the service got Host %q, want the authority or nothing", host)
	}
}

func TestRapidResetsAreBounded(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to)
	before := p.status(t, "VmRSS:")
	h2 := speak(t, p.addr)
	go io.Copy(io.Discard, h2.conn) // or neither side would get on
	opened := 0
	for ; opened < 20000; opened++ {
		id := uint32(2*opened + 1)
		if err := h2.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h2.fields(":method", "GET", ":scheme", "http", ":authority", "shop.test", ":path", "/a"), EndHeaders: true, EndStream: true}); err != nil {
			break
		}
		if err := h2.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
			break
		}
	}
	h2.conn.Close()
	mustServe(t, p)
	if after := p.status(t, "VmRSS:"); after > before+200<<10 {
		t.Errorf("after %d streams that were reset at once the proxy has %d KiB, and %d KiB before", opened, after, before)
	}
	t.Logf("%d streams were opened and reset on one connection; %d requests reached the service", opened, len(s.take()))
}

func TestAHeaderWithoutAnEndIsBoundedOverHTTP2(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to)
	before := p.status(t, "VmRSS:")
	h2 := speak(t, p.addr)
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, h2.conn)
		close(gone)
	}()
	h2.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h2.fields(":method", "GET", ":scheme", "http", ":authority", "shop.test", ":path", "/a")})
	sent := 0
	var err error
	for err == nil && sent < 256<<20 {
		err = h2.WriteContinuation(1, false, h2.fields(fmt.Sprintf("x-%d", sent), strings.Repeat("x", 8000)))
		sent += 8000
	}
	if err == nil {
		t.Errorf("a header of %d MiB was read, want the connection to be ended before", sent>>20)
	}
	if after := p.status(t, "VmRSS:"); after > before+100<<10 {
		t.Errorf("a header without an end: the proxy has %d KiB, and %d KiB before", after, before)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Errorf("the connection is still open")
	}
	mustServe(t, p)
	if got := s.take(); len(got) != 1 {
		t.Errorf("the service got %v, want nothing but the request of the test", got)
	}
}

// mustServe makes sure that a proxy still works.
func mustServe(t testing.TB, p *proxy) {
	t.Helper()
	a, err := goExchange(newTransport(t, http1, ""), p.url, exchange{Method: "GET", Target: "/a"})
	if err != nil || a.Status != 200 {
		t.Errorf("a request afterwards: got %d, %v, want 200", a.Status, err)
	}
}
