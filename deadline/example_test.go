package deadline_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// request makes a request with these names and values of header fields.
func request(header ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// A caller that waits four more milliseconds gets no answer that it could use, so no work is done for it.
func ExampleMiddleware() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "here you are") })
	service := deadline.Middleware{Limit: 5 * time.Second}.Handler(mux)

	for _, left := range []string{"900", "4"} {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, request("X-Request-Timeout-Ms", left))
		fmt.Println(w.Code, w.Header().Get(deadline.ExceededHeader), strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200  here you are
	// 504 true {"type":"https://github.com/riprap-go/riprap/blob/main/docs/deadlines.md#deadline-exceeded","title":"Deadline exceeded","status":504,"detail":"The request has 4ms left. With less than 10ms it is not begun."}
}

// Only callers in the private network are believed. (A proxy at the edge that is in this network must remove the fields.)
func ExampleMiddleware_trusted() {
	private := netip.MustParsePrefix("10.0.0.0/8")
	m := deadline.Middleware{Trusted: func(r *http.Request) bool {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		return err == nil && private.Contains(from.Addr())
	}}
	service := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.RemoteAddr, deadline.Left(r.Context()).Round(time.Second), deadline.Retried(r.Context()))
	}))

	for _, from := range []string{"10.1.2.3:4567", "203.0.113.7:4567"} {
		r := request("X-Request-Timeout-Ms", "2000", "X-Request-Attempt", "2")
		r.RemoteAddr = from
		service.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// 10.1.2.3:4567 2s true
	// 203.0.113.7:4567 30s false
}

// A handler that had to queue looks again before it begins.
func ExampleLeft() {
	turn := make(chan struct{}, 1)
	service := deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-r.Context().Done():
			return // answered 504
		}
		if deadline.Left(r.Context()) < 500*time.Millisecond {
			http.Error(w, "too late for a report, try the summary", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "the report")
	}))

	w := httptest.NewRecorder()
	service.ServeHTTP(w, request("X-Request-Timeout-Ms", "300"))
	fmt.Println(w.Code, w.Body)
	fmt.Println(deadline.Left(context.Background()) == math.MaxInt64)
	// Output:
	// 503 too late for a report, try the summary
	//
	// true
}

// Calls for a retry are made once.
func ExampleRetried() {
	service := deadline.Middleware{}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		attempts := 3
		if deadline.Retried(r.Context()) {
			attempts = 1
		}
		fmt.Println("attempts:", attempts)
	}))
	service.ServeHTTP(httptest.NewRecorder(), request())
	service.ServeHTTP(httptest.NewRecorder(), request("X-Request-Attempt", "2"))
	// Output:
	// attempts: 3
	// attempts: 1
}

func ExampleAttempt() {
	service := deadline.Middleware{}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(deadline.Attempt(r.Context()))
	}))
	service.ServeHTTP(httptest.NewRecorder(), request("X-Request-Attempt", "3"))
	service.ServeHTTP(httptest.NewRecorder(), request())
	// Output:
	// 3
	// 0
}

func ExampleGiveUp() {
	service := deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline.GiveUp(r.Context()) // the database is in recovery, which takes minutes
		http.Error(w, "no database", http.StatusServiceUnavailable)
	}))
	w := httptest.NewRecorder()
	service.ServeHTTP(w, request())
	fmt.Println(w.Code, w.Header().Get("X-Should-Retry"))
	// Output: 503 false
}

func ExampleCorrelationID() {
	service := deadline.Middleware{}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("log line of", deadline.CorrelationID(r.Context()))
	}))
	w := httptest.NewRecorder()
	service.ServeHTTP(w, request("X-Correlation-Id", "order-17"))
	fmt.Println("answer to", w.Header().Get("X-Correlation-Id"))
	// Output:
	// log line of order-17
	// answer to order-17
}

func ExampleMargin() {
	for _, left := range []time.Duration{50 * time.Millisecond, 2 * time.Second, time.Minute} {
		fmt.Println(left, "less", deadline.Margin(left))
	}
	// Output:
	// 50ms less 5ms
	// 2s less 40ms
	// 1m0s less 100ms
}

// What a transport does before it sends an attempt.
func ExampleAnnounce() {
	ctx := context.Background()
	now := time.UnixMilli(1_772_366_400_000)
	h := http.Header{"X-Correlation-Id": {"order-17"}}

	fmt.Println("first attempt:", deadline.Announce(ctx, h, now, time.Second, 1))
	fmt.Println(h)
	fmt.Println("second attempt:", deadline.Announce(ctx, h, now.Add(700*time.Millisecond), 300*time.Millisecond, 2))
	fmt.Println(h)
	if deadline.Announce(ctx, h, now.Add(996*time.Millisecond), 4*time.Millisecond, 3) == 0 {
		fmt.Println("no third attempt: nobody would wait for its answer")
	}
	// Output:
	// first attempt: 980ms
	// map[X-Correlation-Id:[order-17] X-Request-Deadline:[1772366400980] X-Request-Timeout-Ms:[980]]
	// second attempt: 294ms
	// map[X-Correlation-Id:[order-17] X-Request-Attempt:[2] X-Request-Deadline:[1772366400994] X-Request-Timeout-Ms:[294]]
	// no third attempt: nobody would wait for its answer
}
