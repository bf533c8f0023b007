package deadline_test

import (
	"net/http"
	"net/http/httptest"

	"github.com/riprap-go/riprap/deadline"
)

// serve lets a handler behind a middleware answer a request with these names and values of header fields.
func serve(m deadline.Middleware, h http.HandlerFunc, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	m.Handler(h).ServeHTTP(w, r)
	return w
}

// retryVerdict returns what an answer says about trying again, "-" for nothing.
func retryVerdict(w *httptest.ResponseRecorder) string {
	if values, ok := w.Result().Header["X-Should-Retry"]; ok {
		return values[0]
	}
	return "-"
}
