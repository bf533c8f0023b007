package stores

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// A cutter stands between a client and PostgreSQL, and passes everything on until a COMMIT comes.
type cutter struct {
	server string                   // its socket
	onNext atomic.Pointer[incident] // of the next COMMIT
	down   atomic.Bool              // nobody gets through
	conns  sync.WaitGroup
}

// An incident is what becomes of a COMMIT. It is passed on if arrives is set. Its answer never is; once the server has answered, or at
// once if the COMMIT did not arrive, the connection is cut, unless it is only to be silent. With down nobody gets through afterwards.
type incident struct{ arrives, silent, down bool }

// newCutter starts one, and returns the DSN of who is to go through it.
func newCutter(t testing.TB, dsn string) (c *cutter, through string) {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	c = &cutter{server: q.Get("host") + "/.s.PGSQL.5432"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		c.conns.Wait()
	})
	c.conns.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.conns.Go(func() { c.pass(client) })
		}
	})
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	return c, u.String()
}

func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	if c.down.Load() {
		return
	}
	server, err := net.Dial("unix", c.server)
	if err != nil {
		return
	}
	var muted atomic.Pointer[incident]
	var answers sync.WaitGroup
	defer answers.Wait()
	defer server.Close()
	answers.Go(func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			in := muted.Load()
			if in == nil {
				client.Write(buffer[:n])
			} else if !in.silent {
				c.down.Store(in.down)
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(bytes.ToLower(buffer[:n]), []byte("commit\x00")) {
			if in := c.onNext.Swap(nil); in != nil {
				muted.Store(in)
				if !in.arrives {
					return
				}
			}
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}
