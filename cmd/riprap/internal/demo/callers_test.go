package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A script is a RoundTripper that answers with the codes and bodies given, one after another and the last one for ever, and
// notes when it was asked and with which key.
type script struct {
	codes  []int // zero: no answer before the request's context ends; less: the connection breaks
	bodies []string
	start  time.Time
	asked  []time.Duration
	keys   []string
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, req.Body)
	req.Body.Close()
	s.asked = append(s.asked, time.Since(s.start))
	s.keys = append(s.keys, req.Header.Get("Idempotency-Key"))
	code := s.codes[min(len(s.asked), len(s.codes))-1]
	switch {
	case code == 0:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case code < 0:
		return nil, io.ErrUnexpectedEOF
	}
	body := ""
	if len(s.bodies) > 0 {
		body = s.bodies[min(len(s.asked), len(s.bodies))-1]
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

type maker func(scenario, http.RoundTripper, *tally) sender

// try makes one click in the standard scenario against a script of answers, for a shopper of the patience given. It returns
// when the service was asked, how many retries were counted and what the shopper is told.
func try(t *testing.T, make maker, patience time.Duration, codes []int) (asked []time.Duration, retries int, got told) {
	t.Helper()
	s := standard(300)
	tally := newTally(s.Length)
	base := &script{codes: codes, start: time.Now()}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got = make(s, base, tally)(ctx, "http://service/", newPurchase("shopper 1", 1)).told
	time.Sleep(step) // until the bin of the last retry is full
	b := tally.read()
	return base.asked, b.sum(retried, 0, len(b)), got
}

func TestTheNaiveLoopDoublesItsWaitsWithoutJitter(t *testing.T) {
	const ms, patient = time.Millisecond, time.Minute
	standards := standard(300).Patience
	tests := map[string]struct {
		codes    []int
		patience time.Duration
		want     []time.Duration
		told     told
	}{
		"an answer is final":            {[]int{200}, patient, []time.Duration{0}, paid},
		"a failure is tried again":      {[]int{503, 200}, patient, []time.Duration{0, 500 * ms}, paid},
		"a lost answer too":             {[]int{-1, 200}, patient, []time.Duration{0, 500 * ms}, paid},
		"Retry-After is not read":       {[]int{429, 200}, patient, []time.Duration{0, 500 * ms}, paid},
		"attempts are limited":          {[]int{503}, patient, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms}, failure},
		"no answer is a failure":        {[]int{-1}, patient, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms}, failure},
		"an attempt may take a second":  {[]int{0, 200}, patient, []time.Duration{0, 1500 * ms}, paid},
		"the caller's patience is kept": {[]int{0}, standards, []time.Duration{0, 1500 * ms, 3500 * ms}, failure},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, retries, got := try(t, naive, tt.patience, tt.codes)
				if !slices.Equal(asked, tt.want) || got != tt.told {
					t.Errorf("naive against %v: asked at %v, told %q, want %v and %q", tt.codes, asked, words[got], tt.want, words[tt.told])
				}
				if want := len(tt.want) - 1; retries != want {
					t.Errorf("naive against %v: counted %d retries, want %d", tt.codes, retries, want)
				}
			})
		})
	}
}

func TestRiprapKeepsTheSameLimitsAsTheNaiveLoop(t *testing.T) {
	const patient = time.Minute
	standards := standard(300).Patience
	tests := map[string]struct {
		codes       []int
		patience    time.Duration
		least, most int           // attempts
		within      time.Duration // the last attempt begins
		told        told
	}{
		"an answer is final":            {[]int{200}, patient, 1, 1, 0, paid},
		"a failure is tried again":      {[]int{503, 200}, patient, 2, 2, 1200 * time.Millisecond, paid},
		"attempts are limited":          {[]int{500}, patient, 4, 4, 4400 * time.Millisecond, failure}, // two waits as asked, and its own
		"an attempt may take a second":  {[]int{0, 200}, patient, 2, 2, 1500 * time.Millisecond, paid},
		"the caller's patience is kept": {[]int{0}, standards, 1, 4, standards, unsure},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, retries, got := try(t, keyed, tt.patience, tt.codes)
				if n := len(asked); n < tt.least || n > tt.most || asked[n-1] > tt.within || got != tt.told {
					t.Errorf("riprap against %v: asked at %v, told %q, want %d to %d attempts within %v and %q",
						tt.codes, asked, words[got], tt.least, tt.most, tt.within, words[tt.told])
				}
				if retries != len(asked)-1 {
					t.Errorf("riprap against %v: counted %d retries, want %d", tt.codes, retries, len(asked)-1)
				}
			})
		})
	}
}

func TestRiprapWaitsAsLongAsTheServiceAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, _, got := try(t, keyed, time.Minute, []int{429, 200})
		if got != paid || len(asked) != 2 {
			t.Fatalf("riprap against a 429: told %q after %d sends, want paid after 2", words[got], len(asked))
		}
		if asked[1] < time.Second || asked[1] > 1200*time.Millisecond {
			t.Errorf("riprap against a 429 with Retry-After 1: came back after %v, want 1s to 1.2s", asked[1])
		}
	})
}

func TestAClickHasOneKeyAndEachClickItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		base := &script{codes: []int{503, 503, 200}}
		buy := keyed(s, base, newTally(s.Length))
		for n := range 2 {
			buy(t.Context(), "http://service/", newPurchase("shopper 1", n))
		}
		if len(base.keys) != 4 || base.keys[0] == "" || base.keys[0] != base.keys[1] || base.keys[1] != base.keys[2] || base.keys[2] == base.keys[3] {
			t.Errorf("a click that is sent three times and one that is sent once: got the keys %q, want one for the first three and another one", base.keys)
		}
	})
}

// A layer that makes no key of its own must not send a purchase twice that came without one.
func TestALayerWithoutAKeySendsAPurchaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, _, got := try(t, withRiprap, time.Minute, []int{-1, 200})
		if len(asked) != 1 || got != unsure {
			t.Errorf("without a key, against a lost answer: %d sends, told %q, want 1 and unknown", len(asked), words[got])
		}
	})
}

func TestRiprapTellsAFailureFromAnUnknownOutcome(t *testing.T) {
	const inFlight = `{"type":"https://github.com/riprap-go/riprap/blob/main/docs/idempotency.md#in-flight"}`
	const lost = `{"type":"https://github.com/riprap-go/riprap/blob/main/docs/proxy.md#outcome-unknown"}`
	tests := map[string]struct {
		codes  []int
		bodies []string
		want   told
	}{
		"turned away":                         {[]int{429}, nil, failure},
		"the service says that it failed":     {[]int{502}, []string{`{"outcome":"failed"}`}, failure},
		"the service says that it is unknown": {[]int{502}, []string{`{"outcome":"unknown"}`}, unsure},
		"the proxy has lost the answer":       {[]int{502}, []string{lost}, unsure},
		"the first send is still running":     {[]int{409}, []string{inFlight}, unsure},
		"no answer at all":                    {[]int{-1}, nil, unsure},
		"no answer, and then turned away":     {[]int{-1, 429}, nil, unsure},
		"unknown, and then turned away":       {[]int{502, 429}, []string{lost, ""}, unsure},
		"no answer, and then paid":            {[]int{-1, 200}, nil, paid},
		"unknown, and then paid":              {[]int{502, 200}, []string{lost, ""}, paid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := standard(300)
				buy := keyed(s, &script{codes: tt.codes, bodies: tt.bodies}, newTally(s.Length))
				if got := buy(t.Context(), "http://service/", newPurchase("shopper 1", 1)).told; got != tt.want {
					t.Errorf("a click against %v: told %q, want %q", tt.codes, words[got], words[tt.want])
				}
			})
		})
	}
}

func TestOnlyA200IsPaid(t *testing.T) {
	for _, code := range []int{204, 404, 429, 500, 503} {
		c := &http.Client{Transport: &script{codes: []int{code}}}
		if r, err := post(t.Context(), c, "http://service/", newPurchase("shopper 1", 1)); err != nil || r.told != failure || r.status != code {
			t.Errorf("post answered with %d: got %q with status %d, error %v, want failed", code, words[r.told], r.status, err)
		}
	}
}

func TestTheMeterCountsOnlyConnectsThatFailed(t *testing.T) {
	s := standard(300)
	tally := newTally(s.Length)
	c := &http.Client{Transport: &meter{failing{errors.New("connection reset")}, tally}}
	post(t.Context(), c, "http://service/", newPurchase("shopper 1", 1))
	tally.mu.Lock()
	defer tally.mu.Unlock()
	if got := tally.bins.sum(refused, 0, len(tally.bins)); got != 0 {
		t.Errorf("a reset counted as %d refused sends, want 0", got)
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }
