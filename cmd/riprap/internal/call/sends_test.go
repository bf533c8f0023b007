package call

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/internal/memhttp"
)

// repeating is a service whose first connection answers 503 and breaks at the next request. That net/http sends again by
// itself, on a connection of its own, where it gets the last answer.
func repeating(last string) *memhttp.Script {
	return memhttp.Play(func(n int, p *memhttp.Peer) {
		if n == 1 {
			p.ReadRequest()
			p.Say("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			p.ReadRequest()
			return
		}
		for p.ReadRequest() != nil && last != "" {
			p.Say(last)
		}
	})
}

func TestWhatNetHTTPSentAgainIsSaid(t *testing.T) {
	const first = "attempt 1: 503 · waiting 338ms (retry 1 of 2, budget 9 left)"
	for last, want := range map[string][]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n": {first,
			"attempt 2: 200 · sent 2 times by net/http · answered after 338ms"},
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n": {first,
			"attempt 2: 404 · sent 2 times by net/http · not retried: a repeat would not change it, 338ms in all"},
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n": {first,
			"attempt 2: 503 · sent 2 times by net/http · waiting 675ms (retry 2 of 2, budget 8 left)",
			"attempt 3: 503 · gave up: no attempts left (3 of 3), 1.01s in all"},
		"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n": {first,
			"attempt 2: 302 · sent 2 times by net/http · gave up: where it leads makes no sense"},
		"": {first,
			"attempt 2: connection closed without an answer · sent 2 times by net/http · waiting 675ms (retry 2 of 2, budget 8 left)",
			"attempt 3: connection closed without an answer · gave up: no attempts left (3 of 3), 1.01s in all"},
	} {
		synctest.Test(t, func(t *testing.T) {
			service := repeating(last)
			base := service.Transport()
			r := makeCall(t.Context(), t, base, "-L", "--attempts", "3", memhttp.URL)
			base.CloseIdleConnections()
			service.Stop()
			compare(t, "stderr", r.stderr, want...)
		})
	}
}

func TestEventsCountWhatNetHTTPSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := repeating("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		base := service.Transport()
		r := makeCall(t.Context(), t, base, "--json", memhttp.URL)
		base.CloseIdleConnections()
		service.Stop()
		if want := `"event":"answer","elapsed_seconds":0.3375,"service":"http://memory.test","attempt":2,"sends":3,`; !strings.Contains(r.stderr, want) {
			t.Errorf("got no answer of three sends in two attempts:\n%s", r.stderr)
		}
	})
}
