package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/internal/pgtest"
)

// TestMain makes the program of the test's binary where a test asks for one.
func TestMain(m *testing.M) {
	if os.Getenv("CHAIN_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// patient gives the services more time until the test ends, each bound as much longer as keeps their order: a machine may
// stand still for a second or two, and what becomes of a request must not hang on that.
func patient(t *testing.T) {
	services, sent := figures.Services, requests
	t.Cleanup(func() { figures.Services, requests = services, sent })

	figures.Services = slices.Clone(services)
	for i := range figures.Services {
		s := &figures.Services[i]
		s.Limit *= 10
		s.Calls = slices.Clone(s.Calls)
		for j := range s.Calls {
			c := &s.Calls[j]
			c.Policy.Timeout *= 10
			c.Policy.AttemptTimeout *= 10
			if b := c.Policy.Budget; b != nil { // of its own: this one may be spent by tests that were before
				c.Policy.Budget = &riprap.Budget{Ratio: b.Ratio, Reserve: b.Reserve, Window: b.Window}
			}
			if c.To == "database" { // a test waits for two of these
				c.Policy.AttemptTimeout = 4 * time.Second
			}
		}
	}
	requests = slices.Clone(sent)
	for i, r := range requests {
		if r.waits > leastForPayments {
			requests[i].waits = 3 * time.Second // less than an attempt
		}
	}
}

func TestAllIsAsPromised(t *testing.T) {
	patient(t)
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		allIsAsPromised(t)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		allIsAsPromised(t, "--db", pgtest.Start(t))
	})
}

func allIsAsPromised(t *testing.T, args ...string) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("run(%q) = %d, stderr %q, want 0 and nothing", args, code, &errs)
	}
	for _, want := range []string{
		"gateway 1m40s → orders 1m10s → payments 40s → database 20s",
		"The caller got 200 OK",
		"gave up: no attempts left",
		"The caller got 504 Gateway Timeout",
		"The caller was gone",
		"The database says that no query is at work any more.",
		"not reached",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("run(%q) does not print %q", args, want)
		}
	}
	fitsIntoATerminal(t, out.String())
	if t.Failed() {
		t.Log(out.String())
	}
}

func fitsIntoATerminal(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("the line %q has %d columns, want 80 at most", line, n)
		}
	}
}

func TestNothingIsLeftWhenNobodyReads(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CHAIN_TEST_MAIN=1", "TMPDIR="+dir, "TMP="+dir, "TEMP="+dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(errs.String(), "chain: write ") {
		t.Errorf("got %v, stderr %q, want exit code 1 and that it cannot write", err, &errs)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v, want nothing", left, err)
	}
}

func TestAFailedCallIsATimeoutOrABadGateway(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		want int // zero: nothing is written
	}{
		{"no time for an attempt", t.Context(), &riprap.Error{Reason: riprap.ErrDeadline}, 504},
		{"an attempt that hung", t.Context(), &riprap.Error{Attempts: 2, Reason: riprap.ErrAttempts, Err: context.DeadlineExceeded}, 504},
		{"a connection that was refused", t.Context(), &riprap.Error{Attempts: 2, Reason: riprap.ErrAttempts, Err: io.EOF}, 502},
		{"nobody waits", over, context.Canceled, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &httptest.ResponseRecorder{}
			if fail(w, test.ctx, "database", test.err); w.Code != test.want {
				t.Errorf("fail(%v) answers %d, want %d", test.err, w.Code, test.want)
			}
		})
	}
}

func TestACancelledQueryStopsInSQLite(t *testing.T) {
	db, err := openSQLite()
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	cancelledQueryStops(t, db)
}

func TestACancelledQueryStopsInPostgreSQL(t *testing.T) {
	patient(t)
	db, err := openPostgreSQL(t.Context(), pgtest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	cancelledQueryStops(t, db)
}

func cancelledQueryStops(t *testing.T, db *database) {
	if cents, err := db.amount(t.Context()); cents != 2500 || err != nil {
		t.Errorf("amount() = %d, %v, want 2500", cents, err)
	}
	if working, err := db.working(t.Context()); working || err != nil {
		t.Errorf("working() = %v, %v before the query, want false", working, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := db.hang(ctx)
		ended <- err
	}()
	if !eventually(t.Context(), func() bool { working, err := db.working(t.Context()); return working && err == nil }) {
		t.Fatal("the database does not say that the query is at work")
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("hang() = %v, want context.Canceled", err)
		}
		if strings.Contains(err.Error(), "statement timeout") {
			t.Errorf("hang() = %v: the server had to stop it by itself", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("hang() did not return within a minute of its cancellation")
	}
	if !eventually(t.Context(), func() bool { working, err := db.working(t.Context()); return !working && err == nil }) {
		t.Error("the database says that the query is still at work")
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are in use, want 0", n)
	}
}

func TestPostgreSQLStopsByItselfWhatNobodyCancels(t *testing.T) {
	db, err := openPostgreSQL(t.Context(), pgtest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	var got string
	if err := db.QueryRow("SHOW statement_timeout").Scan(&got); got != "2s" || err != nil {
		t.Errorf("statement_timeout is %q, %v, want 2s", got, err)
	}
}

// The file is what riprap check judges, so the program must do what it says.
func TestTheFiguresAreThoseOfTheFile(t *testing.T) {
	type call struct {
		To                string
		P99               string
		Idempotent, Keyed bool
		Policy            riprap.Policy
	}
	type file struct {
		MaxCalls int
		Services map[string]struct {
			Limit, Lease, Retention string
			Calls                   []call
		}
	}

	text, err := os.ReadFile("riprap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var loose any
	if err := yaml.Load(text, &loose); err != nil {
		t.Fatal(err)
	}
	form, err := json.Marshal(loose)
	if err != nil {
		t.Fatal(err)
	}
	var said file
	decoder := json.NewDecoder(bytes.NewReader(form))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		t.Fatal(err)
	}

	if said.MaxCalls != figures.MaxCalls || len(said.Services) != len(figures.Services) {
		t.Errorf("the file has maxCalls %d and %d services, the program %d and %d",
			said.MaxCalls, len(said.Services), figures.MaxCalls, len(figures.Services))
	}
	span := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	for _, s := range figures.Services {
		inFile := said.Services[s.Name]
		var done []call
		for _, c := range s.Calls {
			done = append(done, call{c.To, span(c.P99), c.Idempotent, c.Keyed, c.Policy})
		}
		if inFile.Limit != span(s.Limit) || inFile.Lease != span(s.Lease) || inFile.Retention != span(s.Retention) ||
			!reflect.DeepEqual(asJSON(t, inFile.Calls), asJSON(t, done)) {
			t.Errorf("%s: the file says %s, limit %s; the program does %s, limit %v",
				s.Name, asJSON(t, inFile.Calls), inFile.Limit, asJSON(t, done), s.Limit)
		}
	}
}

func TestTheFiguresFitEachOther(t *testing.T) {
	for _, finding := range chain.Check(&figures) {
		t.Errorf("Check() has %+v", finding)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatIsNotAsPromisedIsSaid(t *testing.T) {
	slow := request{status: 503, queries: 2, stopped: 2}
	visits := []visit{
		{hop: "gateway", had: 10 * time.Second},
		{hop: "payments", had: 4 * time.Second},
		{hop: "database", had: 900 * time.Millisecond, cancelled: true},
		{hop: "database", had: 900 * time.Millisecond, cancelled: true},
	}
	altered := func(change func([]visit)) []visit {
		changed := append([]visit(nil), visits...)
		change(changed)
		return changed
	}
	for _, test := range []struct {
		name   string
		want   string // empty: nothing is wrong
		r      request
		status int
		err    error
		visits []visit
	}{
		{"as promised", "", slow, 503, nil, visits},
		{"another status", "the caller got 200", slow, 200, nil, visits},
		{"no answer", "the caller got 0, EOF", slow, 0, io.EOF, nil},
		{"a query that ran on", "2 queries began and 1 were stopped", slow, 503, nil,
			altered(func(v []visit) { v[3].cancelled = false })},
		{"a query too few", "1 queries began", slow, 503, nil, visits[:3]},
		{"more time than the caller", "payments had 11s, its caller 10s", slow, 503, nil,
			altered(func(v []visit) { v[1].had = 11 * time.Second })},
		{"a service that does not see that nobody waits", "gateway did not see",
			request{leaves: true, queries: 2, stopped: 2}, 0, context.Canceled, visits},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(broken(test.r, test.status, test.err, test.visits), "; ")
			if !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("broken() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestABrokenPromiseIsInTheExitCode(t *testing.T) {
	patient(t)
	requests = []request{{id: "quick", title: "A miracle.", path: "/orders/7", status: 402, queries: 1}}

	var out bytes.Buffer
	if code := run(t.Context(), nil, &out, io.Discard); code != 1 || !strings.Contains(out.String(), "NOT AS PROMISED: the caller got 200") {
		t.Errorf("run() = %d, want 1 and what was wrong in\n%s", code, &out)
	}
}

func TestHelpIsForAPager(t *testing.T) {
	for _, arg := range []string{"-h", "--help"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{arg}, &out, &errs)
		if code != 0 || errs.Len() > 0 || !strings.HasPrefix(out.String(), "usage: chain ") || !strings.Contains(out.String(), "--db") {
			t.Errorf("run(%q) = %d, stdout %q, stderr %q, want 0 and the usage on stdout", arg, code, &out, &errs)
		}
		fitsIntoATerminal(t, out.String())
	}
}

func TestTheUsageCountsTheRequests(t *testing.T) {
	if !strings.Contains(usage, "five requests") || len(requests) != 5 {
		t.Errorf("there are %d requests, want as many as the usage says", len(requests))
	}
}

func TestWrongUsageIsTold(t *testing.T) {
	for _, args := range [][]string{{"--dsn", "x"}, {"postgres://nobody@localhost/x"}, {"--db", "postgres://%"}, {"--db"}, {"--db="}} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, io.Discard, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("run(%q) = %d, stderr %q, want 2 and a reason", args, code, &errs)
		}
	}
}
