package riphttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// soon keeps the waits of the examples short.
var soon = riprap.Backoff{Base: time.Millisecond, Max: time.Millisecond}

// unsteady is a service that fails twice before it answers.
func unsteady() *httptest.Server {
	var tries atomic.Int32
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) <= 2 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "%s with key %q", r.Method, r.Header.Get("Idempotency-Key"))
	}))
}

func show(resp *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.Status+":", strings.TrimSpace(string(body)), err)
}

func ExampleTransport() {
	service := unsteady()
	defer service.Close()

	client := &http.Client{Transport: &riphttp.Transport{Policy: &riprap.Policy{Backoff: soon}}}
	show(client.Get(service.URL))
	// Output: 200 OK: GET with key "" <nil>
}

// A POST is sent again only with a key, by which the service knows that it has met the request before.
func ExampleTransport_newKey() {
	service := unsteady()
	defer service.Close()

	policy := &riprap.Policy{Backoff: soon}
	keyless := &http.Client{Transport: &riphttp.Transport{Policy: policy}}
	show(keyless.Post(service.URL, "text/plain", strings.NewReader("100")))

	keyed := &http.Client{Transport: &riphttp.Transport{
		Policy: policy,
		NewKey: func(*http.Request) string { return "order-17" }, // more often rand.Text()
	}}
	show(keyed.Post(service.URL, "text/plain", strings.NewReader("100")))
	// Output:
	// 503 Service Unavailable: not yet <nil>
	// 200 OK: POST with key "order-17" <nil>
}

// A service of one's own learns how long it may take and that it is asked again. It fails at first.
func ExampleTransport_internal() {
	service := httptest.NewServer(deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if deadline.Attempt(r.Context()) < 2 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		inTime := deadline.Left(r.Context()) < 2*time.Second
		fmt.Fprintf(w, "attempt %d, less than two seconds left: %t", deadline.Attempt(r.Context()), inTime)
	})))
	defer service.Close()

	client := &http.Client{Transport: &riphttp.Transport{
		Policy:   &riprap.Policy{Backoff: soon, AttemptTimeout: 2 * time.Second},
		Internal: func(req *http.Request) bool { return "http://"+req.URL.Host == service.URL },
	}}
	show(client.Get(service.URL))
	// Output: 200 OK: attempt 2, less than two seconds left: true <nil>
}

// One request is sent once; all others keep the Transport's Policy.
func ExampleWithPolicy() {
	service := unsteady()
	defer service.Close()

	policy := &riprap.Policy{Backoff: soon}
	client := &http.Client{Transport: &riphttp.Transport{Policy: policy}}

	once := *policy
	once.MaxAttempts = 1
	req, err := http.NewRequestWithContext(riphttp.WithPolicy(context.Background(), &once), "GET", service.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	show(client.Do(req))
	show(client.Get(service.URL))
	// Output:
	// 503 Service Unavailable: not yet <nil>
	// 200 OK: GET with key "" <nil>
}

func ExampleIsRepeatable() {
	for _, method := range []string{"GET", "PUT", "POST"} {
		req := httptest.NewRequest(method, "http://inventory.test/items/7", nil)
		fmt.Println(method, riphttp.IsRepeatable(req))
	}
	// Output:
	// GET true
	// PUT true
	// POST false
}
