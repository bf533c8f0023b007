package audit

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
)

// TestMain makes the test binary a client, too: "audit.test client KIND ARG...".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "client" {
		os.Exit(client(os.Args[2], os.Args[3:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or each client takes a second more to end
	os.Exit(m.Run())
}

// self is a command that runs the client of the kind.
func self(kind string, args ...string) []string {
	return append([]string{os.Args[0], "client", kind}, args...)
}

func client(kind string, args []string) int {
	switch kind {
	case "careful": // it tries again after 503, at once and twice
		return get(args[0], func(status int) bool { return status == http.StatusServiceUnavailable })
	case "careless": // whatever the answer is
		return get(args[0], func(status int) bool { return status >= 400 })
	case "broken": // it says what it was given, and makes no call
		for _, arg := range args {
			fmt.Fprintln(os.Stderr, "cannot do", arg)
		}
		return 3
	case "copy":
		text, err := os.ReadFile(args[0])
		if err == nil {
			err = os.WriteFile(args[1], append(text, args[0]...), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func get(url string, again func(status int) bool) int {
	for range 3 {
		resp, err := http.Get(url)
		if err != nil {
			return 1
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if !again(resp.StatusCode) {
			return 0
		}
	}
	return 1
}
