package deadline_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/internal/memhttp"
)

func TestTheHandlersContextEndsWhenTheTimeIsOver(t *testing.T) {
	for _, test := range []struct {
		name   string
		m      deadline.Middleware
		header []string
		want   time.Duration
	}{
		{"by default", deadline.Middleware{}, nil, 30 * time.Second},
		{"by the limit", deadline.Middleware{Limit: 2 * time.Second}, nil, 2 * time.Second},
		{"by the caller", deadline.Middleware{}, []string{"X-Request-Timeout-Ms", "700"}, 700 * time.Millisecond},
		{"by gRPC", deadline.Middleware{}, []string{"grpc-timeout", "700m"}, 700 * time.Millisecond},
		{"by Envoy", deadline.Middleware{}, []string{"x-envoy-expected-rq-timeout-ms", "700"}, 700 * time.Millisecond},
		{"by the limit, below the caller's", deadline.Middleware{Limit: time.Second}, []string{"X-Request-Timeout-Ms", "5000"}, time.Second},
		{"by the limit, the caller's being junk", deadline.Middleware{Limit: time.Second}, []string{"X-Request-Timeout-Ms", "0"}, time.Second},
		{"never", deadline.Middleware{Limit: -1}, nil, endless},
		{"by the caller alone", deadline.Middleware{Limit: -1}, []string{"X-Request-Timeout-Ms", "3600000"}, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left, waited time.Duration
				var cause error
				start := time.Now()
				serve(test.m, func(w http.ResponseWriter, r *http.Request) {
					if left = deadline.Left(r.Context()); left < endless {
						<-r.Context().Done()
						cause = r.Context().Err()
					}
					waited = time.Since(start)
				}, test.header...)
				if left != test.want {
					t.Errorf("%+v with %q: %v left, want %v", test.m, test.header, left, test.want)
				}
				if test.want < endless && (waited != test.want || cause != context.DeadlineExceeded) {
					t.Errorf("%+v with %q: context ended after %v by %v, want %v by the deadline", test.m, test.header, waited, cause, test.want)
				}
			})
		})
	}
}

func TestWithLessThanLeastTheHandlerIsNotCalled(t *testing.T) {
	for _, test := range []struct {
		name   string
		m      deadline.Middleware
		header []string
		called bool
	}{
		{"less than the default", deadline.Middleware{}, []string{"X-Request-Timeout-Ms", "9"}, false},
		{"the default", deadline.Middleware{}, []string{"X-Request-Timeout-Ms", "10"}, true},
		{"less than Least", deadline.Middleware{Least: time.Second}, []string{"X-Request-Timeout-Ms", "999"}, false},
		{"Least", deadline.Middleware{Least: time.Second}, []string{"X-Request-Timeout-Ms", "1000"}, true},
		{"a nanosecond", deadline.Middleware{}, []string{"grpc-timeout", "1n"}, false},
		{"a nanosecond will do", deadline.Middleware{Least: -1}, []string{"grpc-timeout", "1n"}, true},
		{"zero is junk", deadline.Middleware{}, []string{"X-Request-Timeout-Ms", "0"}, true},
		{"a limit below Least", deadline.Middleware{Limit: 5 * time.Millisecond}, nil, true},
		{"less than a limit below Least", deadline.Middleware{Limit: 5 * time.Millisecond}, []string{"X-Request-Timeout-Ms", "4"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called := false
				w := serve(test.m, func(http.ResponseWriter, *http.Request) { called = true }, test.header...)
				want := http.StatusOK
				if !test.called {
					want = http.StatusGatewayTimeout
				}
				if called != test.called || w.Code != want {
					t.Errorf("%+v with %q: called %t, status %d; want %t, %d", test.m, test.header, called, w.Code, test.called, want)
				}
			})
		})
	}
}

// checkExceeded looks whether an answer is the one of a Middleware to a request whose time is over.
func checkExceeded(t *testing.T, w *httptest.ResponseRecorder, detail string) {
	t.Helper()
	resp := w.Result()
	if resp.StatusCode != http.StatusGatewayTimeout || resp.Header.Get("X-Deadline-Exceeded") != "true" || resp.Header.Get("X-Should-Retry") != "false" ||
		resp.Header.Get("Content-Type") != "application/problem+json" || len(resp.Header["X-Correlation-Id"]) != 1 {
		t.Errorf("answer %s with %q, want a 504 that is marked, a problem, not to be retried, and has its correlation id", resp.Status, resp.Header)
	}
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	want := map[string]any{
		"type":   "https://github.com/riprap-go/riprap/blob/main/docs/deadlines.md#deadline-exceeded",
		"title":  "Deadline exceeded",
		"status": 504.0,
		"detail": detail,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("member %s of the problem is %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("problem %s, want the members %v", w.Body, want)
	}
}

func TestARefusalIsAProblemWithItsFigures(t *testing.T) {
	w := serve(deadline.Middleware{Least: 20 * time.Millisecond}, nil, "X-Request-Timeout-Ms", "7")
	checkExceeded(t, w, "The request has 7ms left. With less than 20ms it is not begun.")
}

func TestARefusalNamesFiguresThatCanBeRead(t *testing.T) {
	for deadlineIn, detail := range map[time.Duration]string{
		9999999:          "The request has 9.99ms left. With less than 10ms it is not begun.",
		1234567:          "The request has 1.23ms left. With less than 10ms it is not begun.",
		999:              "The request has 999ns left. With less than 10ms it is not begun.",
		-23456789:        "The request has 0s left. With less than 10ms it is not begun.",
		1234567890:       "The request was not answered within the 1.23s that it had.",
		488425166:        "The request was not answered within the 488ms that it had.",
		95 * time.Second: "The request was not answered within the 1m35s that it had.",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), deadlineIn)
			defer cancel()
			w := httptest.NewRecorder()
			deadline.Middleware{Limit: -1}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
			})).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
			checkExceeded(t, w, detail)
			if body := w.Body.String(); !strings.HasSuffix(body, "}\n") || strings.Count(body, "\n") != 1 {
				t.Errorf("body %q, want one line that ends", body)
			}
		})
	}
}

func TestAHandlerThatReturnsLateWithoutAWordIsAnsweredFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(deadline.Middleware{Limit: time.Second}, func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Cache-Control", "Trailer"} {
				w.Header().Set(name, "of an answer that never came")
			}
			w.Header().Set("X-Should-Retry", "true")
			w.Header().Del("X-Correlation-Id")
			<-r.Context().Done()
		})
		checkExceeded(t, w, "The request was not answered within the 1s that it had.")
		for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Cache-Control", "Trailer"} {
			if value := w.Header().Get(name); value != "" {
				t.Errorf("the answer has %s: %s, want it gone", name, value)
			}
		}
	})
}

func TestWhatAHandlerAnswersLateIsSent(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"a status":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"an upgrade":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) },
		"bytes":        func(w http.ResponseWriter) { w.Write([]byte("late")) },
		"a string":     func(w http.ResponseWriter) { io.WriteString(w, "late") },
		"nothing":      func(w http.ResponseWriter) { w.Write(nil) },
		"a flush":      func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"a controller": func(w http.ResponseWriter) { http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serve(deadline.Middleware{Limit: time.Second}, func(w http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					answer(w)
				})
				if w.Code >= 300 || retryVerdict(w) != "-" || w.Header().Get("X-Deadline-Exceeded") != "" {
					t.Errorf("answer %d with %q, want the handler's own", w.Code, w.Header())
				}
			})
		})
	}
}

func TestAHandlerThatReturnsInTimeWithoutAWordIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(deadline.Middleware{Limit: time.Second}, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second - 1) })
		if w.Code != http.StatusOK || w.Body.Len() > 0 || retryVerdict(w) != "-" {
			t.Errorf("answer %d %q with %q, want an empty 200", w.Code, w.Body, w.Header())
		}
		w = serve(deadline.Middleware{Limit: -1}, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) })
		if w.Code != http.StatusOK || w.Body.Len() > 0 {
			t.Errorf("without a limit: answer %d %q, want an empty 200", w.Code, w.Body)
		}
	})
}

func TestACanceledRequestIsNotALateOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			if err := r.Context().Err(); err != context.Canceled {
				t.Errorf("the handler's context has error %v, want canceled", err)
			}
			if left := deadline.Left(r.Context()); left != 0 {
				t.Errorf("Left of a canceled context = %v, want 0", left)
			}
		})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		if w.Code != http.StatusOK || w.Header().Get("X-Deadline-Exceeded") != "" {
			t.Errorf("answer %d with %q, want none of ours", w.Code, w.Header())
		}
	})
}

func TestADeadlineFromOutsideHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			outer, want time.Duration // zero: not called
		}{
			{time.Second, time.Second},
			{time.Minute, 30 * time.Second},
			{time.Nanosecond, time.Nanosecond},
			{0, 0},
			{-time.Second, 0},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), test.outer)
			var left time.Duration
			w := httptest.NewRecorder()
			deadline.Middleware{Least: -1}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				left = deadline.Left(r.Context())
			})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			cancel()
			if left != test.want || (w.Code == http.StatusGatewayTimeout) != (test.want == 0) {
				t.Errorf("within %v: status %d, %v left; want %v", test.outer, w.Code, left, test.want)
			}
			if test.want == 0 {
				checkExceeded(t, w, "The request has 0s left. With less than 1ns it is not begun.")
			}
		}
	})
}

func TestTheContextEndsWithTheHandler(t *testing.T) {
	for _, limit := range []time.Duration{time.Hour, time.Second} {
		var ctx context.Context
		serve(deadline.Middleware{Limit: limit}, func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() })
		if ctx.Err() != context.Canceled {
			t.Errorf("limit %v: after the handler its context has error %v, want canceled", limit, ctx.Err())
		}
	}
}

func TestMiddlewaresNest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := deadline.Middleware{Limit: time.Second}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		start := time.Now()
		w := serve(deadline.Middleware{Limit: time.Minute}, inner.ServeHTTP, deadline.CorrelationHeader, "id")
		checkExceeded(t, w, "The request was not answered within the 1s that it had.")
		if waited := time.Since(start); waited != time.Second || w.Header().Get(deadline.CorrelationHeader) != "id" {
			t.Errorf("answer after %v with %q, want after 1s with the id that came", waited, w.Header())
		}
	})
}

func TestAPanicPassesThrough(t *testing.T) {
	for _, value := range []any{http.ErrAbortHandler, errors.New("bug"), "bug", 17} {
		t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				h := deadline.Middleware{Limit: time.Second}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					<-r.Context().Done() // even if it is late
					panic(value)
				}))
				defer func() {
					if got := recover(); got != value {
						t.Errorf("panic(%v) arrived as %v", value, got)
					}
					if w.Body.Len() > 0 || w.Header().Get("X-Deadline-Exceeded") != "" {
						t.Errorf("panic(%v) was answered %q with %q", value, w.Body, w.Header())
					}
				}()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			})
		})
	}
}

func TestACallerThatLeavesEndsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		server := memhttp.Serve(deadline.Middleware{}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- r.Context().Err()
		})))
		defer server.Stop()
		transport := server.Transport()
		defer transport.CloseIdleConnections()

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", memhttp.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if resp, err := transport.RoundTrip(r); err == nil {
			t.Errorf("answer %s, want none", resp.Status)
		}
		if err := <-ended; err != context.Canceled || time.Since(start) != 2*time.Second {
			t.Errorf("the context ended after %v by %v, want canceled after 2s", time.Since(start), err)
		}
	})
}

func TestLeftOutsideAMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		over, cancel := context.WithTimeout(t.Context(), -time.Minute)
		defer cancel()
		time.Sleep(time.Second)
		for _, test := range []struct {
			name string
			ctx  context.Context
			want time.Duration
		}{
			{"without a deadline", t.Context(), math.MaxInt64},
			{"with a deadline", soon, 59 * time.Second},
			{"with a deadline that has passed", over, -61 * time.Second},
			{"without a deadline, canceled", canceled, 0},
		} {
			if got := deadline.Left(test.ctx); got != test.want {
				t.Errorf("Left %s = %v, want %v", test.name, got, test.want)
			}
		}
	})
}
