package stores

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// statements counts what is asked of PostgreSQL.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestAClaimIsOneRoundTripWhateverItFinds(t *testing.T) {
	_, dsn := openPostgreSQL(t)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var asked statements
	config.Tracer = &asked
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { db.Close() })
	s := sqlstore.PostgreSQL(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, unknown := newClaim("a"), newClaim("unknown")
	other.Fingerprint = []byte{9}
	if err := s.Suspend(t.Context(), mustClaim(t, s, unknown)); err != nil {
		t.Fatal(err)
	}
	first := newClaim("a")
	for _, step := range []struct {
		claim idempotency.Claim
		want  idempotency.Verdict
	}{
		{first, idempotency.ClaimWon},
		{newClaim("a"), idempotency.ClaimInFlight},
		{other, idempotency.ClaimMismatch},
		{newClaim("unknown"), idempotency.ClaimUnknown},
		{newClaim("a"), idempotency.ClaimReplay},
	} {
		if step.want == idempotency.ClaimReplay {
			if err := s.Complete(t.Context(), first.Ticket(1), created, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		before := asked.n.Load()
		got, err := s.Claim(t.Context(), step.claim)
		if n := asked.n.Load() - before; err != nil || got.Verdict != step.want || n != 1 {
			t.Errorf("Claim: %+v, %v, after %d statements, want verdict %d after one", got, err, n, step.want)
		}
	}
}
