package effects

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
)

// faults says how many in a thousand requests meet which fault. It stands for all that lies between a client and a handler.
type faults struct {
	Refused  int // 503, and nothing runs
	Reset    int // the connection is reset, and nothing runs
	Late     int // the request arrives when its client has given up
	Slow     int // the handler begins its work when the client has given up
	Lost     int // the connection is reset instead of the answer
	Cut      int // or in the middle of it
	Withheld int // the answer does not come until the client has given up
}

// among picks the fault for a number below 1000, as the handler that brings it about; nil for none.
func (f faults) among(n int) func(next http.Handler, w http.ResponseWriter, r *http.Request) {
	for _, fault := range []struct {
		share int
		serve func(next http.Handler, w http.ResponseWriter, r *http.Request)
	}{
		{f.Refused, refused}, {f.Reset, reset}, {f.Late, late}, {f.Slow, slow}, {f.Lost, lost}, {f.Cut, cut}, {f.Withheld, withheld},
	} {
		if n < fault.share {
			return fault.serve
		}
		n -= fault.share
	}
	return nil
}

// between puts the faults in front of a handler: the same ones in the same order for a seed.
func (f faults) between(seed uint64, next http.Handler) http.Handler {
	var requests atomic.Uint64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := buffered(r)
		if err != nil {
			return // the client is gone
		}
		script := rand.New(rand.NewPCG(seed, requests.Add(1)))
		if fault := f.among(script.IntN(1000)); fault != nil {
			fault(next, w, r)
			return
		}
		through(next, w, r)
	})
}

func refused(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

func reset(_ http.Handler, w http.ResponseWriter, _ *http.Request) { breakOff(w, nil) }

func late(next http.Handler, _ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	through(next, httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
}

func slow(next http.Handler, w http.ResponseWriter, r *http.Request) {
	through(next, w, r.WithContext(context.WithValue(r.Context(), lingerKey{}, r.Context().Done())))
}

func lost(next http.Handler, w http.ResponseWriter, r *http.Request) {
	through(next, httptest.NewRecorder(), r)
	breakOff(w, nil)
}

func cut(next http.Handler, w http.ResponseWriter, r *http.Request) {
	whole := httptest.NewRecorder()
	through(next, whole, r)
	breakOff(w, whole)
}

func withheld(next http.Handler, _ http.ResponseWriter, r *http.Request) {
	through(next, httptest.NewRecorder(), r)
	<-r.Context().Done()
}

type lingerKey struct{}

// linger lets a handler wait for its client to give up, if that is the fault at hand.
func linger(ctx context.Context) {
	if gone, ok := ctx.Value(lingerKey{}).(<-chan struct{}); ok {
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
}

// breakOff resets the connection, after half of an answer if there is one.
func breakOff(w http.ResponseWriter, whole *httptest.ResponseRecorder) {
	if whole != nil {
		w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
		w.WriteHeader(whole.Code)
		w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		http.NewResponseController(w).Flush()
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}
