package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// HTTP returns a Client that calls by the http.Clients that newClient makes: a new one for each run, as a program of its own would
// have. Each is to have a transport of its own, or runs share connections and retry budgets; the idle connections are closed
// afterwards. Answers are read to their end and thrown away.
func HTTP(newClient func() *http.Client) Client {
	return func(ctx context.Context, c Call) error {
		client := newClient()
		defer client.CloseIdleConnections()
		failures := make([]error, c.Calls)
		var calls sync.WaitGroup
		for i := range failures {
			calls.Go(func() { failures[i] = call(ctx, client, c) })
		}
		calls.Wait()
		return errors.Join(failures...)
	}
}

func call(ctx context.Context, client *http.Client, c Call) error {
	var body io.Reader
	if c.Method != http.MethodGet {
		body = strings.NewReader(c.Body)
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, c.URL, body)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "text/plain")
	}
	if c.Key != "" {
		req.Header.Set("Idempotency-Key", c.Key)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode >= 400 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
