package idempotency

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Errors of a Store, besides those of what it is made of.
var (
	// ErrFenced: the key is not, or no longer, held by the owner and generation of the Ticket. What it wanted to write is
	// not written.
	ErrFenced = errors.New("idempotency: the key is held by another run")

	// ErrFull: the Store is bounded and all that it holds is still needed.
	ErrFull = errors.New("idempotency: the store is full of keys that are still needed")

	// ErrNotFound: there is no record with that ID.
	ErrNotFound = errors.New("idempotency: no such key")
)

// A Store keeps the records of keys. Every method is one atomic step, whoever calls at once and from wherever, and by the
// clock of the store itself. What the state machine is made of:
//
//	           Claim                 Complete
//	absent ───────────► in progress ───────────► completed ──retention──► absent
//	   ▲                 │   │    ▲ Renew            ▲
//	   └─────Release─────┘   │    └ Claim, after the lease, if both claims say Reexecute
//	                         └─Suspend, or the lease ran out──► unknown ──Resolve──► completed, absent
//
// A run that holds a key may renew or end it for as long as nobody took the key over or resolved it, its lease over or not. No Claim that is
// not won changes anything. After Complete, Release or Suspend the run does not hold the key any more.
//
// A duration of zero or less is over at once, and one of centuries is none too many. With a context that ended, a method
// returns an error and does nothing; if it ends on the way, the step is done or not done. Package storetest has the
// suite that every Store passes.
//
// All methods may be called by many goroutines at once. A Store neither keeps nor changes the byte slices and headers that it
// is given; those that it returns are the caller's.
type Store interface {
	// Claim takes a key that is free, or tells what stands in the way. What it looks at, in this order:
	//
	//   - no record, or a completed one whose retention is over, or one in progress whose lease and retention are both
	//     over and that may be executed again: ClaimWon, with a generation above all that the record has had;
	//   - another fingerprint: ClaimMismatch, whatever the state;
	//   - completed: ClaimReplay, with the answer;
	//   - marked as unknown: ClaimUnknown;
	//   - in progress within its lease: ClaimInFlight;
	//   - in progress and its lease is over: ClaimStolen if this claim and the one that it takes the key from both say
	//     Reexecute, else ClaimUnknown.
	//
	// An error means that nothing is known: the key may have been taken.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// Renew lets the lease of a key end that much from now, and its retention not before that. ErrFenced if the ticket does not
	// hold the key.
	Renew(ctx context.Context, t Ticket, lease time.Duration) error

	// Complete keeps the answer for as long as retention from now. ErrFenced if the ticket does not hold the key. It may be
	// called again after an error: if it had been done already, by the same ticket, that is no error and changes nothing. What an
	// operator resolved is not the ticket's any more.
	Complete(ctx context.Context, t Ticket, a Answer, retention time.Duration) error

	// Release makes the key free: nothing happened. ErrFenced if the ticket does not hold the key.
	Release(ctx context.Context, t Ticket) error

	// Suspend marks the key as unknown, until it is resolved, whatever becomes of lease and retention. ErrFenced if the ticket does not hold the key; it may be called
	// again after an error, as Complete.
	Suspend(ctx context.Context, t Ticket) error
}

// A Transactor is a Store that can keep an answer in the same transaction as the handler's own writes.
type Transactor interface {
	Store

	// Transact returns a context for the handler, from which it gets the transaction in the way of the store at hand, and
	// the handle by which the Middleware ends it. Nothing is begun until the handler asks.
	Transact(ctx context.Context, t Ticket) (context.Context, Transaction)
}

// A Transaction is the handler's, if it asked for one. It is used by one goroutine, but for Renew. After Commit or Rollback
// the handler gets no transaction any more.
type Transaction interface {
	// Renew is the Store's, as long as no transaction was begun: that one holds the key by its lock, and Renew does nothing.
	Renew(ctx context.Context, lease time.Duration) error

	// Commit keeps the answer and the handler's writes together, or neither. Without a transaction it is the Store's Complete.
	//
	// A nil error: both are durable. ErrFenced or ErrNotCommitted: surely neither is, and the key is held as before, or by
	// another run. ErrSuspended: the handler's writes may be durable without the answer, and the key is unknown. Any other error: it is not known. Commit has then asked the store again already, and the caller may call
	// Commit again to ask once more.
	Commit(ctx context.Context, a Answer, retention time.Duration) error

	// Rollback undoes the handler's writes. The key stays held. It may be called at any time, and does nothing after Commit.
	Rollback() error
}

// What Commit returns besides ErrFenced if it is known what became of the transaction.
var (
	// ErrNotCommitted: surely nothing was written.
	ErrNotCommitted = errors.New("idempotency: the transaction was not committed")

	// ErrSuspended: the transaction ended before the handler did, by a statement of its own or of the database, and the key is unknown.
	ErrSuspended = errors.New("idempotency: the key is unknown")
)

// An Operator lists and resolves the records of a Store: what people do about keys that are stuck or of which nobody knows
// what happened.
type Operator interface {
	// List returns records in the order of their IDs, at most limit of them, and only those after the given ID.
	List(ctx context.Context, f Filter) ([]Record, error)

	// Show returns a record with its answer, or ErrNotFound.
	Show(ctx context.Context, id ID) (Record, error)

	// Resolve ends a record that is unknown, or in progress with its lease over: with an answer, which is kept for retention and
	// replayed from now on, or without one, so that the key is free and the request can run again. ErrNotFound if there is no
	// such record, ErrSettled if it is completed or its lease is not over. The run that held it is fenced off.
	Resolve(ctx context.Context, id ID, a *Answer, retention time.Duration) error

	// Reap deletes at most limit records that nobody needs: completed ones whose retention is over, and those in progress whose lease and
	// retention are over and that may be executed again. Never one that is live or unknown. Any number of processes may reap at once.
	Reap(ctx context.Context, limit int) (deleted int, err error)
}

// ErrSettled: there is nothing to resolve about the record.
var ErrSettled = errors.New("idempotency: the key is completed, or a run still holds it")

// A Claim asks for a key.
type Claim struct {
	ID          ID            // of the key
	Fingerprint []byte        // of the request, 1 to 64 bytes
	Owner       Owner         // who asks: another one for each attempt, and never used again
	Operation   string        // what operators see: method and pattern, without what is private; at most 255 bytes of UTF-8 without NUL
	Lease       time.Duration // for how long the key is held, unless it is renewed
	Retention   time.Duration // for how long it is remembered if its run comes to nothing
	Reexecute   bool          // the request may run again if its run came to nothing
}

// Ticket returns the ticket of a claim that was won with this generation.
func (c Claim) Ticket(generation int64) Ticket { return Ticket{c.ID, c.Owner, generation} }

// A Ticket proves that a run holds a key. Owner and Generation fence it together: a generation begins again with 1 after a
// Release, and the owner tells the two apart.
type Ticket struct {
	ID         ID    // of the key
	Owner      Owner // of the Claim
	Generation int64 // above zero
}

// An Owner is one attempt to run a request, random.
type Owner [16]byte

// A Verdict is what became of a Claim.
type Verdict int

const (
	ClaimWon      Verdict = iota + 1 // the key is taken: run the request
	ClaimStolen                      // the same, and an earlier run may have had effects
	ClaimInFlight                    // another run holds the key
	ClaimReplay                      // it was run: here is the answer
	ClaimMismatch                    // the key belongs to another request
	ClaimUnknown                     // it was run, and nobody knows how far it came
)

// String returns the name of the verdict as it stands in the code.
func (v Verdict) String() string {
	names := [...]string{ClaimWon: "ClaimWon", ClaimStolen: "ClaimStolen", ClaimInFlight: "ClaimInFlight",
		ClaimReplay: "ClaimReplay", ClaimMismatch: "ClaimMismatch", ClaimUnknown: "ClaimUnknown"}
	if v < ClaimWon || int(v) >= len(names) {
		return "verdict(" + strconv.Itoa(int(v)) + ")"
	}
	return names[v]
}

// Claimed is the answer to a Claim.
type Claimed struct {
	Verdict    Verdict       // never zero without an error
	Generation int64         // ClaimWon, ClaimStolen: of the Ticket
	Age        time.Duration // ClaimInFlight: since the run began
	Lease      time.Duration // ClaimInFlight: what is left of it
	Answer     Answer        // ClaimReplay
}

// An Answer is a response as it is kept.
type Answer struct {
	Status int         // 100 to 999
	Header http.Header // fields in the order of their values; the names are kept as they are
	Body   []byte      // as it goes over the wire, Content-Encoding and all

	// Tombstone: there was an answer, and it was not kept, because it was streamed, too large or secret. Header and Body
	// are empty.
	Tombstone bool
}

// A State is that of a Record.
type State int

const (
	StateInProgress State = iota + 1 // a run holds the key, or held it until its lease was over
	StateCompleted                   // its answer is kept
	StateUnknown                     // a run ended, and nobody knows how far it came
)

// A Record is what a Store knows of a key.
type Record struct {
	ID         ID            // of the key
	State      State         // never zero
	Operation  string        // of the Claim, as what follows
	Owner      Owner         // that of the run; the zero one if an operator resolved the key
	Generation int64         // of the run
	Reexecute  bool          // the request may run again if its run came to nothing
	Begun      time.Time     // by the clock of the store: when the key was taken
	Lease      time.Duration // what is left of it; zero or less: it is over
	Retention  time.Duration // what is left of it
	Answer     *Answer       // of a completed one; List leaves Header and Body out
}

// A Filter picks records.
type Filter struct {
	After ID   // the zero ID: from the first one
	Limit int  // zero means 100
	Stuck bool // only those that wait for somebody: unknown ones, and lost runs that must not be executed again by themselves
}
