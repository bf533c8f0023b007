package demo

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
)

func TestAServerThatIsClosedRunsNoHandlerAnyMore(t *testing.T) {
	begun := make(chan struct{})
	var ended atomic.Bool
	s, err := serve(t.Context(), "127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		for range 1000 {
			runtime.Gosched()
		}
		ended.Store(true)
	}))
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	failed := make(chan error)
	go func() {
		_, err := post(t.Context(), &http.Client{Transport: base}, s.url(), purchase{})
		failed <- err
	}()
	<-begun
	s.close()
	if !ended.Load() {
		t.Error("close returned while a handler was running")
	}
	if err := <-failed; err == nil {
		t.Error("a request under way when the server was closed: got no error, want one")
	}
}
