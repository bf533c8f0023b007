package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/riprap-go/riprap/idempotency"
)

// exampleStore stands for a store of yours: a sqlstore.Store, or an idempotency.Memory for one process.
func exampleStore() idempotency.Store { return newBook(nil, nil) }

// ask sends a request with a key to a handler, and prints the answer.
func ask(h http.Handler, key, body string) {
	r := httptest.NewRequest("POST", "/charges", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	replayed := ""
	if w.Header().Get("Idempotent-Replayed") == "true" {
		replayed = ", replayed"
	}
	fmt.Printf("%d %s%s\n", w.Code, strings.TrimSpace(w.Body.String()), replayed)
}

func ExampleMiddleware_Handler() {
	charges := 0
	handler := idempotency.Middleware{
		Store: exampleStore(),
		Scope: func(r *http.Request) string { return "the customer that " + r.Host + " has authenticated" },
	}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		charges++
		amount, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "charge %d of %s", charges, amount)
	}))
	ask(handler, "key-1", "10 EUR")
	ask(handler, "key-1", "10 EUR")
	ask(handler, "key-2", "10 EUR")
	// Output:
	// 201 charge 1 of 10 EUR
	// 201 charge 1 of 10 EUR, replayed
	// 201 charge 2 of 10 EUR
}

func ExampleSingleTenant() {
	handler := idempotency.Middleware{Store: exampleStore(), Scope: idempotency.SingleTenant}.Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "done") }))
	ask(handler, "key-1", "")
	// Output: 200 done
}

func ExampleDeclare() {
	handler := idempotency.Middleware{Store: exampleStore(), Scope: idempotency.SingleTenant}.Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The provider refused the connection: surely nothing happened, the client may come again with its key.
			idempotency.Declare(r.Context(), idempotency.NoEffect)
			http.Error(w, "the provider is down", http.StatusBadGateway)
		}))
	ask(handler, "key-1", "10 EUR")
	ask(handler, "key-1", "10 EUR")
	// Output:
	// 502 the provider is down
	// 502 the provider is down
}

func ExampleFromContext() {
	_, ok := idempotency.FromContext(context.Background())
	fmt.Println(ok)
	// Output: false
}

func ExampleChildKey() {
	handler := idempotency.Middleware{Store: exampleStore(), Scope: idempotency.SingleTenant}.Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out, err := http.NewRequestWithContext(r.Context(), "POST", "http://provider.test/charges", r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			// The same key in every run of this request, so that the provider charges once.
			out.Header.Set("Idempotency-Key", idempotency.ChildKey(r.Context(), "charge"))
			fmt.Fprint(w, len(out.Header.Get("Idempotency-Key")), " characters")
		}))
	ask(handler, "key-1", "10 EUR")
	// Output: 200 43 characters
}

func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "id" {
				return slog.Attr{}
			}
			return a
		},
	}))
	handler := idempotency.Middleware{Store: exampleStore(), Scope: idempotency.SingleTenant, Observe: idempotency.Log(logger)}.Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			idempotency.Declare(r.Context(), idempotency.Unknown)
			w.WriteHeader(http.StatusGatewayTimeout)
		}))
	ask(handler, "key-1", "10 EUR")
	// Output:
	// level=WARN msg="idempotency key needs attention" kind=suspended operation=POST status=504
	// 504
}

func ExampleReplayable() {
	for _, field := range []string{"ETag", "set-cookie", "X-RateLimit-Remaining"} {
		fmt.Println(field, idempotency.Replayable(field))
	}
	// Output:
	// ETag true
	// set-cookie false
	// X-RateLimit-Remaining false
}
