package audit_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/riprap-go/riprap/audit"
	"github.com/riprap-go/riprap/riphttp"
)

// The client that http.Get uses does not try again: what it does right is that it repeats no POST.
func ExampleHTTP() {
	a := audit.Audit{
		Client: audit.HTTP(func() *http.Client { return &http.Client{Transport: &http.Transport{}} }),
		Rules:  []string{"retries-503", "post-503"},
	}
	report, err := a.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings {
		fmt.Printf("%s: %s: %s\n", f.ID, f.Verdict, f.Seen)
	}
	// Output:
	// retries-503: fail: sent once
	// post-503: pass: sent once
}

// A test that keeps a service's own client to the rules that matter to it.
func Example_test() {
	_ = func(t *testing.T) { // func TestRetries(t *testing.T)
		newClient := func() *http.Client {
			return &http.Client{Transport: &riphttp.Transport{}, Timeout: 20 * time.Second}
		}
		a := audit.Audit{
			Client: audit.HTTP(newClient),
			Rules:  []string{"retries-503", "jitter", "retry-after-date", "post-reset", "timeout-hang"},
		}
		report, err := a.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			if f.Verdict == audit.Fail {
				t.Error(f)
			}
		}
	}
}

func ExampleRules() {
	for _, r := range audit.Rules()[:3] {
		fmt.Printf("%s: %s\n", r.ID, r.Title)
	}
	// Output:
	// retries-503: a GET is sent again after 503
	// retries-429: a GET is sent again after 429
	// retries-reset: a GET is sent again after a connection reset
}
