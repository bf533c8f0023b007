package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// attempts bounds how often something is tried that met somebody else at the same record. Each time that one got on, so it is only
// for who is overtaken again and again.
const attempts = 32

// retry runs a statement until it meets no other.
func retry(ctx context.Context, statement func() error) (err error) {
	for n := range attempts {
		if err = statement(); !conflict(err) {
			return err
		}
		pause(ctx, n)
	}
	return err
}

// conflict reports whether a statement of PostgreSQL met another one and is to be tried again: a serialization failure or a deadlock. Drivers
// agree on how to ask for the code.
func conflict(err error) bool {
	e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	return ok && (e.SQLState() == "40001" || e.SQLState() == "40P01")
}

// pause waits after the nth conflict. Where all transactions are serializable, statements conflict that have no more in common than a page of an
// index, and those of many who try again at once would do so for ever.
func pause(ctx context.Context, n int) {
	wait := time.NewTimer(time.Duration(rand.Float64() * float64(time.Millisecond<<min(n, 6))))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done(): // the next statement says so
	}
}
