package integration_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// A rawServer does byte by byte what it is told, which a server of net/http would not.
type rawServer struct {
	addr     string
	url      string
	conns    atomic.Int32 // accepted
	requests atomic.Int32 // read to their end
}

// A step is what a rawServer does with a connection; after an error it does nothing more.
type step func(*rawServer, *rawConn) error

type rawConn struct {
	*net.TCPConn
	in *bufio.Reader
}

// raw returns a server that takes the steps of the first script on its first connection, those of the second on the
// second, and those of the last on all further ones. Then it closes the connection.
func raw(t *testing.T, scripts ...[]step) *rawServer {
	t.Helper()
	s := new(rawServer)
	s.addr = listen(t, func(n int, accepted *net.TCPConn) {
		s.conns.Add(1)
		conn := &rawConn{accepted, bufio.NewReader(accepted)}
		for _, do := range scripts[min(n, len(scripts))-1] {
			if do(s, conn) != nil {
				return
			}
		}
	})
	s.url = "http://" + s.addr
	return s
}

// listen hands each connection, with its number from 1, to a function in a goroutine of its own, and closes it when that
// returns. All connections end with the test. It returns the address to connect to.
func listen(t *testing.T, converse func(int, *net.TCPConn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	running.Go(func() {
		for n := 1; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				conn := conn.(*net.TCPConn)
				conn.SetReadBuffer(64 << 10)
				converse(n, conn)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return ln.Addr().String()
}

// read reads a request to its end.
func read(s *rawServer, c *rawConn) error {
	req, err := http.ReadRequest(c.in)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return err
	}
	s.requests.Add(1)
	return nil
}

// readHeader reads the header of a request.
func readHeader(_ *rawServer, c *rawConn) error {
	_, err := http.ReadRequest(c.in)
	return err
}

// readSome reads a number of bytes.
func readSome(n int64) step {
	return func(_ *rawServer, c *rawConn) error {
		_, err := io.CopyN(io.Discard, c.in, n)
		return err
	}
}

// write writes a text as it stands.
func write(text string) step {
	return func(_ *rawServer, c *rawConn) error {
		_, err := io.WriteString(c, text)
		return err
	}
}

// ok answers a request.
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// rst resets the connection.
func rst(_ *rawServer, c *rawConn) error {
	c.SetLinger(0)
	return c.Close()
}

// eof ends the connection in good order: what the client still sends is read.
func eof(_ *rawServer, c *rawConn) error {
	c.CloseWrite()
	io.Copy(io.Discard, c.in)
	return c.Close()
}

// hang waits until the client has closed the connection.
func hang(_ *rawServer, c *rawConn) error {
	_, err := io.Copy(io.Discard, c.in)
	return err
}
