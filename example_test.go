package riprap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"time"

	"github.com/riprap-go/riprap"
)

// soon keeps the waits of the examples short.
var soon = riprap.Backoff{Base: time.Millisecond, Max: time.Millisecond}

func ExampleDo() {
	tries := 0
	send := func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("connection lost")
		}
		return nil
	}

	policy := &riprap.Policy{
		MaxAttempts:    5,                // the first try and four retries
		Timeout:        10 * time.Second, // for all of it
		AttemptTimeout: 2 * time.Second,
		Backoff:        soon,
	}
	err := riprap.Do(context.Background(), policy, send)
	fmt.Println(err, "after", tries, "tries")
	// Output: <nil> after 3 tries
}

func ExampleDo_givingUp() {
	policy := &riprap.Policy{MaxAttempts: 2, Backoff: soon}
	err := riprap.Do(context.Background(), policy, func(context.Context) error {
		return io.ErrUnexpectedEOF
	})

	fmt.Println(err)
	fmt.Println(errors.Is(err, riprap.ErrAttempts), errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// gave up after 2 attempts: no attempts left: unexpected EOF
	// true true
}

func ExampleDoValue() {
	tries := 0
	price, err := riprap.DoValue(context.Background(), &riprap.Policy{Backoff: soon}, func(context.Context) (int, error) {
		if tries++; tries == 1 {
			return 0, errors.New("price list is being loaded")
		}
		return 42, nil
	})
	fmt.Println(price, err)
	// Output: 42 <nil>
}

func ExamplePermanent() {
	tries := 0
	err := riprap.Do(context.Background(), nil, func(context.Context) error {
		tries++
		if _, err := os.Open("no/such/file"); errors.Is(err, fs.ErrNotExist) {
			return riprap.Permanent(err) // to look again will not bring it back
		} else if err != nil {
			return err
		}
		return nil
	})
	fmt.Println(errors.Is(err, fs.ErrNotExist), "after", tries, "try")
	// Output: true after 1 try
}

func ExampleAfter() {
	tries := 0
	err := riprap.Do(context.Background(), &riprap.Policy{Backoff: soon}, func(context.Context) error {
		if tries++; tries == 1 {
			return riprap.After(2*time.Millisecond, errors.New("rate limit")) // as long as the service said
		}
		return riprap.After(24*time.Hour, errors.New("quota"))
	})

	// A day is more than MaxWait. The caller may put the work off until then.
	if gaveUp, ok := errors.AsType[*riprap.Error](err); ok && gaveUp.Reason == riprap.ErrWait {
		fmt.Println(gaveUp.Err, "for", gaveUp.Wait)
	}
	// Output: quota for 24h0m0s
}

// A consumer of a queue does not sleep: it hands the message back and gets it again when the wait is over, perhaps in
// another process.
func ExampleOperation() {
	type message struct {
		Attempts int
		Wait     time.Duration
		Deadline time.Time
	}
	policy := &riprap.Policy{
		MaxAttempts: 3,
		Backoff:     riprap.Backoff{Base: time.Minute, Max: time.Hour, Jitter: riprap.None},
	}
	handle := func() error { return errors.New("database is down") }

	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	m := message{Deadline: now.Add(24 * time.Hour)}
	for {
		o := riprap.Operation{Policy: policy, Attempts: m.Attempts, Wait: m.Wait, Deadline: m.Deadline}
		o.Begin(now)
		wait, err := o.Next(now, handle())
		if wait == 0 {
			fmt.Println(err)
			return
		}
		m.Attempts, m.Wait = o.Attempts, o.Wait
		fmt.Printf("%s: once more in %v\n", now.Format("15:04"), wait)
		now = now.Add(wait) // the queue delivers it again
	}
	// Output:
	// 12:00: once more in 1m0s
	// 12:01: once more in 2m0s
	// gave up after 3 attempts: no attempts left: database is down
}

// Share one Budget among all calls to a service, and one above them among all services.
func ExampleBudget() {
	process := &riprap.Budget{Reserve: 5}
	orders := &riprap.Policy{Backoff: soon, Budget: &riprap.Budget{Reserve: 3, Parent: process}}
	prices := &riprap.Policy{Backoff: soon, Budget: &riprap.Budget{Reserve: 3, Parent: process}}

	down := func(context.Context) error { return errors.New("down") }
	for range 2 {
		fmt.Println(riprap.Do(context.Background(), orders, down))
	}
	fmt.Println(riprap.Do(context.Background(), prices, down))
	fmt.Println("left:", process.Left(time.Now()))
	// Output:
	// gave up after 4 attempts: no attempts left: down
	// gave up after 1 attempt: retry budget spent: down
	// gave up after 3 attempts: retry budget spent: down
	// left: 0
}

func ExampleBackoff() {
	backoff := riprap.Backoff{Base: 100 * time.Millisecond, Max: time.Second}
	const u = 0.5 // in place of a random number
	for n := 1; n <= 5; n++ {
		fmt.Print(backoff.Delay(n, 0, u), " ")
	}
	// Output: 50ms 100ms 200ms 400ms 500ms
}

func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // so that the output is always the same
			}
			return a
		},
	}))
	policy := &riprap.Policy{
		MaxAttempts: 2,
		Backoff:     riprap.Backoff{Base: time.Millisecond, Jitter: riprap.None},
		Trace:       riprap.Log(logger),
	}
	riprap.Do(context.Background(), policy, func(context.Context) error { return errors.New("connection lost") })
	// Output:
	// level=INFO msg=retry attempts=1 wait=1ms error="connection lost"
	// level=WARN msg="gave up" attempts=2 reason="no attempts left" error="connection lost"
}

func ExampleTransient() {
	policy := &riprap.Policy{Backoff: soon, Retryable: riprap.Transient}

	failures := []error{
		&net.OpError{Op: "read", Net: "tcp", Err: io.ErrUnexpectedEOF},
		errors.New("duplicate key"),
	}
	err := riprap.Do(context.Background(), policy, func(context.Context) error {
		failure := failures[0]
		failures = failures[1:]
		return failure
	})
	fmt.Println(err)
	// Output: duplicate key
}

func ExamplePolicy_json() {
	var policy riprap.Policy
	err := json.Unmarshal([]byte(`{
		"maxAttempts": 3,
		"attemptTimeout": "800ms",
		"backoff": {"base": "250ms", "jitter": "equal"},
		"budget": {"ratio": "unlimited"}
	}`), &policy)
	fmt.Println(policy.MaxAttempts, policy.AttemptTimeout, policy.Backoff.Jitter, math.IsInf(policy.Budget.Ratio, 1), err)

	err = json.Unmarshal([]byte(`{"maxRetries": 3}`), &policy)
	fmt.Println(err)
	// Output:
	// 3 800ms equal true <nil>
	// riprap: policy: json: unknown field "maxRetries"
}
