package chain_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

func ExampleCheck() {
	c := &chain.Chain{Services: []chain.Service{
		{Name: "gateway", Limit: 5 * time.Second, Calls: []chain.Call{{
			To:     "orders",
			Policy: riprap.Policy{MaxAttempts: 1, Timeout: 4 * time.Second},
		}}},
		{Name: "orders", Calls: []chain.Call{{
			To: "database",
			Policy: riprap.Policy{
				MaxAttempts: 3, Timeout: 2 * time.Second, AttemptTimeout: 800 * time.Millisecond,
				Backoff: riprap.Backoff{Base: 100 * time.Millisecond}, Budget: &riprap.Budget{},
			},
			Idempotent: true,
		}}},
		{Name: "database"},
	}}
	for _, f := range chain.Check(c) {
		fmt.Printf("%s → %s: %s\n%s\n%s\n%s\n", f.Service, f.To, f.Rule, f.Text, f.Why, f.Fix)
	}
	// Output:
	// orders → database: attempts-do-not-fit
	// 3 attempts of 800ms at database and the waits between them take up to 2.7s, but the call ends after 2s: only 2 fit.
	// While the service hangs each attempt takes all of its bound, and the call is over before the last one has had its time.
	// Lower policy.maxAttempts of orders → database from 3 to 2.
}

func ExampleRules() {
	for _, rule := range chain.Rules()[:3] {
		fmt.Printf("%s: %s\n", rule.ID, rule.Why)
	}
	// Output:
	// unknown-service: A call leads to a service that the chain does not list, so nothing below it can be judged.
	// duplicate-service: Two services bear one name, and only the first can be meant by who calls it.
	// cycle: A request that can come back to a service it has passed holds what it waits for, and its retries have no end.
}

func ExampleChain_Hops() {
	once := func(timeout time.Duration) riprap.Policy { return riprap.Policy{MaxAttempts: 1, Timeout: timeout} }
	c := &chain.Chain{Services: []chain.Service{
		{Name: "gateway", Limit: 5 * time.Second, Calls: []chain.Call{{To: "orders", Policy: once(4 * time.Second)}}},
		{Name: "orders", Calls: []chain.Call{{To: "database", Policy: riprap.Policy{
			MaxAttempts: 2, Timeout: 2 * time.Second, AttemptTimeout: time.Second,
			Backoff: riprap.Backoff{Base: 200 * time.Millisecond},
		}}}},
		{Name: "database"},
	}}
	for _, h := range c.Hops() {
		fmt.Printf("%-12s %-6s %d\n", strings.Repeat("  ", h.Depth)+h.Service, h.Left, h.Calls)
	}
	// Output:
	// gateway      5s     1
	//   orders     4s     1
	//     database 800ms  2
}

func ExampleCall_Total() {
	call := chain.Call{To: "payments", Policy: riprap.Policy{
		MaxAttempts: 2, AttemptTimeout: time.Second, MaxWait: 5 * time.Second, // a wait that is asked for gets up to a fifth more
		Backoff: riprap.Backoff{Base: 100 * time.Millisecond},
	}}
	fmt.Println(call.Total())
	call.Policy.Timeout = 3 * time.Second
	fmt.Println(call.Total())
	// Output:
	// 8s
	// 3s
}
