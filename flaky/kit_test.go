package flaky

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func newHandler(t testing.TB, script string) *Handler {
	t.Helper()
	h, err := New(script)
	if err != nil {
		t.Fatalf("New(%q) = %v", script, err)
	}
	return h
}

// serveOn answers a request without any network.
func serveOn(h *Handler, method, path string, body io.Reader, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, body)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// listen serves on a real socket and returns the base URL.
func listen(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// one returns the only arrival of a run.
func one(t *testing.T, h *Handler, run string) Arrival {
	t.Helper()
	list := h.Arrivals(run)
	if len(list) != 1 {
		t.Fatalf("Arrivals(%q) = %d arrivals, want 1", run, len(list))
	}
	return list[0]
}
