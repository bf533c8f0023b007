package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// each runs test with every configuration of every library.
func each(t *testing.T, test func(*testing.T, doer)) {
	for library, configurations := range libraries {
		for name, configured := range configurations {
			t.Run(library+" "+name, func(t *testing.T) { test(t, configured()) })
		}
	}
}

func TestEveryLibrarySendsWhatItIsTold(t *testing.T) {
	var method, body string
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the body: %v", err)
		}
		method, body, header = r.Method, string(sent), r.Header
	}))
	defer server.Close()

	each(t, func(t *testing.T, do doer) {
		if err := call(do, "POST", server.URL, "hello", "K", "T"); err != nil {
			t.Fatalf("a POST: %v", err)
		}
		if method != "POST" || body != "hello" || header.Get("Idempotency-Key") != "K" ||
			header.Get("Authorization") != "Bearer T" || header.Get("Content-Type") != "text/plain" {
			t.Errorf("a POST arrived as %s %q %v", method, body, header)
		}
		if err := call(do, "", server.URL, "", "", ""); err != nil {
			t.Fatalf("a call without a method: %v", err)
		}
		if method != "GET" || body != "" || header["Idempotency-Key"] != nil || header["Authorization"] != nil || header["Content-Type"] != nil {
			t.Errorf("a call without a method arrived as %s %q %v", method, body, header)
		}
	})
}

func TestEveryLibraryReportsAnAnswerThatIsNoSuccess(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	each(t, func(t *testing.T, do doer) {
		if err := call(do, "GET", server.URL, "", "", ""); err == nil {
			t.Error("a GET that was answered 404 gave no error")
		}
	})
}

func TestRepeatMakesAllCallsAndTellsOfAFailure(t *testing.T) {
	for _, failing := range []int64{0, 1, 45} { // which call fails, if any
		var made atomic.Int64
		failed := repeat(45, func() error {
			if made.Add(1) == failing {
				return errors.New("the call failed on purpose")
			}
			return nil
		})
		if made.Load() != 45 || failed != (failing > 0) {
			t.Errorf("repeat(45) with failure %d made %d calls and gave %v", failing, made.Load(), failed)
		}
	}
}
