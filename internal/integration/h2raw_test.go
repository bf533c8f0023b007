package integration_test

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A rawHTTP2 server answers requests with the frames that it is told to, over a connection without TLS.
type rawHTTP2 struct {
	url     string
	conns   atomic.Int32
	streams atomic.Int32 // requests read to their end, those of all connections
}

type rawStream struct {
	*http2.Framer
	conn net.Conn
	n    int // of all streams, from 1
	id   uint32
}

// h2raw returns a server that calls act for each request that it has read, in the goroutine of its connection.
func h2raw(t *testing.T, act func(rawStream)) *rawHTTP2 {
	t.Helper()
	s := new(rawHTTP2)
	s.url = "http://" + listen(t, func(_ int, conn *net.TCPConn) {
		s.conns.Add(1)
		s.converse(conn, act)
	})
	return s
}

func (s *rawHTTP2) converse(conn net.Conn, act func(rawStream)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	framer := http2.NewFramer(conn, conn)
	framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				framer.WritePing(true, frame.Data)
			}
		case *http2.HeadersFrame:
			if frame.StreamEnded() {
				act(rawStream{framer, conn, int(s.streams.Add(1)), frame.StreamID})
			}
		case *http2.DataFrame:
			if frame.StreamEnded() {
				act(rawStream{framer, conn, int(s.streams.Add(1)), frame.StreamID})
			}
		}
	}
}

// reset ends the stream with an error.
func (s rawStream) reset(code http2.ErrCode) { s.WriteRSTStream(s.id, code) }

// answer responds to the request.
func (s rawStream) answer(status int, body string) {
	var block bytes.Buffer
	hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
	s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block.Bytes(), EndHeaders: true})
	s.WriteData(s.id, true, []byte(body))
}
