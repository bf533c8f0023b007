package riprap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// The hand-written loop that Do is measured against: what a careful programmer writes without a library, the
// check of the caller's context included.
func loop(ctx context.Context, attempts int, op func(context.Context) error) (err error) {
	for range attempts {
		if err = ctx.Err(); err != nil {
			return err
		}
		if err = op(ctx); err == nil {
			return nil
		}
	}
	return err
}

var errFlaky = errors.New("flaky")

func succeed(context.Context) error { return nil }

func BenchmarkDo(b *testing.B) {
	ctx := context.Background()
	b.Run("impl=loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			loop(ctx, 4, succeed)
		}
	})
	b.Run("impl=riprap", func(b *testing.B) {
		b.ReportAllocs()
		p := &riprap.Policy{}
		for b.Loop() {
			riprap.Do(ctx, p, succeed)
		}
	})
}

func BenchmarkDoBudget(b *testing.B) {
	ctx := context.Background()
	b.Run("impl=loop+clock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			loop(ctx, 4, succeed)
			_ = time.Now()
		}
	})
	b.Run("impl=riprap", func(b *testing.B) {
		b.ReportAllocs()
		p := &riprap.Policy{Budget: &riprap.Budget{}}
		for b.Loop() {
			riprap.Do(ctx, p, succeed)
		}
	})
}

func BenchmarkDoBound(b *testing.B) {
	ctx := context.Background()
	b.Run("impl=loop+WithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			loop(ctx, 4, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return succeed(ctx)
			})
		}
	})
	for name, p := range map[string]riprap.Policy{
		"attempt": {AttemptTimeout: time.Second},
		"total":   {Timeout: time.Second},
		"both":    {AttemptTimeout: time.Second, Timeout: 2 * time.Second},
	} {
		b.Run("impl=riprap-"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				riprap.Do(ctx, &p, succeed)
			}
		})
	}
}

func BenchmarkRetries(b *testing.B) {
	ctx := context.Background()
	op := func() func(context.Context) error {
		n := 0
		return func(context.Context) error {
			if n++; n%3 != 0 {
				return errFlaky
			}
			return nil
		}
	}
	b.Run("impl=loop+NewTimer", func(b *testing.B) {
		b.ReportAllocs()
		op := op()
		for b.Loop() {
			loop(ctx, 4, func(ctx context.Context) error {
				err := op(ctx)
				if err != nil {
					t := time.NewTimer(1)
					<-t.C
				}
				return err
			})
		}
	})
	b.Run("impl=riprap", func(b *testing.B) {
		b.ReportAllocs()
		p := &riprap.Policy{Backoff: riprap.Backoff{Base: 1, Max: 1}}
		op := op()
		for b.Loop() {
			riprap.Do(ctx, p, op)
		}
	})
}
