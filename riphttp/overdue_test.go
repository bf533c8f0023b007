package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// answersAt is a step of a script: a response so long after the service's time began, or before it is over if d is
// negative.
func answersAt(d time.Duration, code int, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		d := d
		if d < 0 {
			left, _ := strconv.Atoi(r.Header.Get(deadline.TimeoutHeader))
			d += time.Duration(left) * time.Millisecond
		}
		time.Sleep(d)
		return response(code, http.StatusText(code), header...), nil
	}
}

var exceeded = []string{deadline.ExceededHeader, "true", "X-Should-Retry", "false"}

func TestServiceWhoseTimeWasOverIsAskedAgain(t *testing.T) {
	never := []string{"X-Should-Retry", "false"}
	for _, test := range []struct {
		name     string
		step     any
		internal bool
		attempts int
		timeout  bool // so says the last failure
	}{
		{"it says so", answersAt(0, 504, exceeded...), true, 2, true},
		{"it says so, and is none of ours", answersAt(0, 504, exceeded...), false, 1, false},
		{"it fails when its time is over", answersAt(95*time.Millisecond, 503, never...), true, 2, true},
		{"it fails in time", answersAt(90*time.Millisecond, 503), true, 2, false},
		{"it fails in time and means it", answersAt(90*time.Millisecond, 503, never...), true, 1, false},
		{"a failure that stays", answersAt(95*time.Millisecond, 501), true, 1, true},
		{"slow, and none of ours", answersAt(95*time.Millisecond, 503, never...), false, 1, false},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			var log events
			policy := even()
			policy.MaxAttempts, policy.AttemptTimeout = 2, 100*time.Millisecond
			service := script(test.step)
			client := &riphttp.Transport{Base: service, Policy: traced(policy, &log), Internal: always(test.internal)}
			resp, err := roundTrip(t, client, newRequest(t, "GET", serviceURL, nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			wantCalls(t, service, test.attempts)
			e := log.ended(t)
			if got := errors.Is(e.Err, context.DeadlineExceeded); got != test.timeout || statusOf(e.Err) != resp.StatusCode {
				t.Errorf("Done: %v, want the status %d, and that it is a timeout: %v", e.Err, resp.StatusCode, test.timeout)
			}
		})
	}
}

func TestWhatAServiceAsksForHoldsWhenItsTimeWasOver(t *testing.T) {
	for name, step := range map[string]any{
		"it says so":     answersAt(0, 504, append([]string{"Retry-After", "7"}, exceeded...)...),
		"its time is up": answersAt(95*time.Millisecond, 503, "Retry-After", "7", "X-Should-Retry", "false"),
	} {
		inBubble(t, name, func(t *testing.T) {
			policy := even()
			policy.AttemptTimeout = 100 * time.Millisecond
			service := script(step, 200)
			wantAnswer(t, &riphttp.Transport{Base: service, Policy: policy, Internal: always(true)}, newRequest(t, "GET", serviceURL, nil), 200, "OK")
			wantGaps(t, service, 7*time.Second)
		})
	}
}

// There is nothing to be over.
func TestServiceWithoutABoundIsNeverOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(answersAt(time.Hour, 503, "X-Should-Retry", "false"))
		client := &riphttp.Transport{Base: service, Policy: boundless, Internal: always(true)}
		wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 503, "Service Unavailable")
		wantCalls(t, service, 1)
	})
}

func TestPostWhoseTimeWasOverIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log events
		service := script(answersAt(0, 504, exceeded...))
		client := &riphttp.Transport{Base: service, Policy: traced(even(), &log), Internal: always(true)}
		wantAnswer(t, client, newRequest(t, "POST", serviceURL, "pay"), 504, "Gateway Timeout")
		wantCalls(t, service, 1)
		if got := log.ended(t).Reason; got != riphttp.ErrUnsafe {
			t.Errorf("Done: reason %v, want ErrUnsafe", got)
		}
	})
}

// What is usual until the header is there is not the time for all of an answer. And a service that was told of a bound that
// is too short would give up each time, at once, and nobody would learn that it has become slower.
func TestLearnedBoundIsNotWhatTheServiceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := 20 * time.Millisecond
		refused := 0
		service := roundTripper(func(r *http.Request) (*http.Response, error) {
			if left, _ := strconv.Atoi(r.Header.Get(deadline.TimeoutHeader)); left < 9900 {
				refused++
				return answersAt(0, 504, exceeded...)(r)
			}
			select {
			case <-time.After(took):
				return reply(200, "")(), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		client := &riphttp.Transport{Base: service, Internal: always(true), Adaptive: true, Policy: tries(1)}
		calls(t, client, "GET", serviceURL, 500)
		took = 400 * time.Millisecond
		start := time.Now()
		if got := calls(t, client, "GET", serviceURL, 1); got != 0 {
			t.Error("the first slow call was answered, want it cut off by what was learned")
		}
		for time.Since(start) < 20*time.Second { // two slots of a Latency
			calls(t, client, "GET", serviceURL, 1)
		}
		if got := calls(t, client, "GET", serviceURL, 100); got != 100 {
			t.Errorf("%d of 100 calls answered, want all", got)
		}
		if refused > 0 {
			t.Errorf("%d calls told less than the attempt's bound of 10s, less a margin", refused)
		}
	})
}

// A caller with little time leaves the service with little time, also where that is more than what was learned.
func TestServiceThatACallerGaveLittleTimeIsNoSample(t *testing.T) {
	const learned = 60 * time.Millisecond
	for _, test := range []struct {
		name string
		time time.Duration
		step any
	}{
		{"less than what was learned", 40 * time.Millisecond, answersAt(-time.Nanosecond, 504, exceeded...)},
		{"more than what was learned", 80 * time.Millisecond, answersAt(0, 504, exceeded...)},
	} {
		for way, hurry := range map[string]func(*http.Request) (*http.Request, context.CancelFunc){
			"by a context": func(r *http.Request) (*http.Request, context.CancelFunc) { return within(r, test.time) },
			"by a policy": func(r *http.Request) (*http.Request, context.CancelFunc) {
				own := &riprap.Policy{MaxAttempts: 1, AttemptTimeout: test.time}
				return r.WithContext(riphttp.WithPolicy(r.Context(), own)), func() {}
			},
			"by a policy of the whole call": func(r *http.Request) (*http.Request, context.CancelFunc) {
				own := &riprap.Policy{MaxAttempts: 1, Timeout: test.time}
				return r.WithContext(riphttp.WithPolicy(r.Context(), own)), func() {}
			},
		} {
			inBubble(t, test.name+", "+way, func(t *testing.T) {
				service := pace(20 * time.Millisecond)
				client := &riphttp.Transport{Internal: always(true), Adaptive: true, Policy: tries(1)}
				client.Base = service
				calls(t, client, "GET", serviceURL, 300)
				client.Base = script(test.step)
				for range 100 {
					req, cancel := hurry(newRequest(t, "GET", serviceURL, nil))
					wantAnswer(t, client, req, 504, "Gateway Timeout")
					cancel()
				}
				client.Base = service
				service.wantBound(t, client, serviceURL, learned)
			})
		}
	}
}

// Three times a p99 of a millisecond is less than a service with a deadline.Middleware accepts.
func TestBoundLeavesAFastServiceTimeToAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := deadline.Middleware{Least: 100 * time.Millisecond}.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Millisecond)
		}))
		client := &riphttp.Transport{Internal: always(true), Adaptive: true, Policy: tries(1)}
		client.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context()))) // what it is told comes with the header
			return w.Result(), nil
		})
		if got := calls(t, client, "GET", serviceURL, 3000); got != 3000 {
			t.Errorf("%d of 3000 calls were answered, want all", got)
		}
	})
}

func TestAttemptAfterARefusalIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := even()
		policy.AttemptTimeout, policy.Timeout = 2*time.Second, 3*time.Second
		service := script(answersAt(0, 504, exceeded...), answersAt(0, 504, exceeded...), 200)
		client := &riphttp.Transport{Base: service, Policy: policy, Internal: always(true)}
		wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "OK")
		if got, want := fmt.Sprint(service.values(t, deadline.TimeoutHeader)), "[1960 1960 980]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		if got, want := service.values(t, deadline.AttemptHeader), []string{"-", "2", "3"}; !slices.Equal(got, want) {
			t.Errorf("attempts %q, want %q", got, want)
		}
	})
}
