package proxy

import (
	"context"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/keystore"
)

// openTime bounds how long the store may take to be opened and to get its tables.
const openTime = 15 * time.Second

// openStore opens the store that a name stands for, and makes what is not there yet.
func openStore(ctx context.Context, name string) (*keystore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return keystore.Place{DSN: name, Label: "store", Program: "riprap proxy"}.Make(ctx)
}
