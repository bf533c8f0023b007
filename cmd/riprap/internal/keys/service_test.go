package keys

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
)

// From the request whose handler does not know what became of it to the answer that its client gets in the end.
func TestClientGetsTheAnswerThatTheOperatorGave(t *testing.T) {
	each(t, func(t *testing.T, b *base) {
		b.migrate(t)
		runs, sentOn := 0, ""
		h := idempotency.Middleware{
			Store: b, Scope: func(*http.Request) string { return "customer 7" }, Observe: func(context.Context, idempotency.Event) {},
		}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs++
			sentOn = idempotency.ChildKey(r.Context(), "charge")
			idempotency.Declare(r.Context(), idempotency.Unknown) // the provider did not answer
			w.WriteHeader(http.StatusBadGateway)
		}))
		send := func() *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/charges", strings.NewReader("100"))
			r.Header.Set("Idempotency-Key", `"key-17"`)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		send()
		if w := send(); w.Code != http.StatusConflict || runs != 1 {
			t.Fatalf("the request sent again: got %d after %d runs, want 409 after one", w.Code, runs)
		}
		which := []string{"--store", b.dsn, "--scope", "customer 7", "--operation", "POST /charges", "--key-file", "-"}
		if out, err := typed(t, "key-17", append([]string{"show", "--child", "charge"}, which...)...); err != nil || out != sentOn+"\n" {
			t.Errorf("show --child charge: got %q, %v, want the key that the handler sent on with, %q", out, err, sentOn)
		}
		if _, err := typed(t, "key-17", append([]string{"resolve", "--status", "201", "--header", "Location: /charges/17"}, which...)...); err != nil {
			t.Fatal(err)
		}
		w := send()
		if got := w.Result().Header; w.Code != 201 || got.Get("Location") != "/charges/17" || got.Get("Idempotent-Replayed") != "true" || runs != 1 {
			t.Errorf("the request sent after that: got %d %v after %d runs, want the operator's answer and no run", w.Code, got, runs)
		}
	})
}
