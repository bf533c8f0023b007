package sqlstore

import (
	"database/sql"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestWhatAClaimFinds(t *testing.T) {
	const (
		over = -1
		left = time.Minute
	)
	type record struct {
		state            idempotency.State
		lease, retention time.Duration
		reexecute        bool
	}
	type claim struct {
		same      bool // fingerprint
		reexecute bool
	}
	same, again, other := claim{true, false}, claim{true, true}, claim{false, true}
	for _, test := range []struct {
		name string
		record
		claim
		want idempotency.Verdict
	}{
		{"an answer", record{idempotency.StateCompleted, over, left, false}, same, idempotency.ClaimReplay},
		{"the answer to another request", record{idempotency.StateCompleted, over, left, false}, other, idempotency.ClaimMismatch},
		{"an answer no longer kept", record{idempotency.StateCompleted, left, over, false}, same, idempotency.ClaimWon},
		{"another one's answer no longer kept", record{idempotency.StateCompleted, left, over, false}, other, idempotency.ClaimWon},
		{"a run", record{idempotency.StateInProgress, left, left, true}, again, idempotency.ClaimInFlight},
		{"a run longer than the retention", record{idempotency.StateInProgress, left, over, true}, again, idempotency.ClaimInFlight},
		{"a run of another request", record{idempotency.StateInProgress, left, left, true}, other, idempotency.ClaimMismatch},
		{"a dead run", record{idempotency.StateInProgress, over, left, true}, again, idempotency.ClaimStolen},
		{"a dead run of another request", record{idempotency.StateInProgress, over, left, true}, other, idempotency.ClaimMismatch},
		{"a dead run that this one may not repeat", record{idempotency.StateInProgress, over, left, true}, same, idempotency.ClaimUnknown},
		{"a dead run that may not be repeated", record{idempotency.StateInProgress, over, left, false}, again, idempotency.ClaimUnknown},
		{"a run dead for long", record{idempotency.StateInProgress, over, over, true}, other, idempotency.ClaimWon},
		{"a run dead for long that may not be repeated", record{idempotency.StateInProgress, over, over, false}, again, idempotency.ClaimUnknown},
		{"an unknown one", record{idempotency.StateUnknown, over, over, true}, again, idempotency.ClaimUnknown},
		{"an unknown one of another request", record{idempotency.StateUnknown, over, over, true}, other, idempotency.ClaimMismatch},
	} {
		const now = 1_700_000_000_000_000
		r := row{
			now:         now,
			state:       sql.Null[int64]{V: int64(test.state), Valid: true},
			fingerprint: []byte{1},
			reexecute:   sql.Null[bool]{V: test.record.reexecute, Valid: true},
			lease:       sql.Null[int64]{V: now + test.lease.Microseconds(), Valid: true},
			expires:     sql.Null[int64]{V: now + test.retention.Microseconds(), Valid: true},
		}
		c := idempotency.Claim{Fingerprint: []byte{2}, Reexecute: test.claim.reexecute}
		if test.same {
			c.Fingerprint = []byte{1}
		}
		if got := r.judge(c); got != test.want {
			t.Errorf("%s: judge gave %d, want %d", test.name, got, test.want)
		}
	}
}

func TestDurationsDoNotOverflow(t *testing.T) {
	for _, test := range []struct {
		micros int64
		want   time.Duration
	}{
		{1, time.Microsecond},
		{-1, -time.Microsecond},
		{math.MaxInt64, math.MaxInt64 / 1000 * 1000},
		{math.MinInt64, -math.MaxInt64 / 1000 * 1000},
	} {
		if got := duration(test.micros); got != test.want {
			t.Errorf("duration(%d) = %d, want %d", test.micros, got, test.want)
		}
	}
}

func TestAnOperationIsTextThatPostgreSQLTakes(t *testing.T) {
	for s, want := range map[string]string{
		"POST /größe":    "POST /größe",
		"POST /\xff\x00": "POST /\uFFFD\uFFFD",
	} {
		if got := text(s); got != want {
			t.Errorf("text(%q) = %q, want %q", s, got, want)
		}
	}
}
