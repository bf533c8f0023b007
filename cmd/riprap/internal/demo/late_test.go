package demo

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestAHopThatTakesLongIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(2 * time.Second)
		var got http.Header
		h := timed(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }), tally)
		sent := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		sent.Header.Set("X-Customer", "shopper 1")
		s := &stamp{roundTrip(func(req *http.Request) (*http.Response, error) {
			if len(sent.Header) != 1 {
				t.Errorf("a hop: the sender's header is %v, want it as it was", sent.Header)
			}
			time.Sleep(700 * time.Millisecond) // on the way
			h.ServeHTTP(httptest.NewRecorder(), req)
			return nil, http.ErrAbortHandler
		}), tally}
		s.RoundTrip(sent)
		if len(got) != 1 {
			t.Errorf("a hop: the receiver's header is %v, want it as if nothing was measured", got)
		}
		time.Sleep(step)
		if late := measure(standard(300), tally.read(), account{}).Late; late != 700*time.Millisecond {
			t.Errorf("a hop of 700ms makes the run %v late, want 700ms", late)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestAStoreThatTakesLongIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(2 * time.Second)
		keys := &timedKeys{&idempotency.Memory{}, tally}
		begun := tally.now()
		time.Sleep(600 * time.Millisecond)
		keys.note(begun)
		claim := idempotency.Claim{ID: idempotency.NewID("shopper 1", "POST /charges", "k"), Fingerprint: []byte("f"), Lease: time.Minute, Retention: time.Hour}
		got, err := keys.Claim(t.Context(), claim)
		if err != nil || got.Verdict != idempotency.ClaimWon {
			t.Errorf("Claim = %v, %v, want the store's answer", got.Verdict, err)
		}
		if err := keys.Complete(t.Context(), claim.Ticket(got.Generation), idempotency.Answer{Status: 200}, time.Hour); err != nil {
			t.Errorf("Complete = %v, want no error", err)
		}
		time.Sleep(step)
		if late := measure(standard(300), tally.read(), account{}).Late; late != 600*time.Millisecond {
			t.Errorf("a step of 600ms makes the run %v late, want 600ms", late)
		}
	})
}
