package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// visits sends five requests, a tenth of a second apart, to a service whose work takes a second. Their callers wait for
// two and a half seconds. It returns what became of each, in the order in which that happened.
func visits(a sim.Admission) (log []string, r *Result) {
	o := &sim.Scenario{
		Services: []sim.Service{{Kind: sim.Queue, Work: sim.Spread{Mean: s}, Admission: a}},
		Length:   20 * s,
	}
	ctx, end := context.WithCancel(context.Background())
	tally := newTally(o, 1)
	v := newService(o, &sim.Candidate{}, tally, rand.New(rand.NewPCG(1, 1)))
	var worker, callers sync.WaitGroup
	worker.Go(func() { v.run(ctx) })
	synctest.Wait()

	var mu sync.Mutex
	for i := range 5 {
		callers.Go(func() {
			time.Sleep(time.Duration(i) * s / 10)
			ctx, cancel := context.WithTimeout(ctx, 5*s/2)
			defer cancel()
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			stamp(req.Header, tally.now(), tally.now()+5*s/2)
			w := httptest.NewRecorder()
			what := "left"
			func() {
				defer func() { recover() }() // from the abort for a caller that has left
				v.ServeHTTP(w, req)
				what = fmt.Sprint(w.Code)
			}()
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf("%d %s", i+1, what))
		})
	}
	callers.Wait()
	time.Sleep(10 * s)
	end()
	v.mu.Lock()
	v.over = true
	v.mu.Unlock()
	v.more.Broadcast()
	worker.Wait()
	return log, tally.result()
}

func TestServiceWorksForWhomItsAdmissionSays(t *testing.T) {
	for _, c := range []struct {
		name      string
		admission sim.Admission
		want      string
		served    int
		wasted    int
		dropped   int
		refused   int
	}{
		{"for all, and cannot tell who has left", sim.Admission{}, "1 200, 2 200, 3 left, 4 left, 5 left", 5, 3, 0, 0},
		{"for the youngest first", sim.Admission{LIFO: true}, "1 200, 5 200, 2 left, 3 left, 4 left", 5, 3, 0, 0},
		{"for two at most", sim.Admission{Room: 1}, "3 503, 4 503, 5 503, 1 200, 2 200", 2, 0, 0, 3},
		{"for one, without a queue", sim.Admission{Room: -1}, "2 503, 3 503, 4 503, 5 503, 1 200", 1, 0, 0, 4},
		{"for those who have time", sim.Admission{Drop: true, Margin: s}, "1 200, 2 200, 3 left, 4 left, 5 left", 2, 0, 3, 0},
		{"for those who have not left", sim.Admission{Cancels: true}, "1 200, 2 200, 3 left, 4 left, 5 left", 3, 1, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, r := visits(c.admission)
				if got := strings.Join(log, ", "); got != c.want {
					t.Errorf("callers: %s; want %s", got, c.want)
				}
				if r.Served != c.served || r.Wasted != c.wasted || r.Dropped != c.dropped || r.Refused != c.refused {
					t.Errorf("served, wasted, dropped, refused = %d, %d, %d, %d; want %d, %d, %d, %d", r.Served, r.Wasted,
						r.Dropped, r.Refused, c.served, c.wasted, c.dropped, c.refused)
				}
				if r.Latest != 0 {
					t.Errorf("Latest = %v on a machine that is never late, want 0", r.Latest)
				}
			})
		})
	}
}

// An end of the cut that is early or late by a bit would still look right in a whole run.
func TestCutHoldsWhatIsSentAndDeliversIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outage(10, 20, 4*s, 20*s) // from 3 s to 7 s
		v := newService(o, &ours, newTally(o, 2), nil)
		client, server := net.Pipe()
		defer client.Close()
		c := &conn{server, func() { v.hold(t.Context()) }}
		defer c.Close()
		var writer sync.WaitGroup
		defer writer.Wait()
		writer.Go(func() {
			for range 3 {
				client.Write([]byte("x"))
				time.Sleep(s)
			}
		})
		var got []time.Duration
		for range 3 {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			got = append(got, v.tally.now())
		}
		// At twice the speed they are sent at 0, 2 and 4 seconds.
		if want := []time.Duration{0, 2 * s, 7 * s}; !slices.Equal(got, want) {
			t.Errorf("read at %v, want %v", got, want)
		}
	})
}
