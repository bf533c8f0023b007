// Goclient makes HTTP calls with one of several Go libraries, so that riprap audit can watch what they do:
//
//	goclient LIBRARY CONFIGURATION METHOD URL BODY KEY TOKEN CALLS
//
// CONFIGURATION is default or docs. METHOD and what follows URL may be empty or left out: a GET, no body, no Idempotency-Key,
// no Authorization, one call. The exit status is 0 if every answer was a 2xx, 1 if not, 2 if the arguments make no sense.
package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

func main() {
	args := make([]string, 8)
	if len(os.Args) < 5 || copy(args, os.Args[1:]) < len(os.Args)-1 {
		usage("goclient LIBRARY CONFIGURATION METHOD URL BODY KEY TOKEN CALLS")
	}
	configured := libraries[args[0]][args[1]]
	if configured == nil {
		usage(fmt.Sprintf("no library %q with a configuration %q", args[0], args[1]))
	}
	calls, err := strconv.Atoi(cmp.Or(args[7], "1"))
	if err != nil || calls < 1 {
		usage(fmt.Sprintf("CALLS is %q", args[7]))
	}

	do := configured()
	failed := repeat(calls, func() error {
		return call(do, args[2], args[3], args[4], args[5], args[6])
	})
	if failed {
		os.Exit(1)
	}
}

func usage(problem string) {
	fmt.Fprintln(os.Stderr, "goclient:", problem)
	os.Exit(2)
}

// repeat makes so many calls at once and tells whether one failed.
func repeat(calls int, call func() error) (failed bool) {
	var failures atomic.Int64
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if err := call(); err != nil {
				failures.Add(1)
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	all.Wait()
	return failures.Load() > 0
}

// call makes one call and reads its answer to the end. Its error is nil if that was a 2xx.
func call(do doer, method, url, body, key, token string) error {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	req, err := http.NewRequest(cmp.Or(method, http.MethodGet), url, sent)
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "text/plain")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}
