package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// askTime bounds what is done about a transaction when nobody waits for it any more: to roll it back, and to find out whether it
// was committed.
const askTime = 5 * time.Second

var (
	errNone  = errors.New("sqlstore: no transaction: the context is not that of a request in a transactional middleware")
	errOver  = errors.New("sqlstore: no transaction any more: the request has been answered")
	errGone  = fmt.Errorf("sqlstore: the transaction was rolled back while the handler went on, and what it wrote after that may be kept by itself: %w", idempotency.ErrSuspended)
	errEnded = fmt.Errorf("sqlstore: the handler committed the transaction by itself, and its writes are kept without the answer: %w", idempotency.ErrSuspended)
)

type transactionKey struct{}

// Tx returns the transaction of the request whose context it is given. The first call begins it, and takes the key for its
// length: nobody can take the key over in between. Every further call returns the same one. The middleware commits it together with
// the answer, or rolls it back; a handler must do neither, and has its statements use ctx so that they end with it.
//
// The error is [idempotency.ErrFenced] if the request has lost its key to another run; the handler should give up then. Outside
// of a request in a Transactional [idempotency.Middleware], and after the answer, there is no transaction: an error too.
func Tx(ctx context.Context) (*sql.Tx, error) {
	t, ok := ctx.Value(transactionKey{}).(*transaction)
	if !ok {
		return nil, errNone
	}
	return t.begin(ctx)
}

// Transact implements [idempotency.Transactor]. The handler gets its transaction by [Tx].
func (s *Store) Transact(ctx context.Context, t idempotency.Ticket) (context.Context, idempotency.Transaction) {
	tx := &transaction{store: s, ticket: t, turn: make(chan struct{}, 1)}
	tx.ctx = context.WithValue(ctx, transactionKey{}, tx)
	return tx.ctx, tx
}

type transaction struct {
	store  *Store
	ticket idempotency.Ticket
	ctx    context.Context // the handler's

	// turn is held for one step, by who has put something in. It is not a mutex, since the steps ask the database and
	// must end with their context. It guards what follows.
	turn chan struct{}

	tx     *sql.Tx     // once begun
	cancel func()      // rolls it back, or stops a commit
	detach func() bool // so that the end of ctx does not cancel
	leave  func()      // the queue of writers

	fenced bool
	failed error // why the handler, when it last asked, got no transaction
	over   bool  // no transaction any more
	kept   bool  // the answer is
	gone   bool  // it was rolled back while the handler went on
	doubt  error // why a commit failed: what became of it has to be asked
}

func (t *transaction) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil // whatever became of ctx: a commit may have to be asked about because that has ended
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *transaction) give() { <-t.turn }

func (t *transaction) begin(ctx context.Context) (*sql.Tx, error) {
	if err := t.take(ctx); err != nil {
		return nil, err
	}
	defer t.give()
	switch {
	case t.over:
		return nil, errOver
	case t.fenced:
		return nil, idempotency.ErrFenced
	case t.tx != nil:
		return t.tx, nil
	}
	err := retry(ctx, t.tryBegin)
	if errors.Is(err, idempotency.ErrFenced) {
		t.fenced = true
		return nil, err
	}
	if t.failed = err; err != nil {
		return nil, fmt.Errorf("sqlstore: begin: %w", err)
	}
	return t.tx, nil
}

// tryBegin begins the transaction with the statement that takes the key. With that as the first one the transaction sees all
// that was committed before it had the key, and SQLite's has the right to write from the start: one that reads first may lose it, at once
// and whatever its busy_timeout.
func (t *transaction) tryBegin() error {
	fence, err := t.store.stmt(t.ctx, t.store.fence)
	for _, query := range []string{t.store.intact, t.store.seal} { // Commit has no connection to spare
		if err == nil {
			_, err = t.store.stmt(t.ctx, query)
		}
	}
	if err != nil {
		return err
	}
	// The transaction ends with the handler's context, up to the commit, and then with that of Commit.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
	t.cancel = cancel
	leave, err := t.store.writers.enter(t.ctx)
	if err != nil {
		cancel()
		return err
	}
	t.leave = sync.OnceFunc(leave)
	t.detach = context.AfterFunc(t.ctx, func() {
		cancel()
		t.leave() // a handler that does not end with its context must not keep the others waiting
	})
	tx, err := t.store.db.BeginTx(ctx, nil)
	if err != nil {
		t.finish()
		return err
	}
	n, err := execTx(t.ctx, tx, fence, t.store.fence, t.ticket.ID[:], t.ticket.Owner[:], t.ticket.Generation)
	if err == nil && n == 0 {
		err = idempotency.ErrFenced
	}
	if err != nil {
		tx.Rollback()
		t.finish()
		return err
	}
	t.tx = tx
	return nil
}

// finish gives away what was taken for the transaction, which has ended.
func (t *transaction) finish() {
	t.detach()
	t.cancel()
	t.leave()
}

func execTx(ctx context.Context, tx *sql.Tx, st *sql.Stmt, query string, args ...any) (int64, error) {
	var result sql.Result
	var err error
	if st != nil {
		result, err = tx.StmtContext(ctx, st).ExecContext(ctx, args...)
	} else {
		result, err = tx.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Renew implements [idempotency.Transaction].
func (t *transaction) Renew(ctx context.Context, lease time.Duration) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.give()
	if t.tx != nil || t.over {
		// The transaction holds the key by its lock, which another connection would wait for.
		return nil
	}
	return t.store.Renew(ctx, t.ticket, lease)
}

// Commit implements [idempotency.Transaction].
func (t *transaction) Commit(ctx context.Context, a idempotency.Answer, retention time.Duration) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.give()
	switch {
	case t.kept:
		return nil
	case t.gone:
		return t.strand(ctx)
	case t.doubt != nil:
		return t.ask(ctx, t.doubt)
	case t.tx == nil && t.failed != nil:
		return fmt.Errorf("%w: the handler got no transaction: %w", idempotency.ErrNotCommitted, t.failed)
	case t.tx == nil:
		err := t.store.Complete(ctx, t.ticket, a, retention)
		t.kept = err == nil
		t.over = t.over || t.kept || errors.Is(err, idempotency.ErrFenced)
		return err
	case t.over:
		return fmt.Errorf("%w: it was rolled back", idempotency.ErrNotCommitted)
	}
	t.over = true
	switch err := t.sealAndCommit(ctx, a, retention); {
	case t.gone:
		return t.strand(ctx)
	case err != nil:
		return t.ask(ctx, err)
	}
	t.kept = true
	return nil
}

func (t *transaction) sealAndCommit(ctx context.Context, a idempotency.Answer, retention time.Duration) error {
	defer t.finish()
	t.detach()
	if t.look(); t.gone {
		t.tx.Rollback()
		return errGone
	}
	defer context.AfterFunc(ctx, t.cancel)()
	seal, err := t.store.stmt(ctx, t.store.seal)
	if err != nil {
		t.tx.Rollback()
		return err
	}
	args := append([]any{t.ticket.ID[:], t.ticket.Owner[:], t.ticket.Generation}, answerArgs(a, retention)...)
	n, err := execTx(ctx, t.tx, seal, t.store.seal, args...)
	if err == nil && n == 0 {
		t.gone, err = true, errGone
	}
	if err != nil {
		t.tx.Rollback()
		return err
	}
	return t.tx.Commit()
}

// look finds out whether the transaction is still the one that was begun. SQLite rolls all of it back when a statement is interrupted by
// the end of its context, when the disk is full, or when a statement says so (OR ROLLBACK); what the handler writes after that is
// committed statement by statement. PostgreSQL refuses whatever comes after an error.
func (t *transaction) look() {
	if t.store.dialect != sqlite {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), askTime)
	defer cancel()
	st, err := t.store.stmt(ctx, t.store.intact)
	if err == nil {
		err = t.tx.StmtContext(ctx, st).QueryRowContext(ctx, t.ticket.ID[:], t.ticket.Owner[:], t.ticket.Generation).Scan(new(int))
	}
	t.gone = errors.Is(err, sql.ErrNoRows)
}

// strand marks the key as unknown: the transaction is gone, and nobody knows what the handler wrote after it.
func (t *transaction) strand(ctx context.Context) error {
	if err := t.store.Suspend(ctx, t.ticket); err != nil {
		return err
	}
	return errGone
}

// ask finds out what became of the transaction, which failed for a reason. It has no connection any more, and gets another one; it
// waits for the transaction if that is still at work. It does not end with ctx, which may be what ended the commit.
func (t *transaction) ask(ctx context.Context, reason error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	t.doubt = reason
	err := t.store.end(ctx, "ask about a commit", t.store.doubt, t.ticket)
	if err == nil {
		return fmt.Errorf("%w: %w", idempotency.ErrNotCommitted, reason)
	}
	if !errors.Is(err, idempotency.ErrFenced) {
		return fmt.Errorf("sqlstore: commit: %w (%w)", reason, err)
	}
	r, err := t.store.find(ctx, t.ticket.ID)
	switch {
	case err != nil:
		return fmt.Errorf("sqlstore: commit: %w (asked again: %w)", reason, err)
	case !r.heldBy(t.ticket):
		return idempotency.ErrFenced
	case r.is(idempotency.StateCompleted):
		return nil
	case r.is(idempotency.StateUnknown):
		return errEnded
	}
	return fmt.Errorf("sqlstore: commit: %w", reason)
}

// Rollback implements [idempotency.Transaction]. It fails only if there may be writes that it could not undo.
func (t *transaction) Rollback() error {
	t.turn <- struct{}{}
	defer t.give()
	if t.over || t.tx == nil {
		t.over = true
		return nil
	}
	t.over = true
	t.detach()
	late := time.AfterFunc(askTime, t.cancel)
	t.look()
	err := t.tx.Rollback()
	late.Stop()
	t.finish()
	if t.gone {
		return errGone
	}
	if !errors.Is(err, sql.ErrTxDone) {
		return nil // without a COMMIT there is none, whatever became of the connection
	}
	// It ended with its context, or the handler has ended it.
	if err = t.ask(t.ctx, err); errors.Is(err, idempotency.ErrNotCommitted) || errors.Is(err, idempotency.ErrFenced) {
		return nil
	}
	return err
}
