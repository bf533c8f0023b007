package effects

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// Modes are the ways in which a service keeps its promise.
const (
	transactional = "transactional" // the row and the key in one transaction
	separate      = "separate"      // the row in one of its own; a key of which nobody knows is held
	reexecuted    = "reexecuted"    // the same, but it runs again what nobody knows of: not a promise
	unprotected   = "unprotected"   // no middleware: not even an attempt
)

// A plan is what a server is told.
type plan struct {
	Database string
	DSN      string
	Mode     string
	Lease    time.Duration
	Seed     uint64
	Faults   faults
}

// became is a response field that says what the middleware did with a request.
const became = "Became"

// service returns the handler of a server: it adds a row to the ledger, and answers with it.
func service(p plan, store idempotency.Store, db *sql.DB) http.Handler {
	mux := http.NewServeMux()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operation, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		linger(r.Context())
		var e entry
		if p.Mode == transactional {
			e, err = writeWithKey(r.Context(), string(operation))
		} else {
			e, err = write(r.Context(), db, string(operation))
		}
		if err != nil {
			idempotency.Declare(r.Context(), unlessTransactional(p.Mode))
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(e)
	})
	if p.Mode != unprotected {
		h = idempotency.Middleware{
			Store:         store,
			Scope:         idempotency.SingleTenant,
			Operation:     func(*http.Request) string { return operationName },
			Transactional: p.Mode == transactional,
			Reexecute:     p.Mode == reexecuted,
			Lease:         p.Lease,
			Wait:          5 * time.Second,
			MaxWaiting:    1000,
			Observe: func(ctx context.Context, e idempotency.Event) {
				if f, ok := ctx.Value(frontKey{}).(*front); ok {
					f.kind = e.Kind
				}
			},
		}.Handler(h)
	}
	mux.Handle("POST /entries", h)
	return mux
}

// operationName is what all keys belong to.
const operationName = "add an entry"

// keyID returns the ID of the key by which an operation is sent.
func keyID(operation string) idempotency.ID {
	return idempotency.NewID(idempotency.SingleTenant(nil), operationName, operation)
}

// unlessTransactional is what a row that could not be written means: without the key's transaction it may be there.
func unlessTransactional(mode string) idempotency.Outcome {
	if mode == transactional {
		return 0
	}
	return idempotency.Unknown
}

func writeWithKey(ctx context.Context, operation string) (entry, error) {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return entry{}, err
	}
	return write(ctx, tx, operation)
}

type frontKey struct{}

// A front is the outermost ResponseWriter. It says what became of a request, and keeps back how long a client should wait: the
// clients here come back at once, so that more goes on at the same time.
type front struct {
	http.ResponseWriter
	kind idempotency.Kind
}

func (f *front) WriteHeader(code int) {
	f.Header().Del("Retry-After")
	if f.kind != 0 {
		f.Header().Set(became, f.kind.String())
	}
	f.ResponseWriter.WriteHeader(code)
}

func (f *front) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// through lets a handler serve a request behind a front.
func through(h http.Handler, w http.ResponseWriter, r *http.Request) {
	f := &front{ResponseWriter: w}
	h.ServeHTTP(f, r.WithContext(context.WithValue(r.Context(), frontKey{}, f)))
}

// buffered reads the body of a request, so that the server notices when its client leaves.
func buffered(r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(r.Body)
	r2 := r.WithContext(r.Context())
	r2.Body = io.NopCloser(bytes.NewReader(body))
	return r2, err
}
