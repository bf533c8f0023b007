package storetest

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// everyByte has each value that a byte can have.
func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// latin1 has the bytes that a header value may have (RFC 9110, section 5.5), those that are no UTF-8 among them.
func latin1() string {
	return "\t" + string(everyByte()[0x20:0x7f]) + string(everyByte()[0x80:])
}

var answerChecks = []check{
	{name: "an answer is replayed to the byte", run: func(s *trial) {
		for _, a := range []struct {
			name string
			idempotency.Answer
		}{
			{"with every byte in its body", idempotency.Answer{Status: 200, Body: everyByte()}},
			{"with every byte in its header", idempotency.Answer{Status: 200, Header: http.Header{"X-Text": {latin1()}}, Body: []byte("x")}},
			{"with repeated fields", idempotency.Answer{Status: 201, Header: http.Header{
				"Link": {"<b>; rel=next", "<a>; rel=prev", "<b>; rel=next"}, "Etag": {`"x"`}, "Content-Encoding": {"gzip"},
			}}},
			{"with an empty field", idempotency.Answer{Status: 200, Header: http.Header{"X-Empty": {"", ""}}}},
			{"with a field as it should not be spelled", idempotency.Answer{Status: 200, Header: http.Header{"x-lower": {"a"}, "X-Lower": {"b"}}}},
			{"with a long field", idempotency.Answer{Status: 200, Header: http.Header{"X-Long": {strings.Repeat("long ", 20_000)}}}},
			{"with JSON that says a name twice", idempotency.Answer{Status: 200, Body: []byte(` {"b":1, "a":2,"a":3.0 }` + "\n")}},
			{"with zeros at its end", idempotency.Answer{Status: 200, Body: []byte("a\x00\x00")}},
			{"without a body", idempotency.Answer{Status: http.StatusNoContent, Header: http.Header{"Location": {"/x"}}}},
			{"with an empty body", idempotency.Answer{Status: 200, Body: []byte{}}},
			{"without anything", idempotency.Answer{Status: 200}},
			{"with the least status", idempotency.Answer{Status: 100, Body: []byte("x")}},
			{"with the greatest status", idempotency.Answer{Status: 999, Body: []byte("x")}},
		} {
			c := newClaim()
			s.complete(s.take(c), a.Answer)
			for range 2 {
				s.replays(c, a.Answer, a.name)
			}
		}
	}},
	{name: "a large answer is replayed to the byte", run: func(s *trial) {
		body := make([]byte, 8<<20)
		random := rand.NewChaCha8([32]byte{1})
		random.Read(body)
		a := idempotency.Answer{Status: 200, Header: http.Header{"Content-Type": {"application/pdf"}}, Body: body}
		c := newClaim()
		s.complete(s.take(c), a)
		s.replays(c, a, "of 8 MiB")
	}},
	{name: "a tombstone has a status and nothing else", run: func(s *trial) {
		c := newClaim()
		a := idempotency.Answer{Status: http.StatusCreated, Tombstone: true}
		s.complete(s.take(c), a)
		s.replays(c, a, "as a tombstone")
		s.expect(another(c), idempotency.ClaimMismatch, "of another request, the key a tombstone")
	}},
	{name: "what is kept does not change with what was given", run: func(s *trial) {
		c := newClaim()
		given := again(c)
		given.Fingerprint = bytes.Clone(c.Fingerprint)
		t := s.take(given)
		given.Fingerprint[0] ^= 1
		s.expect(again(c), idempotency.ClaimInFlight, "after the caller changed its fingerprint")

		body := "the body"
		a := idempotency.Answer{Status: 200, Header: http.Header{"Etag": {"a", "b"}}, Body: []byte(body)}
		s.complete(t, a)
		for range 2 {
			a.Body[0], a.Header["Etag"][0] = 'X', "X"
			a.Header["X-New"] = []string{"X"}
			want := idempotency.Answer{Status: 200, Header: http.Header{"Etag": {"a", "b"}}, Body: []byte(body)}
			if a = s.expect(again(c), idempotency.ClaimReplay, "of a completed key").Answer; differ(a, want) != "" {
				s.Fatalf("an answer changed with what its callers hold: %s", differ(a, want))
			}
		}
	}},
	{name: "an answer is gone with its retention", run: func(s *trial) {
		c := newClaim()
		s.must("Complete", s.store.Complete(s.Context(), s.take(c), answer(), over))
		t := s.take(again(c))
		s.expect(again(c), idempotency.ClaimInFlight, "of a key that is held anew")
		a := idempotency.Answer{Status: http.StatusNoContent}
		s.must("Complete", s.store.Complete(s.Context(), t, a, time.Hour))
		s.replays(c, a, "after another one whose retention was over")
	}},
}
