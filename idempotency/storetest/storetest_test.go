package storetest_test

import (
	"testing"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(testing.TB) idempotency.Store { return &idempotency.Memory{} })
}
