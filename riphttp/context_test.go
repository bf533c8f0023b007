package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/riphttp"
)

// The context of an attempt is one of our own making. To those derived from it the difference must not show.
func TestContextOfAnAttemptIsLikeThoseOfTheStandardLibrary(t *testing.T) {
	type key struct{}
	errLeft := errors.New("the user left")
	for _, test := range []struct {
		name string
		end  func(cancel context.CancelCauseFunc)
		want error
	}{
		{"attempt's bound", func(context.CancelCauseFunc) {}, context.DeadlineExceeded},
		{"caller leaves", func(cancel context.CancelCauseFunc) { time.AfterFunc(time.Second, func() { cancel(errLeft) }) }, context.Canceled},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			defer cancel(nil)
			test.end(cancel)
			checked := 0
			service := script(func(r *http.Request) (*http.Response, error) {
				ctx := r.Context()
				if ctx.Err() != nil || ctx.Value(key{}) != "value" {
					t.Errorf("in the attempt Err = %v, Value = %v, want nil and the caller's", ctx.Err(), ctx.Value(key{}))
				}
				if until, ok := ctx.Deadline(); !ok || time.Until(until) != 10*time.Second {
					t.Errorf("Deadline = %v, %v, want ten seconds from now", until, ok)
				}
				child, stop := context.WithCancel(ctx)
				defer stop()
				grandchild, stop := context.WithTimeout(context.WithValue(child, key{}, "own"), time.Hour)
				defer stop()
				called := make(chan struct{})
				context.AfterFunc(child, func() { close(called) })
				<-grandchild.Done()
				<-called
				for _, c := range []context.Context{ctx, child, grandchild} {
					if c.Err() != test.want {
						t.Errorf("Err = %v, want %v", c.Err(), test.want)
					}
					wantCause := test.want
					if test.want == context.Canceled {
						wantCause = errLeft
					}
					if got := context.Cause(c); got != wantCause {
						t.Errorf("Cause = %v, want %v", got, wantCause)
					}
					checked++
				}
				return nil, fmt.Errorf("hung: %w", context.Cause(ctx))
			})
			policy := even()
			policy.MaxAttempts = 1
			result(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, "GET", serviceURL, nil).WithContext(ctx))
			if checked != 3 {
				t.Errorf("%d contexts were checked, want 3", checked)
			}
		})
	}
}

func TestContextOfAnAttemptEndsWithTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		service := script(func(r *http.Request) (*http.Response, error) {
			for i, ctx := range contexts {
				if ctx.Err() == nil {
					t.Errorf("the context of attempt %d is alive during attempt %d", i+1, len(contexts)+1)
				}
			}
			contexts = append(contexts, r.Context())
			switch len(contexts) {
			case 1:
				return nil, errWire
			case 2:
				return response(503, ""), nil
			}
			return response(200, "ok"), nil
		})
		resp, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "GET", serviceURL, nil))
		if err != nil {
			t.Fatal(err)
		}
		last := contexts[2]
		time.Sleep(time.Hour)
		for i, ctx := range contexts[:2] {
			if ctx.Err() != context.Canceled {
				t.Errorf("long after attempt %d its context says %v, want it cancelled", i+1, ctx.Err())
			}
		}
		if err := last.Err(); err != nil {
			t.Errorf("with the body open the attempt's context says %v", err)
		}
		io.Copy(io.Discard, resp.Body)
		if last.Err() != context.Canceled {
			t.Errorf("after the body the attempt's context says %v, want it cancelled", last.Err())
		}
	})
}

func TestContextOfAnAttemptThatFailedForGoodEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempt context.Context
		service := script(func(r *http.Request) (*http.Response, error) {
			attempt = r.Context()
			return nil, errWire
		})
		roundTrip(t, &riphttp.Transport{Base: service, Policy: tries(1)}, newRequest(t, "GET", serviceURL, nil))
		if attempt.Err() != context.Canceled {
			t.Errorf("the attempt's context says %v, want it cancelled", attempt.Err())
		}
	})
}

func TestAttemptThatOnlyTheCallersDeadlineBounds(t *testing.T) {
	for _, readTimeout := range []time.Duration{0, -1} {
		inBubble(t, readTimeout.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			want, _ := ctx.Deadline()
			service := script(hang, func(r *http.Request) (*http.Response, error) {
				if got, ok := r.Context().Deadline(); !ok || !got.Equal(want) {
					t.Errorf("Deadline = %v, %v, want the caller's, %v", got, ok, want)
				}
				return response(200, "ok"), nil
			})
			policy := even()
			policy.AttemptTimeout = time.Second
			client := &riphttp.Transport{Base: service, Policy: policy, ReadTimeout: readTimeout}
			wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil).WithContext(ctx), 200, "ok")
			wantCalls(t, service, 2)
		})
	}
}

// A Base that does not listen keeps an attempt going whose caller has left, until its bound strikes too.
func TestErrorOfTheContextOfAnAttemptNeverChanges(t *testing.T) {
	for name, test := range map[string]struct {
		leave time.Duration // when the caller leaves
		want  error
	}{
		"the caller leaves first": {time.Second, context.Canceled},
		"the bound strikes first": {time.Minute, context.DeadlineExceeded},
	} {
		inBubble(t, name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer time.AfterFunc(test.leave, leave).Stop()
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				ctx := r.Context()
				child, stop := context.WithCancel(ctx)
				defer stop()
				<-ctx.Done()
				for range 2 {
					synctest.Wait()
					if ctx.Err() != test.want || child.Err() != test.want {
						t.Errorf("the attempt's context says %v, its child %v, want %v", ctx.Err(), child.Err(), test.want)
					}
					time.Sleep(2 * time.Minute)
				}
				return nil, errWire
			})
			policy := tries(1)
			policy.Timeout = -1
			roundTrip(t, &riphttp.Transport{Base: base, Policy: policy}, newRequest(t, "GET", serviceURL, nil).WithContext(ctx))
		})
	}
}
