package flaky_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/riprap-go/riprap/flaky"
)

// A server fails twice and then answers. Its log says what the client did about it.
func ExampleNew() {
	h, err := flaky.New(`503 retry-after=0, cut=5 body="hello, world", 200 body=hello`)
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()

	for range 3 {
		resp, err := http.Get(server.URL + "/greeting")
		if err != nil {
			panic(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%d %q %v\n", resp.StatusCode, body, err)
	}
	for _, a := range h.Arrivals("") {
		fmt.Println(a.Method, a.Path, "·", a.Step)
	}
	// Output:
	// 503 "503 Service Unavailable\n" <nil>
	// 200 "hello" unexpected EOF
	// 200 "hello" <nil>
	// GET /greeting · 503 retry-after=0
	// GET /greeting · cut=5 body="hello, world"
	// GET /greeting · 200 body=hello
}

// Tests that run side by side share a server, each with a script of its own.
func ExampleHandler_Run() {
	h, err := flaky.New("200")
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()

	if err := h.Run("orders", "/create: 429; 404"); err != nil {
		panic(err)
	}
	resp, err := http.Get(server.URL + "/~orders/create")
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, h.Arrivals("orders")[0].Path)
	// Output: 429 /create
}

// The error of a script shows where it is wrong.
func ExampleScriptError() {
	_, err := flaky.New("503*2, 429 retry-aftr=1")
	if bad, ok := errors.AsType[*flaky.ScriptError](err); ok {
		fmt.Println(bad.Column, bad.Problem)
	}
	// Output: 12 unknown option "retry-aftr", did you mean "retry-after"?
}
