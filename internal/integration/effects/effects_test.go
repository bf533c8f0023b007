// Package effects proves what package idempotency promises, on real stores and with real processes: servers that are killed, a
// database that crashes, answers that get lost, and clients that send again until they have an answer. What counts is a
// ledger: one row for each operation, and the clients have been told of just that row.
package effects

import (
	"context"
	"os"
	"testing"
	"time"
)

// patience is how long a test waits for something that must happen. Tests that pass never need it.
const patience = 5 * time.Minute

// TestMain lets the test binary be a server process, see process.
func TestMain(m *testing.M) {
	if told := os.Getenv(planVariable); told != "" {
		serve(told)
		return
	}
	os.Exit(m.Run())
}

// soaking reports whether the long tests are to run.
func soaking() bool { return os.Getenv("RIPRAP_SOAK") != "" }

// patiently returns a context that ends when a test should have ended long ago.
func patiently(t testing.TB) context.Context {
	limit := patience
	if soaking() {
		limit = time.Hour
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// waitFor waits until a condition holds.
func waitFor(t testing.TB, ctx context.Context, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}
