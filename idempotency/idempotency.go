// Package idempotency lets a request that may be sent twice have its effect once. A [Middleware] gives each request that
// carries an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) to its handler once, keeps the answer, and replays it to
// whoever sends the same request again.
//
//	handler := idempotency.Middleware{Store: store, Scope: customer}.Handler(charge)
//
// That is effectively once, within the retention. What a crash does in the midst of a handler depends on the Store: with
// one that is a [Transactor] and with Transactional set, the handler's own writes and the record of the key are
// committed together, and there is no midst. Otherwise the key is held as unknown, until somebody finds out and resolves it, or the
// request is executed again, as the Middleware says.
package idempotency

import (
	"context"
	"net/http"
	"time"
)

// A Middleware runs each keyed request once. Store and Scope are required. A Middleware is plain data; its Handler may be
// used by many goroutines at once.
type Middleware struct {
	// Store keeps the records. Required.
	Store Store

	// Scope says who is asking: the tenant, customer or account that the request was authenticated for. Keys of one scope
	// know nothing of those of another. A request for which it returns "" is refused. Required: who has one tenant only says
	// SingleTenant.
	Scope func(*http.Request) string

	// Transactional commits the handler's own writes and the record of the key together. The Store must be a Transactor, and
	// the handler must write through the transaction that the store gives it (sqlstore.Tx). It implies Reexecute.
	Transactional bool

	// Reexecute lets a request be run again whose run came to nothing: its process ended, or lost the store for longer than the
	// lease. Without it such a key is held as unknown until it is resolved.
	Reexecute bool

	// Optional lets requests without a key pass as they are. Otherwise they are refused with 400.
	Optional bool

	// Methods are those that keys are for. Nil means POST and PATCH. All other requests pass as they are.
	Methods []string

	// Lease is how long a run holds its key without a sign of life. It is renewed while the handler works. Zero means a
	// minute; Handler panics if it is less than a millisecond.
	Lease time.Duration

	// Retention is how long an answer is kept; after that the key is new. It is published in the answers, in seconds
	// (Idempotency-Retention). Zero means 24 hours; less than a second cannot be.
	Retention time.Duration

	// MaxRun bounds a run: the handler's context ends, and the lease of a handler that goes on regardless is no longer renewed.
	// Zero means five minutes, negative none.
	MaxRun time.Duration

	// Attached lets the handler's context end with the request's: when the client leaves, or with a deadline that an outer
	// handler set. Otherwise the run goes on, so that the client finds the answer when it comes back.
	Attached bool

	// Wait is how long a request waits for the answer of an earlier one that is still running, before it is told to come back
	// (409). Zero means that it does not wait.
	Wait time.Duration

	// MaxWaiting bounds how many wait at once; further ones are told to come back. Zero means 100.
	MaxWaiting int

	// MaxBody is the largest request body in bytes; a larger one is refused with 413. Zero means 1 MiB.
	MaxBody int64

	// MaxAnswer is the largest response body in bytes that is kept. A larger one goes to the client whole, and whoever sends
	// the request again is told that it was run and that its answer was not kept. Zero means 1 MiB.
	MaxAnswer int64

	// ReleaseErrors makes the key free after a 5xx, so that the same request runs again. Otherwise a 5xx is an answer like any
	// other, since the handler had begun and may have had an effect. In a transactional Middleware a 5xx rolls
	// back and makes the key free in any case. What the handler declares goes before both.
	ReleaseErrors bool

	// KeepHeaders are further response fields that are kept and replayed, besides Content-Type, Content-Encoding and others that
	// describe the answer. Set-Cookie, credentials, Date and fields of the connection cannot be among them.
	KeepHeaders []string

	// Operation names what is asked; a key belongs to one operation. Nil means method and path, and the host if the route's pattern
	// names one. With one name for all, a key that comes back with another method or path is refused with 422, instead of being
	// another key.
	Operation func(*http.Request) string

	// Fingerprint tells whether two requests are the same. Nil means the SHA-256 of method, path, query, Content-Type and
	// body. One of your own may leave out what differs between sends, in the query too; its result is hashed together with method and path.
	Fingerprint func(r *http.Request, body []byte) []byte

	// MismatchStatus is the status of the refusal of a key that came before with another request. Zero means 422 (Unprocessable
	// Content), as the draft has it; some services say 400 or 409. Its problem type is the same with each.
	MismatchStatus int

	// QuotedOnly refuses keys that are not written as the draft has it, as a quoted string ("abc" with its quotes). Otherwise the
	// bare form (abc), which most clients send, names the same key.
	QuotedOnly bool

	// CheckKey, if set, looks at each key further: its length or form. Its error is part of the answer (400).
	CheckKey func(key string) error

	// MayReplay, if set, is asked before an answer is replayed, whether the caller may still see it. If not: 403.
	MayReplay func(*http.Request) bool

	// FailOpen runs requests without any protection while the store cannot be asked, and says so each time to Observe. Otherwise
	// they are refused with 503, as they are when the store is full. It does not go with Transactional.
	FailOpen bool

	// Observe is told of every request with a key what became of it. Nil means Log(nil).
	Observe func(context.Context, Event)
}
