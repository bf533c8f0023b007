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

func TestTheNaiveLoopDoublesItsWaitsWithoutJitter(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		codes   []int
		want    []time.Duration
		retries int
		err     bool
	}{
		"an answer is final":            {[]int{200}, []time.Duration{0}, 0, false},
		"a failure is tried again":      {[]int{503, 200}, []time.Duration{0, 500 * ms}, 1, false},
		"Retry-After is not read":       {[]int{429, 200}, []time.Duration{0, 500 * ms}, 1, false},
		"attempts are limited":          {[]int{503}, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms}, 3, true},
		"an attempt may take a second":  {[]int{0, 200}, []time.Duration{0, 1500 * ms}, 1, false},
		"the caller's patience is kept": {[]int{0}, []time.Duration{0, 1500 * ms, 3500 * ms}, 2, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := standard(300)
				if !strings.Contains(name, "patience") {
					s.Patience = time.Minute
				}
				tally := newTally(s.Length)
				base := &script{codes: tt.codes, start: time.Now()}
				ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
				defer cancel()
				err := naive(s, base, tally)(ctx, "http://service/")
				if (err != nil) != tt.err {
					t.Errorf("naive against %v: got error %v, want one: %v", tt.codes, err, tt.err)
				}
				if !slices.Equal(base.asked, tt.want) {
					t.Errorf("naive against %v: asked at %v, want %v", tt.codes, base.asked, tt.want)
				}
				time.Sleep(step)
				if b := tally.read(); b.sum(retried, 0, len(b)) != tt.retries {
					t.Errorf("naive against %v: counted %d retries, want %d", tt.codes, b.sum(retried, 0, len(b)), tt.retries)
				}
			})
		})
	}
}

func TestRiprapKeepsTheSameLimitsAsTheNaiveLoop(t *testing.T) {
	tests := map[string]struct {
		codes    []int
		attempts int
		within   time.Duration // the last attempt begins
		err      bool
	}{
		"an answer is final":            {[]int{200}, 1, 0, false},
		"a failure is tried again":      {[]int{503, 200}, 2, 1200 * time.Millisecond, false},
		"attempts are limited":          {[]int{500}, 4, 4 * time.Second, true},
		"an attempt may take a second":  {[]int{0, 200}, 2, 1500 * time.Millisecond, false},
		"the caller's patience is kept": {[]int{0}, 4, 4 * time.Second, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := standard(300)
				if !strings.Contains(name, "patience") {
					s.Patience = time.Minute
				}
				tally := newTally(s.Length)
				base := &script{codes: tt.codes, start: time.Now()}
				ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
				defer cancel()
				err := withRiprap(s, base, tally)(ctx, "http://service/")
				if (err != nil) != tt.err {
					t.Errorf("riprap against %v: got error %v, want one: %v", tt.codes, err, tt.err)
				}
				if n := len(base.asked); n == 0 || n > tt.attempts || s.Patience == time.Minute && n != tt.attempts || base.asked[n-1] > tt.within {
					t.Errorf("riprap against %v: asked at %v, want %d attempts within %v", tt.codes, base.asked, tt.attempts, tt.within)
				}
				time.Sleep(step)
				if b := tally.read(); b.sum(retried, 0, len(b)) != len(base.asked)-1 {
					t.Errorf("riprap against %v: counted %d retries, want %d", tt.codes, b.sum(retried, 0, len(b)), len(base.asked)-1)
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
