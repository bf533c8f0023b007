package riphttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
)

func requestTo(url string) *http.Request { return httptest.NewRequest("GET", url, nil) }

func TestDestinationIsSchemeAndHostUnlessNamed(t *testing.T) {
	first := func(r *http.Request) string { return "first" }
	for _, test := range []struct {
		name   func(*http.Request) string
		url    string
		want   string
		sameAs string
	}{
		{nil, "http://a.test/x", "http://a.test", "http://a.test/y?z"},
		{nil, "http://A.test:80/", "http://a.test", "HTTP://a.test/"},
		{nil, "https://a.test:443/", "https://a.test", "https://a.test/"},
		{nil, "https://a.test:80/", "https://a.test:80", "https://u:p@a.test:80/"},
		{nil, "http://[::1]:8080/", "http://[::1]:8080", "http://[::1]:8080/x"},
		{first, "http://a.test/", "first", "http://b.test/"},
	} {
		transport := &Transport{Destination: test.name}
		got := transport.destination(requestTo(test.url))
		if got.name != test.want {
			t.Errorf("%s is called %q, want %q", test.url, got.name, test.want)
		}
		transport.destination(requestTo("http://between.test/"))
		if again := transport.destination(requestTo(test.sameAs)); again != got {
			t.Errorf("%s and %s are two destinations, want one", test.url, test.sameAs)
		}
	}
	transport := new(Transport)
	for _, url := range []string{"http://a.test", "https://a.test", "http://a.test:8080", "http://b.test"} {
		transport.destination(requestTo(url))
	}
	if n := len(transport.destinations.table); n != 4 {
		t.Errorf("%d destinations, want four: scheme, host and port count", n)
	}
}

func TestTableOfDestinationsIsBounded(t *testing.T) {
	transport := new(Transport)
	req := requestTo("http://host.test/")
	for i := range 100_000 {
		req.URL.Host = strconv.Itoa(i) + ".test"
		transport.destination(req)
		if n := len(transport.destinations.table); n > maxDestinations {
			t.Fatalf("after %d hosts the table has %d, want at most %d", i+1, n, maxDestinations)
		}
	}
	if n := len(transport.destinations.table); n < maxDestinations/4 {
		t.Errorf("the table has %d destinations, want it to be used", n)
	}
}

func TestBusyDestinationOutlivesThePassingOnes(t *testing.T) {
	transport := new(Transport)
	busy := transport.destination(requestTo("http://busy.test/"))
	for i := range maxDestinations - 1 {
		transport.destination(requestTo(fmt.Sprintf("http://host-%d.test/", i)))
	}
	for _, d := range transport.destinations.table {
		d.used.Store(false)
	}
	transport.destination(requestTo("http://busy.test/"))
	transport.destination(requestTo("http://one-more.test/"))
	if transport.destination(requestTo("http://busy.test/")) != busy {
		t.Error("the busy destination was forgotten for those that nobody calls")
	}
	if n := len(transport.destinations.table); n != 2 {
		t.Errorf("the table has %d destinations, want the busy one and the new one", n)
	}
}

func TestIdleDestinationLeavesAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := new(Transport)
		for i := range 10 {
			transport.destination(requestTo(fmt.Sprintf("http://idle-%d.test/", i)))
		}
		busy := transport.destination(requestTo("http://busy.test/"))
		for i := range 3 {
			time.Sleep(idleTime + time.Second)
			transport.destination(requestTo("http://busy.test/"))
			transport.destination(requestTo(fmt.Sprintf("http://new-%d.test/", i)))
			transport.destination(requestTo(fmt.Sprintf("http://more-%d.test/", i))) // too early for another sweep
		}
		if transport.destinations.table[busy.service] != busy {
			t.Error("the busy destination has left")
		}
		for s := range transport.destinations.table {
			if s.host[:4] == "idle" {
				t.Errorf("%v is still there", s)
			}
		}
	})
}

func TestDestinationsShareABudgetAboveTheirOwn(t *testing.T) {
	transport := new(Transport)
	a, b := transport.destination(requestTo("http://a.test/")), transport.destination(requestTo("http://b.test/"))
	if a.budget.Parent == nil || a.budget.Parent != b.budget.Parent || a.budget.Parent.Reserve != sharedReserve {
		t.Errorf("parents %p and %p, want one with a reserve of %d", a.budget.Parent, b.budget.Parent, sharedReserve)
	}
	if a.policy.Budget != &a.budget {
		t.Error("a destination does not use its budget")
	}
	own := &riprap.Budget{}
	transport = &Transport{Policy: &riprap.Policy{Budget: own}}
	if got := transport.destination(requestTo("http://a.test/")).policy.Budget; got != own {
		t.Error("the policy names a budget, and the destination uses another")
	}
}

// A server may send a client to as many hosts as it likes, under names and URLs as long as it likes.
func TestDestinationKeepsNoMoreThanAName(t *testing.T) {
	transport := new(Transport)
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	long, before := strings.Repeat("x", 100_000), heap()
	for i := range 500 {
		transport.destination(requestTo(fmt.Sprintf("http://host-%d.test/%s", i, long)))
		transport.destination(requestTo(fmt.Sprintf("http://long-%d.%s/", i, long)))
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("a thousand destinations take %d MB, want what their names need", grown>>20)
	}
	if n := len(transport.destinations.table); n != 1000 {
		t.Errorf("%d destinations, want a thousand", n)
	}
	if d := transport.destination(requestTo("http://" + long + "/")); len(d.name) > len("http://")+maxName {
		t.Errorf("a name has %d bytes, want %d at most", len(d.name), len("http://")+maxName)
	}
}
