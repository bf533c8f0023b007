package riphttp_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func TestSnapshotsSayWhatIsKnownOfEachService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := "http://fast.test/", "http://slow.test/"
		base := &stub{play: func(_ int, r *http.Request) (*http.Response, error) {
			took := 5 * time.Millisecond
			if r.URL.Host == "slow.test" {
				took = 80 * time.Millisecond
			}
			time.Sleep(took)
			return reply(200, "")(), nil
		}}
		transport := &riphttp.Transport{Base: base, Adaptive: true}
		if got := transport.Snapshots(time.Now()); len(got) != 0 {
			t.Errorf("before any call Snapshots = %+v, want none", got)
		}
		for range 250 {
			for _, url := range []string{slow, fast} {
				wantAnswer(t, transport, newRequest(t, "GET", url, nil), 200, "")
			}
		}
		time.Sleep(time.Second)
		wantAnswer(t, transport, newRequest(t, "GET", slow, nil), 200, "")

		got := transport.Snapshots(time.Now())
		names := slices.Collect(func(yield func(string) bool) {
			for _, s := range got {
				yield(s.Name)
			}
		})
		if want := []string{"http://fast.test", "http://slow.test"}; !slices.Equal(names, want) {
			t.Fatalf("Snapshots are of %v, want %v", names, want)
		}
		if l := got[1].Latency; l.Count != 251 || l.P99 < 79*time.Millisecond || l.P99 > 81*time.Millisecond || l.Bound < 237*time.Millisecond {
			t.Errorf("the slow service's latency is %+v, want 251 of 80ms and a bound of three times that", l)
		}
		if l := got[0].Latency; l.P99 > 6*time.Millisecond {
			t.Errorf("the fast service's latency is %+v, want 5ms", l)
		}
		if got[0].Retries < 10 {
			t.Errorf("the fast service's budget has %d retries left, want its reserve of 10 at least", got[0].Retries)
		}
	})
}

func TestSnapshotsWithoutLatencyAndLimit(t *testing.T) {
	base := &stub{play: func(int, *http.Request) (*http.Response, error) { return reply(200, "")(), nil }}
	transport := &riphttp.Transport{Base: base, Policy: &riprap.Policy{Budget: &riprap.Budget{Ratio: math.Inf(1)}}}
	wantAnswer(t, transport, newRequest(t, "GET", serviceURL, nil), 200, "")
	want := []riphttp.Snapshot{{Name: "http://service.test", Retries: math.MaxInt}}
	if got := transport.Snapshots(time.Now()); !slices.Equal(got, want) {
		t.Errorf("Snapshots = %+v, want %+v", got, want)
	}
}

func TestSnapshotsShowTheLatencyThatAPolicyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := &riprap.Latency{}
		transport := &riphttp.Transport{Base: pace(5 * time.Millisecond), Adaptive: true, Policy: &riprap.Policy{Latency: named}}
		calls(t, transport, "GET", serviceURL, 3)
		got := transport.Snapshots(time.Now())
		if want := named.Snapshot(time.Now()); len(got) != 1 || got[0].Latency != want || want.Count != 3 {
			t.Errorf("Snapshots = %+v, want the latency %+v of 3 calls", got, want)
		}
	})
}

func ExampleTransport_Snapshots() {
	service := unsteady()
	defer service.Close()

	transport := &riphttp.Transport{
		Policy:      &riprap.Policy{Backoff: soon},
		Destination: func(*http.Request) string { return "orders" },
	}
	client := &http.Client{Transport: transport}
	show(client.Get(service.URL))
	for _, s := range transport.Snapshots(time.Now()) {
		fmt.Println(s.Name, "has", s.Retries, "retries left")
	}
	// Output:
	// 200 OK: GET with key "" <nil>
	// orders has 8 retries left
}
