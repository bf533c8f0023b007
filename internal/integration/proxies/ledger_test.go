package proxies

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A ledger is a service that charges whenever it is asked to, and that knows nothing of keys. What it does after it has charged is a
// fault: it loses the answer.
type ledger struct {
	url   string // for the proxy
	fault func(n int) fault

	mu       sync.Mutex
	requests int
	charges  map[string]int // by operation
	lost     int            // charges without an answer
}

// A fault is what a ledger does instead of its answer; "" is the answer.
type fault string

const (
	hangUp     fault = "closes the connection"
	resets     fault = "resets the connection"
	halfStatus fault = "sends half a status line"
	halfHeader fault = "sends half a header"
	garbage    fault = "sends what is no answer"
	hint       fault = "sends an informational answer and closes"
	halfBody   fault = "sends half a body"
	stale      fault = "answers, and closes the connection without a word"
	silent     fault = "says nothing"
	away       fault = "sends GOAWAY and closes the connection"
	refuses    fault = "refuses the stream, without a charge"
	unread     fault = "sends GOAWAY for the stream, without a charge"
	endsStream fault = "resets the stream with code "
)

var (
	http1Faults = []fault{hangUp, resets, halfStatus, halfHeader, garbage, hint, halfBody, stale, stale}
	http2Faults = func() []fault {
		all := []fault{hangUp, resets, halfBody, away, refuses, unread}
		for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
			if code != http2.ErrCodeRefusedStream { // which means that nothing was charged
				all = append(all, endsStream+fault(strconv.Itoa(int(code))))
			}
		}
		return all
	}()
)

// newLedger starts a ledger that speaks one protocol. The n-th request, from 1, meets a fault.
func newLedger(t testing.TB, p protocol, fault func(n int) fault) *ledger {
	t.Helper()
	l := &ledger{fault: fault, charges: make(map[string]int)}
	converse, scheme := l.converse, "http://"
	if p == h2c {
		converse, scheme = l.converse2, "h2c://"
	}
	l.url = scheme + listen(t, converse)
	return l
}

// listen hands each connection to a function in a goroutine of its own, and closes it when that returns. All end with the test.
func listen(t testing.TB, converse func(*net.TCPConn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			running.Go(func() {
				converse(conn.(*net.TCPConn))
				conn.Close()
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return ln.Addr().String()
}

// next counts a request and returns the fault that it meets.
func (l *ledger) next() fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	return l.fault(l.requests)
}

// charge charges for an operation.
func (l *ledger) charge(operation string, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charges[operation]++
	if lost {
		l.lost++
	}
}

// converse speaks HTTP/1.1.
func (l *ledger) converse(conn *net.TCPConn) {
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		operation, does := r.Header.Get("X-Operation"), l.next()
		l.charge(operation, does != "" && does != stale)
		body := operation + "\n"
		answer := fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		switch does {
		case "":
		case stale:
			io.WriteString(conn, answer)
			return
		case resets:
			conn.SetLinger(0)
			return
		case halfStatus:
			answer = "HTTP/1.1 20"
		case halfHeader:
			answer = "HTTP/1.1 201 Created\r\nContent-Le"
		case garbage:
			answer = "\x00\x01 charged\r\n\r\n"
		case hint:
			answer = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
		case halfBody:
			answer = answer[:len(answer)-3]
		case silent:
			io.Copy(io.Discard, conn) // until the proxy gives up
			return
		}
		if does == hangUp {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil || does != "" {
			return
		}
	}
}

// converse2 speaks HTTP/2.
func (l *ledger) converse2(conn *net.TCPConn) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	framer.WriteWindowUpdate(0, 1<<30)
	operations := make(map[uint32]string)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				framer.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			if frame.PseudoValue("method") != "" {
				for _, f := range frame.Fields {
					if f.Name == "x-operation" {
						operations[frame.StreamID] = f.Value
					}
				}
			}
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			ended = frame.StreamEnded()
		}
		if ended && !l.respond(conn, framer, frame.Header().StreamID, operations[frame.Header().StreamID]) {
			return
		}
	}
}

// respond responds to a stream. It returns false if the connection is not to be used any more.
func (l *ledger) respond(conn *net.TCPConn, framer *http2.Framer, id uint32, operation string) bool {
	does := l.next()
	switch does {
	case refuses:
		framer.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		return true
	case unread:
		framer.WriteGoAway(id-1, http2.ErrCodeNo, nil)
		return false
	}
	l.charge(operation, does != "")
	switch does {
	case "", halfBody:
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		e.WriteField(hpack.HeaderField{Name: ":status", Value: "201"})
		e.WriteField(hpack.HeaderField{Name: "content-type", Value: "text/plain"})
		e.WriteField(hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(operation) + 1)})
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		framer.WriteData(id, does == "", []byte(operation+"\n"))
		if does == halfBody {
			framer.WriteRSTStream(id, http2.ErrCodeInternal)
		}
	case hangUp:
		return false
	case resets:
		conn.SetLinger(0)
		return false
	case away:
		framer.WriteGoAway(id, http2.ErrCodeNo, nil)
		return false
	case silent:
	default:
		code, _ := strconv.Atoi(string(does[len(endsStream):]))
		framer.WriteRSTStream(id, http2.ErrCode(code))
	}
	return true
}
