package flaky

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clients are the connections of the benchmark, each of which has a request in flight all the time.
const clients = 500

// BenchmarkHandler compares the handler with the least that answers the same, while 500 clients wait for their answers:
// what the log costs, and whether requests queue at it, shows in the latencies.
func BenchmarkHandler(b *testing.B) {
	const text = "503 Service Unavailable\n"
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(503)
		io.WriteString(w, text)
	})
	for _, impl := range []struct {
		name string
		http.Handler
	}{{"impl=bare", bare}, {"impl=flaky", newHandler(b, "503")}} {
		b.Run(impl.name, func(b *testing.B) {
			b.ReportAllocs()
			s := httptest.NewServer(impl)
			defer s.Close()
			latencies := hammer(b, s.Listener.Addr().String())
			slices.Sort(latencies)
			for name, q := range map[string]float64{"p50-µs": 0.5, "p99-µs": 0.99} {
				at := latencies[int(q*float64(len(latencies)-1))]
				b.ReportMetric(float64(at)/float64(time.Microsecond), name)
			}
		})
	}
}

// hammer sends b.N requests over all connections and returns how long each waited for its answer. It does no more for a
// request than a write and a read, so that the server's share is as large as it can be.
func hammer(b *testing.B, addr string) (latencies []time.Duration) {
	const request = "GET /orders HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: bench\r\nAccept-Encoding: gzip\r\n\r\n"
	conns := make([]net.Conn, clients)
	size := int64(0) // of an answer, always the same
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, request)
		counted := &io.LimitedReader{R: conn, N: 1 << 20}
		resp, err := http.ReadResponse(bufio.NewReader(counted), nil)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		conns[i], size = conn, 1<<20-counted.N
	}

	var (
		started atomic.Int64
		wg      sync.WaitGroup
		mu      sync.Mutex
	)
	b.ResetTimer()
	for _, conn := range conns {
		wg.Go(func() {
			var own []time.Duration
			answer := make([]byte, size)
			for started.Add(1) <= int64(b.N) {
				start := time.Now()
				io.WriteString(conn, request)
				if _, err := io.ReadFull(conn, answer); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, own...)
		})
	}
	wg.Wait()
	b.StopTimer()
	return latencies
}
