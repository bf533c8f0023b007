package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A book is a Transactor for tests, by the clock of the bubble. Before and after each step a test can let it fail or wait.
type book struct {
	before, after func(ctx context.Context, step string) error // nil error: go on

	mu      sync.Mutex
	pages   map[idempotency.ID]*page
	steps   []string
	claims  []idempotency.Claim
	effects int // committed
}

type page struct {
	fingerprint []byte
	ticket      idempotency.Ticket
	state       idempotency.State
	reexecute   bool
	begun       time.Time
	lease       time.Time
	answer      idempotency.Answer
	retention   time.Time
}

var errDown = errors.New("the store is down")

func fails(ctx context.Context, hook func(context.Context, string) error, step string) error {
	if hook == nil {
		return nil
	}
	return hook(ctx, step)
}

func (b *book) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Claimed, error) {
	var claimed idempotency.Claimed
	err := b.step(ctx, "claim", func() error {
		b.claims = append(b.claims, c)
		p, generation, now := b.pages[c.ID], int64(1), time.Now()
		verdict := idempotency.ClaimWon
		if p != nil {
			generation = p.ticket.Generation + 1
			dead := p.state == idempotency.StateInProgress && !now.Before(p.lease)
			switch {
			case p.state == idempotency.StateCompleted && !now.Before(p.retention):
			case !bytes.Equal(p.fingerprint, c.Fingerprint):
				claimed.Verdict = idempotency.ClaimMismatch
				return nil
			case p.state == idempotency.StateCompleted:
				claimed.Verdict, claimed.Answer = idempotency.ClaimReplay, p.answer
				return nil
			case dead && p.reexecute && c.Reexecute:
				verdict = idempotency.ClaimStolen
			case dead || p.state == idempotency.StateUnknown:
				claimed.Verdict = idempotency.ClaimUnknown
				return nil
			default:
				claimed = idempotency.Claimed{Verdict: idempotency.ClaimInFlight, Age: now.Sub(p.begun), Lease: p.lease.Sub(now)}
				return nil
			}
		}
		b.pages[c.ID] = &page{
			fingerprint: c.Fingerprint, ticket: c.Ticket(generation), state: idempotency.StateInProgress,
			reexecute: c.Reexecute, begun: now, lease: now.Add(c.Lease),
		}
		claimed = idempotency.Claimed{Verdict: verdict, Generation: generation}
		return nil
	})
	return claimed, err
}

func (b *book) step(ctx context.Context, name string, do func() error) error {
	b.mu.Lock()
	b.steps = append(b.steps, name)
	b.mu.Unlock()
	if err := fails(ctx, b.before, name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	err := do()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return fails(ctx, b.after, name)
}

// held returns the page of a ticket that holds its key.
func (b *book) held(t idempotency.Ticket) (*page, error) {
	if p := b.pages[t.ID]; p != nil && p.ticket == t && p.state == idempotency.StateInProgress {
		return p, nil
	}
	return nil, idempotency.ErrFenced
}

func (b *book) Renew(ctx context.Context, t idempotency.Ticket, lease time.Duration) error {
	return b.step(ctx, "renew", func() error { return b.renew(t, lease) })
}

func (b *book) renew(t idempotency.Ticket, lease time.Duration) error {
	p, err := b.held(t)
	if err == nil {
		p.lease = time.Now().Add(lease)
	}
	return err
}

func (b *book) Complete(ctx context.Context, t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	return b.step(ctx, "complete", func() error { return b.complete(t, a, retention) })
}

func (b *book) complete(t idempotency.Ticket, a idempotency.Answer, retention time.Duration) error {
	p, err := b.held(t)
	if err != nil {
		if p = b.pages[t.ID]; p != nil && p.ticket == t && p.state == idempotency.StateCompleted {
			return nil
		}
		return err
	}
	p.state, p.retention = idempotency.StateCompleted, time.Now().Add(retention)
	p.answer = idempotency.Answer{Status: a.Status, Header: a.Header.Clone(), Body: bytes.Clone(a.Body), Tombstone: a.Tombstone}
	return nil
}

func (b *book) Release(ctx context.Context, t idempotency.Ticket) error {
	return b.step(ctx, "release", func() error {
		_, err := b.held(t)
		if err == nil {
			delete(b.pages, t.ID)
		}
		return err
	})
}

func (b *book) Suspend(ctx context.Context, t idempotency.Ticket) error {
	return b.step(ctx, "suspend", func() error {
		p, err := b.held(t)
		if err == nil {
			p.state = idempotency.StateUnknown
		}
		return err
	})
}

// steal lets another run take every key over.
func (b *book) steal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pages {
		p.ticket.Generation++
		p.ticket.Owner = idempotency.Owner{1}
	}
}

// took returns how often a step was taken.
func (b *book) took(step string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.steps {
		if s == step {
			n++
		}
	}
	return n
}

type bookKey struct{}

type bookTx struct {
	*book
	ticket      idempotency.Ticket
	pending     int
	over, dirty bool // dirty: the handler ended it by itself
}

func (b *book) Transact(ctx context.Context, t idempotency.Ticket) (context.Context, idempotency.Transaction) {
	tx := &bookTx{book: b, ticket: t}
	return context.WithValue(ctx, bookKey{}, tx), tx
}

// effect is what a handler does that may happen once only: in its transaction, if it has one.
func (b *book) effect(ctx context.Context) {
	if tx, ok := ctx.Value(bookKey{}).(*bookTx); ok {
		tx.pending++
		return
	}
	b.mu.Lock()
	b.effects++
	b.mu.Unlock()
}

func (tx *bookTx) Renew(ctx context.Context, lease time.Duration) error {
	return tx.step(ctx, "renew in the transaction", func() error { return tx.renew(tx.ticket, lease) })
}

func (tx *bookTx) Commit(ctx context.Context, a idempotency.Answer, retention time.Duration) error {
	return tx.step(ctx, "commit", func() error {
		err := tx.complete(tx.ticket, a, retention)
		if err == nil && !tx.over {
			tx.effects += tx.pending
			tx.over = true
		}
		return err
	})
}

func (tx *bookTx) Rollback() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.dirty {
		return errors.New("the handler committed by itself")
	}
	tx.pending = 0
	return nil
}

// newBook returns an empty book whose steps go through before and after; nil hooks do nothing.
func newBook(before, after func(ctx context.Context, step string) error) *book {
	return &book{pages: make(map[idempotency.ID]*page), before: before, after: after}
}

// failing returns a hook that fails the first n calls of a step with err; below zero all of them.
func failing(step string, n int64, err error) func(context.Context, string) error {
	var calls atomic.Int64
	return func(_ context.Context, s string) error {
		if s == step && (n < 0 || calls.Add(1) <= n) {
			return err
		}
		return nil
	}
}

// hanging returns a hook that lets a step last until its context ends.
func hanging(step string) func(context.Context, string) error {
	return func(ctx context.Context, s string) error {
		if s != step {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}
