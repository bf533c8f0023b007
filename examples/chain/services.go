package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// figures are those of the whole chain: what each service is given to work, and how it calls the next one. They are those of
// riprap.yaml too, which "riprap check" reads; a test compares them.
//
// On the way down the time only shrinks, so that no service works for a caller that is gone. The upper calls are made once:
// if each layer tried three times, a database that is down would get 27 queries for one order. The last call is a read, and
// the one that sees the fault; two attempts of 900 ms and the wait between them fit into its two seconds.
var figures = chain.Chain{Services: []chain.Service{
	{Name: "gateway", Limit: 10 * time.Second, Calls: []chain.Call{{To: "orders",
		Policy: riprap.Policy{MaxAttempts: 1, Timeout: 7 * time.Second, AttemptTimeout: 7 * time.Second}}}},
	{Name: "orders", Limit: 7 * time.Second, Calls: []chain.Call{{To: "payments",
		Policy: riprap.Policy{MaxAttempts: 1, Timeout: 4 * time.Second, AttemptTimeout: 4 * time.Second}}}},
	{Name: "payments", Limit: 4 * time.Second, Calls: []chain.Call{{To: "database", Idempotent: true, P99: 300 * time.Millisecond,
		Policy: riprap.Policy{
			MaxAttempts:    2,
			Timeout:        2 * time.Second,
			AttemptTimeout: 900 * time.Millisecond,
			MaxWait:        150 * time.Millisecond,
			Backoff:        riprap.Backoff{Base: 150 * time.Millisecond, Max: 150 * time.Millisecond, Jitter: riprap.Full},
			Budget:         &riprap.Budget{Ratio: 0.2, Reserve: 10, Window: 10 * time.Second},
		}}}},
	{Name: "database", Limit: 2 * time.Second},
}}

// leastForPayments is the time below which a payment is not looked up: it would hardly come back in time.
const leastForPayments = 200 * time.Millisecond

// service returns the figures of a service.
func service(name string) chain.Service {
	for _, s := range figures.Services {
		if s.Name == name {
			return s
		}
	}
	panic("no service " + name)
}

// services are the three that speak HTTP, and the database behind them.
type services struct {
	db      *database
	journal *journal
	gateway string // its URL
	servers []*http.Server
	clients []*riphttp.Transport
}

// start starts the services on free ports of this machine, the last one first.
func start(db *database, j *journal) (*services, error) {
	s := &services{db: db, journal: j}
	payments, err := s.serve("payments", leastForPayments, s.pay)
	if err != nil {
		return nil, err
	}
	orders, err := s.serve("orders", 0, s.pass("orders", payments))
	if err == nil {
		s.gateway, err = s.serve("gateway", 0, s.pass("gateway", orders))
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// serve starts a service. Its work returns what became of it, for the journal.
func (s *services) serve(name string, least time.Duration, work func(http.ResponseWriter, *http.Request) string) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	// The context of the request ends when the caller no longer waits or the limit is reached, whichever is first. A
	// service that strangers can reach also sets Trusted.
	within := deadline.Middleware{Limit: service(name).Limit, Least: least}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: within.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			end := s.journal.begin(r.Context(), name)
			end(work(w, r))
		})),
	}
	s.servers = append(s.servers, server)
	go server.Serve(listener)
	return "http://" + listener.Addr().String(), nil
}

// pass returns the work of a service that asks the next one and hands on what it says.
func (s *services) pass(name, next string) func(http.ResponseWriter, *http.Request) string {
	call := service(name).Calls[0]
	transport := &riphttp.Transport{
		Policy:   &call.Policy,
		Internal: func(*http.Request) bool { return true }, // which is told how much time there is left
	}
	s.clients = append(s.clients, transport)
	client := &http.Client{Transport: transport}

	return func(w http.ResponseWriter, r *http.Request) string {
		// The request made for a request has its context: this line is what joins the chain.
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, next+r.URL.RequestURI(), nil)
		if err != nil {
			http.Error(w, "not an address", http.StatusBadRequest)
			return err.Error()
		}
		resp, err := client.Do(req)
		if err != nil {
			return fail(w, r.Context(), call.To, err)
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
		return fmt.Sprintf("%s answered %d", call.To, resp.StatusCode)
	}
}

// pay is the work of payments: it asks the database, twice if need be.
func (s *services) pay(w http.ResponseWriter, r *http.Request) string {
	call := service("payments").Calls[0]
	ask := s.db.amount
	if r.URL.Query().Get("database") == "hangs" {
		ask = s.db.hang
	}
	cents, err := riprap.DoValue(r.Context(), &call.Policy, func(ctx context.Context) (int, error) {
		// In a service the limit of a database is set in the database, as it is for PostgreSQL here. SQLite has none.
		ctx, cancel := context.WithTimeout(ctx, service("database").Limit)
		defer cancel()
		end := s.journal.begin(ctx, "database")
		cents, err := ask(ctx)
		switch {
		case ctx.Err() != nil: // what a driver says of a query that was stopped differs
			end(context.Cause(ctx).Error())
		case err != nil:
			end(err.Error())
		default:
			end("1 row")
		}
		if errors.Is(err, sql.ErrNoRows) {
			return 0, riprap.Permanent(err) // asking again does not bring it about
		}
		return cents, err
	})
	if err != nil {
		return fail(w, r.Context(), call.To, err)
	}
	fmt.Fprintf(w, "%d cents\n", cents)
	return "answered 200"
}

// fail answers for a call that came to nothing. Once the caller's time is over it writes nothing: then the
// deadline.Middleware answers 504, and says that trying again is useless.
func fail(w http.ResponseWriter, ctx context.Context, to string, err error) string {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	status := http.StatusBadGateway
	if errors.Is(err, context.DeadlineExceeded) {
		status = http.StatusGatewayTimeout
	}
	http.Error(w, to+" does not answer", status)
	if gaveUp, ok := errors.AsType[*riprap.Error](err); ok {
		return fmt.Sprintf("gave up: %v", gaveUp.Reason)
	}
	return err.Error()
}

// stop ends the services. It waits for none: by then no request is left.
func (s *services) stop() {
	for _, server := range s.servers {
		server.Close()
	}
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}
