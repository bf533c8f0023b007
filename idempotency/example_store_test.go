package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func ExampleNewID() {
	id := idempotency.NewID("customer 7", "POST /charges", "8e03978e-40d5")
	fmt.Println(id)
	fmt.Println(id.ChildKey("charge"))
	// Output:
	// a17a9719343726e674a1e0f22a07d7b9005c657042e7348ce0605f98815a95b1
	// 4uHlp_BfOTSqrffFOfzNtM007UdHKZm6k6dWOrNMFvE
}

func ExampleParseID() {
	id, err := idempotency.ParseID("c8e1")
	fmt.Println(id == idempotency.ID{}, err)
	// Output: true idempotency: "c8e1" is not an ID: want 64 hexadecimal digits
}

// What a Middleware does with a store, step by step.
func ExampleMemory() {
	store := &idempotency.Memory{MaxEntries: 10_000}
	ctx := context.Background()
	claim := idempotency.Claim{
		ID:          idempotency.NewID("customer 7", "POST /charges", "8e03978e-40d5"),
		Fingerprint: []byte("what is in the request"),
		Owner:       idempotency.Owner{1}, // random
		Lease:       time.Minute,
		Retention:   24 * time.Hour,
	}
	claimed, err := store.Claim(ctx, claim)
	fmt.Println(claimed.Verdict == idempotency.ClaimWon, err)

	answer := idempotency.Answer{Status: http.StatusCreated, Body: []byte("charged")}
	fmt.Println(store.Complete(ctx, claim.Ticket(claimed.Generation), answer, 24*time.Hour))

	claim.Owner = idempotency.Owner{2}
	claimed, err = store.Claim(ctx, claim)
	fmt.Println(claimed.Verdict == idempotency.ClaimReplay, string(claimed.Answer.Body), err)
	// Output:
	// true <nil>
	// <nil>
	// true charged <nil>
}
