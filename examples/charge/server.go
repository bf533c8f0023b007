// This file is what to copy from: POST /charges takes money from a customer and writes an order. Whatever happens to this
// process, to the connections and to the client, a request with one Idempotency-Key is one charge and one order:
//
//   - The Middleware runs each key once, and replays the answer to whoever asks again.
//   - The order and the record of the key are committed together. A crash leaves both or neither.
//   - The provider is called with a key of its own, made from that of the request. If we crash after it has charged, the
//     retry runs the handler again, and the provider sees the same key again: it charges once. It has to keep its keys at
//     least as long as we keep ours.
//
// Who has been charged and never comes back for the order has paid for nothing. No key can help there. A provider that
// reserves first and takes the money after the commit can, or a job that compares its list of charges with the orders.

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
	"github.com/riprap-go/riprap/riphttp"
)

// A shop takes orders, and money for them.
type shop struct {
	provider string // its URL
	client   *http.Client
}

func newShop(store *sqlstore.Store, provider string) http.Handler {
	s := &shop{
		provider: provider,
		client: &http.Client{Transport: &riphttp.Transport{
			Policy: &riprap.Policy{MaxAttempts: 3, AttemptTimeout: 5 * time.Second, Timeout: 15 * time.Second},
		}},
	}
	once := idempotency.Middleware{
		Store:         store,
		Scope:         func(r *http.Request) string { return customer(r.Context()) },
		Transactional: true,
		// After a crash a retry waits for the end of the lease. A minute, the default, is right for most; who plays does not
		// want to wait that long.
		Lease: 2 * time.Second,
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charges", once.Handler(http.HandlerFunc(s.charge)))
	// Outside: a request that is not from a customer needs no key, and its 401 is not kept.
	return authenticate(mux)
}

// charge is the handler. The Middleware keeps what it answers, and sends that after the commit.
func (s *shop) charge(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context() // goes on when the client leaves, so that the answer is there when it comes back
	var order struct {
		Item  string `json:"item"`
		Cents int64  `json:"cents"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Item == "" || order.Cents <= 0 {
		http.Error(w, "want an item and what it costs, in cents", http.StatusBadRequest)
		return
	}

	// First the call, which may take seconds, then the transaction: nothing waits for a lock meanwhile.
	charge, status, err := s.pay(ctx, order.Item, order.Cents)
	if err != nil {
		// Charged or not? We need not know. Nothing was written here, so a 5xx makes the key free, and the retry
		// asks the provider with the same key.
		slog.ErrorContext(ctx, "the provider does not answer", "err", err)
		http.Error(w, "the payment provider does not answer", http.StatusServiceUnavailable)
		return
	}
	if status != http.StatusCreated {
		http.Error(w, "the charge was declined", http.StatusPaymentRequired) // an answer: it is kept
		return
	}

	id := rand.Text()
	if err := write(ctx, id, customer(ctx), order.Item, order.Cents, charge); err != nil {
		slog.ErrorContext(ctx, "the order was not written", "err", err)
		http.Error(w, "the order was not written", http.StatusServiceUnavailable) // rolled back, the key is free
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/orders/"+id)
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"order":%q,"charge":%q}`+"\n", id, charge)
}

// write writes an order and its charge in the transaction of the request, which the Middleware commits, with its answer.
func write(ctx context.Context, id, customer, item string, cents int64, charge string) error {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, customer, item) VALUES ($1, $2, $3)`, id, customer, item)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO charges (id, order_id, cents) VALUES ($1, $2, $3)`, charge, id, cents)
	return err
}

// pay charges at the provider, once for each key that we were called with.
func (s *shop) pay(ctx context.Context, item string, cents int64) (charge string, status int, err error) {
	body, err := json.Marshal(map[string]any{"description": item, "cents": cents})
	if err != nil {
		return "", 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.provider+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", idempotency.ChildKey(ctx, "charge")) // the same in every run; it also allows retries
	resp, err := s.client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusCreated:
		var made struct{ ID string }
		err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&made)
		return made.ID, resp.StatusCode, err
	case http.StatusPaymentRequired:
		return "", resp.StatusCode, nil
	}
	return "", 0, fmt.Errorf("the provider answers %s", resp.Status)
}

// tokens are who may charge. Yours are not in the source.
var tokens = map[string]string{"secret-of-alice": "alice", "secret-of-bob": "bob"}

type customerKey struct{}

// customer returns who the request was authenticated for.
func customer(ctx context.Context) string {
	name, _ := ctx.Value(customerKey{}).(string)
	return name
}

func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		name, ok := tokens[token]
		if !ok {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), customerKey{}, name)))
	})
}

// open opens the database of the orders, and the store of the keys in it.
func open(ctx context.Context, dsn string) (*sql.DB, *sqlstore.Store, error) {
	driver, store := "sqlite3", sqlstore.SQLite
	if strings.HasPrefix(dsn, "postgres") {
		driver, store = "pgx", sqlstore.PostgreSQL
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, nil, err
	}
	keys := store(db)
	err = keys.Migrate(ctx)
	for _, table := range []string{
		`CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS charges (id TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, cents BIGINT NOT NULL)`,
	} {
		if err == nil {
			_, err = db.ExecContext(ctx, table)
		}
	}
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, keys, nil
}

// sqliteDSN returns the DSN of a file. The settings are those that docs/idempotency.md explains.
func sqliteDSN(file string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(file)}
	return u.String() + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
}
