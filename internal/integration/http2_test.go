package integration_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
	"golang.org/x/net/http2"
)

// callHTTP2 returns a client that speaks HTTP/2 without TLS.
func callHTTP2(t *testing.T) *caller {
	base := plain()
	base.Protocols = cleartextHTTP2()
	return call(t, base)
}

func TestStreamResetIsNoProofThatTheRequestWasNotProcessed(t *testing.T) {
	for _, code := range []http2.ErrCode{
		http2.ErrCodeNo, http2.ErrCodeInternal, http2.ErrCodeFlowControl, http2.ErrCodeStreamClosed, http2.ErrCodeCancel,
		http2.ErrCodeConnect, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeInadequateSecurity, http2.ErrCodeHTTP11Required,
	} {
		t.Run(code.String()+" of a POST without a key", func(t *testing.T) {
			settles(t)
			server := h2raw(t, func(s rawStream) { s.reset(code) })
			c := callHTTP2(t)
			_, _, err := c.do(t, request(t, "POST", server.url, "", strings.NewReader("order")))
			if !errors.Is(err, riphttp.ErrOutcomeUnknown) {
				t.Errorf("POST: %v, want ErrOutcomeUnknown", err)
			}
			if got := server.streams.Load(); got != 1 {
				t.Errorf("POST was sent %d times, want once", got)
			}
			if e := c.last(t); e.Attempts != 1 || e.Sends != 1 {
				t.Errorf("Done event = %+v, want one attempt and one send", e)
			}
		})
		t.Run(code.String()+" of a GET", func(t *testing.T) {
			settles(t)
			server := h2raw(t, func(s rawStream) {
				if s.n < 3 {
					s.reset(code)
					return
				}
				s.answer(200, "hello")
			})
			c := callHTTP2(t)
			c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
			if e := c.last(t); e.Attempts != 3 || e.Sends != 3 {
				t.Errorf("Done event = %+v, want three attempts and three sends", e)
			}
			for _, retry := range c.retries {
				if retry.Wait <= 0 {
					t.Errorf("Retry event = %+v, want a wait", retry)
				}
			}
		})
	}
}

// Net/http repeats what has a GetBody, on HTTP/2 after a PROTOCOL_ERROR too. A POST that came without one gets none.
func TestPostWithoutKeyGetsNoGetBodyToBeRepeatedWith(t *testing.T) {
	settles(t)
	server := h2raw(t, func(s rawStream) { s.reset(http2.ErrCodeProtocol) })
	c := callHTTP2(t)
	req := request(t, "POST", server.url, "", io.MultiReader(strings.NewReader("order")))
	req.ContentLength = 5 // small enough to be read in advance
	if _, _, err := c.do(t, req); !errors.Is(err, riphttp.ErrOutcomeUnknown) {
		t.Errorf("POST: %v, want ErrOutcomeUnknown", err)
	}
	if got := server.streams.Load(); got != 1 {
		t.Errorf("POST was sent %d times, want once", got)
	}
}

// These are repeated by net/http itself.
func TestSendsTellsWhatTheTransportBelowRepeats(t *testing.T) {
	for _, code := range []http2.ErrCode{http2.ErrCodeProtocol, http2.ErrCodeRefusedStream} {
		for _, key := range []string{"", "k1"} {
			settles(t)
			server := h2raw(t, func(s rawStream) {
				if s.n == 1 {
					s.reset(code)
					return
				}
				s.answer(200, "hello")
			})
			c := callHTTP2(t)
			c.answer(t, request(t, "POST", server.url, key, strings.NewReader("order")), 200, "hello")
			e := c.last(t)
			if e.Attempts != 1 || e.Sends != 2 || int(server.streams.Load()) != e.Sends {
				t.Errorf("%v: Done event = %+v and %d streams, want one attempt and two sends", code, e, server.streams.Load())
			}
		}
	}
}

// net/http knows no limit here, since it begins to count anew with each connection. What bounds the attempt has to.
func TestOnlyItsContextEndsWhatTheTransportBelowRepeats(t *testing.T) {
	const enough = 20
	for name, refuse := range map[string]func(rawStream){
		"PROTOCOL_ERROR": func(s rawStream) { s.reset(http2.ErrCodeProtocol) },
		"GOAWAY":         func(s rawStream) { s.WriteGoAway(0, http2.ErrCodeNo, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := h2raw(t, func(s rawStream) {
				if s.n == enough {
					cancel()
					return
				}
				refuse(s)
			})
			c := callHTTP2(t)
			_, _, err := c.do(t, request(t, "POST", server.url, "", strings.NewReader("order")).WithContext(ctx))
			if !errors.Is(err, riphttp.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
				t.Errorf("POST: %v, want ErrOutcomeUnknown and Canceled", err)
			}
			if e := c.last(t); e.Attempts != 1 || e.Sends != enough {
				t.Errorf("Done event = %+v, want one attempt and %d sends", e, enough)
			}
		})
	}
}

func TestBodyThatCannotBeSentAgainIsNotRepeatedAfterARefusedStream(t *testing.T) {
	settles(t)
	server := h2raw(t, func(s rawStream) { s.reset(http2.ErrCodeRefusedStream) })
	c := callHTTP2(t)
	_, _, err := c.do(t, request(t, "POST", server.url, "k1", io.MultiReader(strings.NewReader("order"))))
	if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Attempts != 1 {
		t.Errorf("POST with a body that cannot be read again: %v, want an *Error after one attempt", err)
	}
	if got := server.streams.Load(); got != 1 {
		t.Errorf("POST was sent %d times, want once", got)
	}
}

func TestGoAway(t *testing.T) {
	// goAway tells the client to leave the connection; streams above last were not processed.
	goAway := func(last uint32, code http2.ErrCode, then func(rawStream)) func(rawStream) {
		var once sync.Once
		return func(s rawStream) {
			first := false
			once.Do(func() { first = true })
			if !first {
				s.answer(200, "hello")
				return
			}
			s.WriteGoAway(last, code, nil)
			then(s)
		}
	}
	leave := func(s rawStream) { s.conn.(interface{ CloseWrite() error }).CloseWrite() }

	t.Run("before the first stream, a POST works on a new connection", func(t *testing.T) {
		settles(t)
		server := h2raw(t, goAway(0, http2.ErrCodeNo, func(rawStream) {}))
		c := callHTTP2(t)
		c.answer(t, request(t, "POST", server.url, "", strings.NewReader("order")), 200, "hello")
		if e := c.last(t); e.Attempts != 1 || e.Sends != 2 || server.conns.Load() != 2 {
			t.Errorf("Done event = %+v over %d connections, want one attempt, two sends, two connections", e, server.conns.Load())
		}
	})
	t.Run("before the first stream, a POST with a key works whose small body was read in advance", func(t *testing.T) {
		settles(t)
		server := h2raw(t, goAway(0, http2.ErrCodeNo, func(rawStream) {}))
		c := callHTTP2(t)
		req := request(t, "POST", server.url, "key", io.MultiReader(strings.NewReader("order")))
		req.ContentLength = 5
		c.answer(t, req, 200, "hello")
	})
	t.Run("above the last stream, a POST works on a new connection", func(t *testing.T) {
		settles(t)
		server := h2raw(t, func(s rawStream) {
			if s.n == 2 {
				s.WriteGoAway(1, http2.ErrCodeNo, nil)
				return
			}
			s.answer(200, "hello")
		})
		c := callHTTP2(t)
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
		c.answer(t, request(t, "POST", server.url, "", strings.NewReader("order")), 200, "hello")
		if e := c.last(t); e.Attempts != 1 || e.Sends != 2 || server.conns.Load() != 2 {
			t.Errorf("Done event = %+v over %d connections, want one attempt, two sends, two connections", e, server.conns.Load())
		}
	})
	t.Run("with the stream among those processed, the answer still comes", func(t *testing.T) {
		settles(t)
		server := h2raw(t, goAway(1, http2.ErrCodeNo, func(s rawStream) { s.answer(200, "hello") }))
		c := callHTTP2(t)
		c.answer(t, request(t, "POST", server.url, "", strings.NewReader("order")), 200, "hello")
		if e := c.last(t); e.Attempts != 1 || e.Sends != 1 {
			t.Errorf("Done event = %+v, want one attempt and one send", e)
		}
	})
	t.Run("with the stream among those processed and no answer, the outcome of a POST is unknown", func(t *testing.T) {
		settles(t)
		server := h2raw(t, goAway(1, http2.ErrCodeNo, leave))
		c := callHTTP2(t)
		_, _, err := c.do(t, request(t, "POST", server.url, "", strings.NewReader("order")))
		if !errors.Is(err, riphttp.ErrOutcomeUnknown) || server.streams.Load() != 1 {
			t.Errorf("POST sent %d times: %v, want once and ErrOutcomeUnknown", server.streams.Load(), err)
		}
	})
	t.Run("with the stream among those processed and no answer, a GET is sent again", func(t *testing.T) {
		settles(t)
		server := h2raw(t, goAway(1, http2.ErrCodeNo, leave))
		c := callHTTP2(t)
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
	})
	t.Run("with an error, a GET is sent again after a wait", func(t *testing.T) {
		settles(t)
		server := h2raw(t, goAway(0, http2.ErrCodeEnhanceYourCalm, leave))
		c := callHTTP2(t)
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
		if e := c.last(t); e.Attempts != 2 {
			t.Errorf("Done event = %+v, want two attempts", e)
		}
	})
}

func TestResponsesOverHTTP2AreTriedAgain(t *testing.T) {
	settles(t)
	server := h2raw(t, func(s rawStream) {
		if s.n < 3 {
			s.answer(503, "not now")
			return
		}
		s.answer(200, "hello")
	})
	c := callHTTP2(t)
	resp := c.answer(t, request(t, "PUT", server.url, "", strings.NewReader("order")), 200, "hello")
	if resp.ProtoMajor != 2 || server.conns.Load() != 1 || server.streams.Load() != 3 {
		t.Errorf("PUT over %s took %d connections and %d streams, want HTTP/2.0, 1 and 3", resp.Proto, server.conns.Load(), server.streams.Load())
	}
}

func TestStreamResetInTheBodyReachesTheReader(t *testing.T) {
	settles(t)
	server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hel")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, overHTTP2)
	c := call(t, server.base())
	_, content, err := c.do(t, request(t, "GET", server.URL, "", nil))
	if err == nil || content != "hel" {
		t.Errorf("body = %q, %v, want what came and an error", content, err)
	}
	if e := c.last(t); e.Err == nil || server.requests.Load() != 1 {
		t.Errorf("Done event = %+v after %d requests, want an error after one", e, server.requests.Load())
	}
}

// Over HTTP/2 a response can be there before net/http has told that the request was written.
func TestPostWithoutAKeyIsNotRepeatedAfterAResponseThatComesAtOnce(t *testing.T) {
	settles(t)
	server := h2raw(t, func(s rawStream) { s.answer(503, "not now") })
	c := callHTTP2(t)
	for n := range 300 {
		c.answer(t, request(t, "POST", server.url, "", nil), 503, "not now")
		if e := c.last(t); e.Attempts != 1 || e.Sends != 1 || int(server.streams.Load()) != n+1 {
			t.Fatalf("POST %d: Done event = %+v and %d streams in all, want one attempt and one send each", n+1, e, server.streams.Load())
		}
	}
}

// Over HTTP/2 net/http does not wait for a header that is being written when the attempt's time is over.
func TestPostWithoutAKeyIsNotRepeatedWhenTimeIsOverWhileItsHeaderIsWritten(t *testing.T) {
	settles(t)
	over := make(chan struct{})
	server := h2raw(t, func(s rawStream) {
		s.answer(200, "hello")
		<-over // and reads no more
	})
	t.Cleanup(func() { close(over) })
	base := smallBuffers()
	base.Protocols = cleartextHTTP2()
	c := call(t, base)
	c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")

	c.transport = &riphttp.Transport{Base: base, Policy: quick()}
	c.transport.Policy.AttemptTimeout = 100 * time.Millisecond
	c.Transport = c.transport
	var got atomic.Int32
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Add(1) }})
	req := request(t, "POST", server.url, "", nil).WithContext(ctx)
	req.Header.Set("X-Large", strings.Repeat("x", 4<<20))
	_, _, err := c.do(t, req)
	if got.Load() != 1 || !errors.Is(err, riphttp.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("POST was begun on %d connections: %v, want one, ErrOutcomeUnknown and DeadlineExceeded", got.Load(), err)
	}
}
