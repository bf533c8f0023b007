// This file is the payment provider: a service of somebody else, which knows nothing of our keys and records. That it
// honors Idempotency-Key is all that we need of it. It keeps what it knows in memory and does not outlive the play.

package main

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/riprap-go/riprap/idempotency"
)

// A provider charges cards.
type provider struct {
	mu      sync.Mutex
	charges []charge
}

type charge struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Cents       int64  `json:"cents"`
}

func newProvider() http.Handler {
	p := &provider{}
	once := idempotency.Middleware{
		Store: &idempotency.Memory{}, // of this one process
		Scope: idempotency.SingleTenant,
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charges", once.Handler(http.HandlerFunc(p.charge)))
	mux.HandleFunc("GET /charges", p.list)
	return mux
}

// charge records one charge each time that it is called.
func (p *provider) charge(w http.ResponseWriter, r *http.Request) {
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || c.Cents <= 0 {
		http.Error(w, "want an amount in cents", http.StatusBadRequest)
		return
	}
	if c.Cents > 100_000 {
		http.Error(w, "the card has no such limit", http.StatusPaymentRequired)
		return
	}
	c.ID = "ch_" + rand.Text()
	p.mu.Lock()
	p.charges = append(p.charges, c)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(c)
}

// list lists the charges with a description.
func (p *provider) list(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	charges := slices.Clone(p.charges)
	p.mu.Unlock()
	charges = slices.DeleteFunc(charges, func(c charge) bool { return c.Description != r.FormValue("description") })
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(charges)
}
