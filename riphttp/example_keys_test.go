package riphttp_test

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// A program that must not pay twice stores the key with what it wants to send, and only then sends it. Here the service
// charges, and its answer is lost. The program gives up, or crashes; later it sends what is stored, with the same key.
func ExampleTransport_resume() {
	var mu sync.Mutex
	charged := map[string]int{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if charged[key]++; charged[key] == 1 {
			panic(http.ErrAbortHandler) // after the charge
		}
		charged[key] = 1
		w.Header().Set("Idempotent-Replayed", "true")
		fmt.Fprint(w, "paid")
	}))
	defer service.Close()

	var stored struct{ key, body string } // in a file or a database
	pay := func(transport *riphttp.Transport) error {
		stored.key = cmp.Or(stored.key, rand.Text())
		// ... store it here, before the first send

		req, err := http.NewRequest("POST", service.URL, strings.NewReader(stored.body))
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", stored.key)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		fmt.Println(resp.Status, "replayed:", resp.Header.Get("Idempotent-Replayed"))
		return nil
	}

	stored.body = "100"
	err := pay(&riphttp.Transport{Policy: &riprap.Policy{MaxAttempts: 1}})
	fmt.Println("to be resumed:", errors.Is(err, riphttp.ErrOutcomeUnknown))

	if err := pay(&riphttp.Transport{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("charges:", charged[stored.key])
	// Output:
	// to be resumed: true
	// 200 OK replayed: true
	// charges: 1
}
