package call

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/flaky"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// A result is what came of a call.
type result struct {
	stdout, stderr string
	err            error
}

// code is the exit code. An error that is none of those that the command prints by itself is shown.
func (r result) code(t *testing.T) int {
	t.Helper()
	if r.err != nil && !errors.Is(r.err, exit.ErrNotFine) {
		t.Errorf("got error %v, want none or ErrNotFine", r.err)
	}
	return exit.Code(r.err)
}

// make makes the call that the arguments ask for. Every draw of the jitter is 0.325: full jitter takes 0.675 of its
// limit, and what the server asks for becomes 1.065 of it.
func makeCall(ctx context.Context, t *testing.T, base http.RoundTripper, args ...string) result {
	t.Helper()
	o, err := parse(ctx, args, strings.NewReader("from stdin"))
	if err != nil {
		t.Fatalf("parse(%q): got error %v, want none", args, err)
	}
	o.policy.Rand = func() float64 { return 0.325 }
	var stdout, stderr bytes.Buffer
	err = o.do(ctx, base, &stdout, &stderr)
	return result{stdout.String(), stderr.String(), err}
}

func script(t *testing.T, text string) *flaky.Handler {
	t.Helper()
	h, err := flaky.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// inMemory makes a call to a handler in fake time. Arguments are separated by blanks; URL stands for the server's.
func inMemory(t *testing.T, h http.Handler, args string) (r result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := memhttp.Serve(h)
		base := server.Transport()
		base.DisableCompression = true
		r = makeCall(t.Context(), t, base, strings.Fields(strings.ReplaceAll(args, "URL", memhttp.URL))...)
		base.CloseIdleConnections()
		server.Stop()
	})
	return r
}

// compare compares what a call printed, line by line.
func compare(t *testing.T, what, got string, want ...string) {
	t.Helper()
	text := ""
	if len(want) > 0 {
		text = strings.Join(want, "\n") + "\n"
	}
	if got != text {
		t.Errorf("%s: got\n%swant\n%s", what, got, text)
	}
}
