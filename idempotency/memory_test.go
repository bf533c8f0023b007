package idempotency

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// claimOf returns the claim of a key that a number stands for. Neighbours are far apart among the shards.
func claimOf(n int) Claim {
	c := Claim{Fingerprint: []byte{1}, Operation: "POST /charges", Lease: time.Minute, Retention: time.Hour}
	binary.BigEndian.PutUint64(c.ID[:], uint64(n+1)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(c.Owner[:], rand.Uint64())
	return c
}

func take(t *testing.T, m *Memory, c Claim) Ticket {
	t.Helper()
	claimed, err := m.Claim(t.Context(), c)
	if err != nil || claimed.Generation == 0 {
		t.Fatalf("Claim = %+v, %v, want a key that is taken", claimed, err)
	}
	return c.Ticket(claimed.Generation)
}

func finish(t *testing.T, m *Memory, c Claim, body int, retention time.Duration) {
	t.Helper()
	if err := m.Complete(t.Context(), take(t, m, c), Answer{Status: 200, Body: make([]byte, body)}, retention); err != nil {
		t.Fatalf("Complete: %v", err)
	}
}

// has reports whether there is a record of a key.
func has(t *testing.T, m *Memory, c Claim) bool {
	t.Helper()
	_, err := m.Show(t.Context(), c.ID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatalf("Show: %v", err)
	}
	return err == nil
}

// account compares what Memory counts with what it holds.
func account(t *testing.T, m *Memory) {
	t.Helper()
	var entries, bytes int64
	for i := range m.shards {
		for _, r := range m.shards[i].records {
			entries++
			bytes += r.kept.size()
		}
	}
	if e, b := m.entries.Load(), m.answers.Load(); e != entries || b != bytes {
		t.Errorf("Memory counts %d keys and %d bytes of answers, and holds %d and %d", e, b, entries, bytes)
	}
}

func TestMemoryRefusesFingerprintsOfOtherLengths(t *testing.T) {
	for _, size := range []int{0, 65} {
		c := claimOf(0)
		c.Fingerprint = make([]byte, size)
		if claimed, err := new(Memory).Claim(t.Context(), c); err == nil {
			t.Errorf("Claim with a fingerprint of %d bytes = %+v, want an error", size, claimed)
		}
	}
}

func TestMemoryMeasuresLeaseAgeAndRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Memory{}
		c := claimOf(0)
		begun := time.Now()
		ticket := take(t, m, c)
		time.Sleep(20 * time.Second)
		if claimed, _ := m.Claim(t.Context(), c); claimed.Age != 20*time.Second || claimed.Lease != 40*time.Second {
			t.Errorf("after 20s of a minute: age %v, lease %v, want 20s and 40s", claimed.Age, claimed.Lease)
		}
		if err := m.Renew(t.Context(), ticket, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		r, err := m.Show(t.Context(), c.ID)
		if err != nil || !r.Begun.Equal(begun) || r.Lease != 2*time.Hour || r.Retention != 2*time.Hour {
			t.Errorf("Show = %+v, %v, want begun %v, and lease and retention of 2h", r, err, begun)
		}
		if err := m.Complete(t.Context(), ticket, Answer{Status: 200}, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - 1)
		if claimed, _ := m.Claim(t.Context(), c); claimed.Verdict != ClaimReplay {
			t.Errorf("a nanosecond before the end of the retention: %v, want ClaimReplay", claimed.Verdict)
		}
		time.Sleep(time.Nanosecond)
		if claimed, _ := m.Claim(t.Context(), c); claimed.Verdict != ClaimWon {
			t.Errorf("at the end of the retention: %v, want ClaimWon", claimed.Verdict)
		}
	})
}

func FuzzKeptAnswer(f *testing.F) {
	f.Add(200, "Etag", "a", "Link", "b", []byte("body"))
	f.Add(0, "", "", "", "\xff\x00", []byte(nil))
	f.Add(999, "A", string(make([]byte, 300)), "A", "", []byte{0})
	f.Fuzz(func(t *testing.T, status int, name1, value1, name2, value2 string, body []byte) {
		a := Answer{Status: status, Header: http.Header{}, Body: body}
		a.Header[name1] = append(a.Header[name1], value1, value2)
		a.Header[name2] = append(a.Header[name2], value2)
		k := keep(a)
		got := k.answer()
		if got.Status != status || !bytes.Equal(got.Body, body) || len(got.Header) != len(a.Header) {
			t.Errorf("kept %+v as %+v", a, got)
		}
		for name, values := range a.Header {
			for i, value := range values {
				if len(got.Header[name]) != len(values) || got.Header[name][i] != value {
					t.Errorf("kept field %q: %q as %q", name, values, got.Header[name])
				}
			}
		}
	})
}

func TestEndsComeInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var h endHeap
		var last, pushed, popped int64
		for range random.IntN(100) {
			pushed++
			h.push(int64(random.IntN(50)), &memoryRecord{})
		}
		for len(h) > 0 {
			at := h[0].at
			if at < last {
				t.Fatalf("end %d after %d", at, last)
			}
			last = at
			h.pop()
			popped++
		}
		if pushed != popped {
			t.Fatalf("%d ends went in and %d came out", pushed, popped)
		}
	}
}
