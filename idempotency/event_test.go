package idempotency_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
)

func TestTheLogWarnsOfTroubleOnly(t *testing.T) {
	trouble := map[idempotency.Kind]bool{
		idempotency.Suspended: true, idempotency.Unresolved: true, idempotency.Fenced: true, idempotency.Unavailable: true,
		idempotency.Unrecorded: true, idempotency.NotCommitted: true,
	}
	for kind := idempotency.Ran; kind <= idempotency.NotCommitted; kind++ {
		var out bytes.Buffer
		log := idempotency.Log(slog.New(slog.NewTextHandler(&out, nil)))
		id := idempotency.NewID("ann", "POST /charges", "secret-key")
		log(t.Context(), idempotency.Event{Kind: kind, ID: id, Operation: "POST /charges", Status: 503, Err: errors.New("disk full")})
		if got := out.Len() > 0; got != trouble[kind] {
			t.Errorf("%v is logged: %v, want %v", kind, got, trouble[kind])
		}
		for _, part := range []string{"level=WARN", kind.String(), id.String(), "POST /charges", "status=503", "disk full"} {
			if trouble[kind] && !strings.Contains(out.String(), part) {
				t.Errorf("the log of %v has no %s: %s", kind, part, out.String())
			}
		}
	}
}

func TestTheDefaultLogIsTheOneOfTheMoment(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	log := idempotency.Log(nil)
	var out bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	log(t.Context(), idempotency.Event{Kind: idempotency.Unresolved})
	if out.Len() == 0 {
		t.Errorf("nothing was logged to the default that was set afterwards")
	}
}

func TestNeitherLogNorAnswerNorStoreHoldsTheKey(t *testing.T) {
	var out bytes.Buffer
	const key = "very-secret-key"
	bubble(t, idempotency.Middleware{}, created, func(s *service) {
		log := idempotency.Log(slog.New(slog.NewTextHandler(&out, nil)))
		for _, got := range []answer{s.post(key, "a"), s.post(key, "a"), s.post(key, "b"), s.post(`"`+key, "a")} {
			if strings.Contains(got.body, key) {
				t.Errorf("the answer has the key: %s", got.body)
			}
		}
		for _, c := range s.store.claims {
			if kept := fmt.Sprintf("%s %s %q", c.Operation, c.Fingerprint, c.ID[:]); strings.Contains(kept, key) {
				t.Errorf("the store has the key: %s", kept)
			}
		}
		for _, e := range s.events {
			e.Kind = idempotency.Unresolved // so that it is logged
			log(s.t.Context(), e)
		}
	})
	if out.Len() == 0 || strings.Contains(out.String(), key) {
		t.Errorf("the log is empty or has the key: %s", out.String())
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for kind := idempotency.Ran; kind <= idempotency.NotCommitted; kind++ {
		name := kind.String()
		if name == "" || seen[name] {
			t.Errorf("Kind(%d) is called %q, which is empty or another's name", kind, name)
		}
		seen[name] = true
	}
	if got := idempotency.Kind(99).String(); got != "kind(99)" {
		t.Errorf("Kind(99) = %q", got)
	}
}
