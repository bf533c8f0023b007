package main

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/riprap-go/riprap/riphttp"
)

// A doer makes one call, retries included.
type doer func(*http.Request) (*http.Response, error)

// libraries has the configurations of each library. Those named docs set what the library's documentation sets where it shows
// retries, and no more: internal/peers/audits/peers.go names the pages.
var libraries = map[string]map[string]func() doer{
	"net/http": {
		"default": func() doer { return http.DefaultClient.Do },
	},
	"go-retryablehttp": {
		"default": func() doer {
			client := retryablehttp.NewClient()
			return func(req *http.Request) (*http.Response, error) {
				again, err := retryablehttp.FromRequest(req)
				if err != nil {
					return nil, err
				}
				return client.Do(again)
			}
		},
		"docs": func() doer {
			client := retryablehttp.NewClient()
			client.RetryMax = 10
			return client.StandardClient().Do
		},
	},
	"failsafe-go": {
		"default": func() doer {
			policy := failsafehttp.NewRetryPolicyBuilder().Build()
			client := &http.Client{Transport: failsafehttp.NewRoundTripper(nil, policy)}
			return client.Do
		},
		"docs": func() doer {
			policy := failsafehttp.NewRetryPolicyBuilder().
				WithBackoff(time.Second, 30*time.Second).
				WithMaxRetries(3).
				Build()
			client := &http.Client{Transport: failsafehttp.NewRoundTripper(http.DefaultTransport, policy)}
			return client.Do
		},
	},
	"riphttp": {
		"default": func() doer {
			client := &http.Client{Transport: &riphttp.Transport{}}
			return client.Do
		},
		"docs": func() doer {
			client := &http.Client{
				Transport: &riphttp.Transport{NewKey: func(*http.Request) string { return rand.Text() }},
				Timeout:   25 * time.Second, // ours: docs/http.md advises a bound and no figure; the page says so
			}
			return client.Do
		},
	},
}
