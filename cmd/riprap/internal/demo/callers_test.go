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

// A script is a RoundTripper that answers with the codes given, one after another and the last one for ever, and notes
// when it was asked.
type script struct {
	codes []int // zero: no answer before the request's context ends
	start time.Time
	asked []time.Duration
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Since(s.start))
	code := s.codes[min(len(s.asked), len(s.codes))-1]
	if code == 0 {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader("")), Request: req,
	}, nil
}

// try makes one call in the standard scenario against a script of answers, for a caller of the patience given. It returns
// when the service was asked and how many retries were counted.
func try(t *testing.T, c client, patience time.Duration, codes []int) (asked []time.Duration, retries int, err error) {
	t.Helper()
	s := standard(300)
	tally := newTally(s.Length)
	base := &script{codes: codes, start: time.Now()}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = c(s, base, tally)(ctx, "http://service/")
	time.Sleep(step) // until the bin of the last retry is full
	b := tally.read()
	return base.asked, b.sum(retried, 0, len(b)), err
}

func TestTheNaiveLoopDoublesItsWaitsWithoutJitter(t *testing.T) {
	const ms, patient = time.Millisecond, time.Minute
	standards := standard(300).Patience
	tests := map[string]struct {
		codes    []int
		patience time.Duration
		want     []time.Duration
		err      bool
	}{
		"an answer is final":            {[]int{200}, patient, []time.Duration{0}, false},
		"a failure is tried again":      {[]int{503, 200}, patient, []time.Duration{0, 500 * ms}, false},
		"Retry-After is not read":       {[]int{429, 200}, patient, []time.Duration{0, 500 * ms}, false},
		"attempts are limited":          {[]int{503}, patient, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms}, true},
		"an attempt may take a second":  {[]int{0, 200}, patient, []time.Duration{0, 1500 * ms}, false},
		"the caller's patience is kept": {[]int{0}, standards, []time.Duration{0, 1500 * ms, 3500 * ms}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, retries, err := try(t, naive, tt.patience, tt.codes)
				if !slices.Equal(asked, tt.want) || (err != nil) != tt.err {
					t.Errorf("naive against %v: asked at %v, error %v, want %v and an error: %v", tt.codes, asked, err, tt.want, tt.err)
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
		err         bool
	}{
		"an answer is final":            {[]int{200}, patient, 1, 1, 0, false},
		"a failure is tried again":      {[]int{503, 200}, patient, 2, 2, 1200 * time.Millisecond, false},
		"attempts are limited":          {[]int{500}, patient, 4, 4, 4400 * time.Millisecond, true}, // two waits as asked, and its own
		"an attempt may take a second":  {[]int{0, 200}, patient, 2, 2, 1500 * time.Millisecond, false},
		"the caller's patience is kept": {[]int{0}, standards, 1, 4, standards, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, retries, err := try(t, withRiprap, tt.patience, tt.codes)
				if n := len(asked); n < tt.least || n > tt.most || asked[n-1] > tt.within || (err != nil) != tt.err {
					t.Errorf("riprap against %v: asked at %v, error %v, want %d to %d attempts within %v and an error: %v",
						tt.codes, asked, err, tt.least, tt.most, tt.within, tt.err)
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
		s := standard(300)
		base := &script{codes: []int{429, 200}, start: time.Now()}
		if err := withRiprap(s, base, newTally(s.Length))(t.Context(), "http://service/"); err != nil {
			t.Fatalf("riprap against a 429: got error %v, want none", err)
		}
		if wait := base.asked[1]; wait < time.Second || wait > 1200*time.Millisecond {
			t.Errorf("riprap against a 429 with Retry-After 1: came back after %v, want 1s to 1.2s", wait)
		}
	})
}

func TestOnlyA200IsAnAnswer(t *testing.T) {
	for _, code := range []int{204, 404, 429, 500, 503} {
		c := &http.Client{Transport: &script{codes: []int{code}}}
		if err := get(t.Context(), c, "http://service/"); err == nil {
			t.Errorf("get answered with %d: got no error, want one", code)
		}
	}
}

func TestTheMeterCountsOnlyConnectsThatFailed(t *testing.T) {
	s := standard(300)
	tally := newTally(s.Length)
	c := &http.Client{Transport: &meter{failing{errors.New("connection reset")}, tally}}
	get(t.Context(), c, "http://service/")
	tally.mu.Lock()
	defer tally.mu.Unlock()
	if got := tally.bins.sum(refused, 0, len(tally.bins)); got != 0 {
		t.Errorf("a reset counted as %d refused sends, want 0", got)
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }
