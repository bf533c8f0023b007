package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A modelTransactor is a model with effects.
type modelTransactor struct {
	*model
	effects int
}

type modelTransaction struct {
	m      *modelTransactor
	t      idempotency.Ticket
	row    *row // that it holds, from the first write on
	seen   int  // effects when it began
	writes int
	ended  bool
	kept   bool
}

type transactionKey struct{}

func openModel(bug string) (*modelTransactor, Effects) {
	m := &modelTransactor{model: newModel(bug)}
	return m, Effects{
		Write: m.write,
		Count: func(testing.TB) int {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.effects
		},
	}
}

func (m *modelTransactor) Transact(ctx context.Context, t idempotency.Ticket) (context.Context, idempotency.Transaction) {
	tx := &modelTransaction{m: m, t: t}
	return context.WithValue(ctx, transactionKey{}, tx), tx
}

func (m *modelTransactor) write(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx, ok := ctx.Value(transactionKey{}).(*modelTransaction)
	if !ok {
		if m.has("there is always a transaction") {
			m.effects++
			return nil
		}
		return errors.New("no run")
	}
	if tx.ended {
		if m.has("a transaction goes on after its end") {
			m.effects++
			return nil
		}
		return errors.New("the transaction has ended")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if tx.row == nil {
		if tx.row = m.held(tx.t, idempotency.StateInProgress); tx.row == nil && !m.has("the first write is not fenced") {
			return idempotency.ErrFenced
		}
		if tx.row != nil {
			tx.row.locked = true
		}
		tx.seen = m.effects
		m.yields("Commit forgets the effects of others")
	}
	tx.writes++
	if m.has("effects are there before Commit") {
		m.effects++
	}
	return nil
}

func (tx *modelTransaction) Renew(ctx context.Context, lease time.Duration) error {
	tx.m.mu.Lock()
	begun := tx.row != nil
	tx.m.mu.Unlock()
	switch {
	case tx.m.has("Renew needs no transaction") && begun:
		return errors.New("the key is locked")
	case tx.m.has("Renew ends the transaction") && begun:
		return tx.Rollback()
	case begun:
		return nil
	}
	err := tx.m.Renew(ctx, tx.t, lease)
	if tx.m.has("Renew knows no fence") {
		return nil
	}
	return err
}

func (tx *modelTransaction) Commit(ctx context.Context, a idempotency.Answer, retention time.Duration) error {
	m := tx.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if tx.kept {
		switch m.bug {
		case "Commit again is an error":
			return errors.New("the transaction has ended")
		case "Commit again writes again":
			m.effects += tx.writes
		case "Commit again overwrites":
			m.records[tx.t.ID].answer = a
		}
		return nil
	}
	if ctx.Err() != nil && !m.has("Commit ignores the context") {
		return ctx.Err()
	}
	r := m.held(tx.t, idempotency.StateInProgress)
	switch {
	case m.has("without a write Commit does nothing") && tx.writes == 0:
		return nil
	case m.has("Commit knows no fence") && r == nil:
		r = m.records[tx.t.ID]
	case m.has("Commit tests the lease") && r != nil && m.past(r.lease):
		r = nil
	}
	if r == nil {
		return idempotency.ErrFenced
	}
	switch m.bug {
	case "Commit forgets the effects", "effects are there before Commit":
	case "Commit forgets the effects of others":
		m.effects = tx.seen + tx.writes
	default:
		m.effects += tx.writes
	}
	tx.ended, tx.kept, r.locked = true, true, false
	if m.has("Commit forgets the answer") {
		return nil
	}
	r.state, r.answer = idempotency.StateCompleted, m.copied(m.spoiled(a), "")
	if !m.has("Commit keeps an answer for ever") {
		r.end = m.after(retention)
	} else {
		r.end = m.after(1 << 62)
	}
	return nil
}

func (tx *modelTransaction) Rollback() error {
	m := tx.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if tx.ended && !(tx.kept && m.has("Rollback undoes what is committed")) {
		if m.has("Rollback again is an error") && !tx.kept {
			return errors.New("the transaction has ended")
		}
		return nil
	}
	tx.ended = true
	switch m.bug {
	case "Rollback keeps the effects":
		m.effects += tx.writes
	case "Rollback undoes what is committed":
		if tx.kept {
			m.effects -= tx.writes
		}
	case "Rollback frees the key":
		delete(m.records, tx.t.ID)
	case "Rollback holds the key for ever":
		return nil
	}
	if tx.row != nil {
		tx.row.locked = false
	}
	return nil
}

var transactionMutants = []struct {
	bug    string
	seenBy []string
}{
	{"Commit forgets the effects", []string{"Commit keeps the effects and the answer"}},
	{"effects are there before Commit", []string{"Commit keeps the effects and the answer", "Rollback keeps neither, and the key is still held"}},
	{"Commit forgets the answer", []string{"Commit keeps the effects and the answer", "a fault at any step leaves both or neither"}},
	{"bodies are UTF-8", []string{"Commit keeps the effects and the answer"}},
	{"Rollback keeps the effects", []string{"Rollback keeps neither, and the key is still held", "a context that ended keeps nothing"}},
	{"Rollback frees the key", []string{"Rollback keeps neither, and the key is still held"}},
	{"Rollback again is an error", []string{"Rollback keeps neither, and the key is still held"}},
	{"without a write Commit does nothing", []string{"without a write Commit is Complete"}},
	{"Commit keeps an answer for ever", []string{"Commit keeps the answer for its retention"}},
	{"Commit again is an error", []string{"to commit again asks once more and changes nothing"}},
	{"Commit again writes again", []string{"to commit again asks once more and changes nothing"}},
	{"Commit again overwrites", []string{"to commit again asks once more and changes nothing"}},
	{"Rollback undoes what is committed", []string{"Rollback after Commit does nothing"}},
	{"a transaction goes on after its end", []string{"after its end the handler gets no transaction"}},
	{"there is always a transaction", []string{"outside of a run there is no transaction"}},
	{"Renew needs no transaction", []string{"Renew lets the handler's transaction be"}},
	{"Renew ends the transaction", []string{"Renew lets the handler's transaction be"}},
	{"Renew does nothing", []string{"Renew lets the handler's transaction be"}},
	{"Commit tests the lease", []string{"a run whose lease is over commits if nobody took the key"}},
	{"held keys are won", []string{"a key is in flight for others while its transaction is open"}},
	{"Commit forgets the effects of others", []string{"the transactions of many keys at once are all kept"}},
	{"the first write is not fenced", []string{"a run that was overtaken before it wrote is fenced off"}},
	{"Renew knows no fence", []string{"a run that was overtaken before it wrote is fenced off"}},
	{"Commit knows no fence", []string{"a run that was overtaken before it wrote is fenced off", "a run that was overtaken and wrote nothing keeps no answer"}},
	{"there is no fence", []string{"a run that was overtaken before it wrote is fenced off"}},
	{"an open transaction is overtaken", []string{"an open transaction is not overtaken"}},
	{"Rollback holds the key for ever", []string{"after Rollback a key whose lease is over can be taken"}},
	{"Commit ignores the context", []string{"a context that ended keeps nothing"}},
}

func TestAPlainTransactorPassesTheSuite(t *testing.T) {
	RunTransactions(t, func(testing.TB) (idempotency.Transactor, Effects) { return openModel("") })
}

func TestBrokenTransactorsDoNotPass(t *testing.T) {
	impatient(t)
	all := slices.Concat(transactionChecks, lostTransactionChecks)
	proven := map[string]bool{}
	for _, m := range transactionMutants {
		t.Run(m.bug, func(t *testing.T) {
			for _, name := range m.seenBy {
				proven[name] = true
				i := slices.IndexFunc(all, func(c transactionCheck) bool { return c.name == name })
				if i < 0 {
					t.Errorf("there is no check %q", name)
					continue
				}
				open := func(testing.TB) (idempotency.Transactor, Effects) { return openModel(m.bug) }
				if !fails(t, func(t testing.TB) { all[i].run(newTransactionTrial(t, open)) }) {
					t.Errorf("%q does not see it", name)
				}
			}
		})
	}
	for _, c := range all {
		if !proven[c.name] {
			t.Errorf("no store is broken in a way that %q has to see", c.name)
		}
	}
}
