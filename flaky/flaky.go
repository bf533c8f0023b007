// Package flaky is a server that fails on purpose: an [http.Handler] that answers by a script, one step a request, and
// keeps a log of what arrived. It shows what a client does when things go wrong.
//
//	h, err := flaky.New("503*2, 429 retry-after=1, reset, 200 body=ok")
//	server := httptest.NewServer(h)
//
// A script is a list of steps, separated by commas. The last one repeats. A step is a status or a fault, "*3" behind it
// repeats it, and options follow, separated by blanks:
//
//	503                  a status from 200 to 999; options: body= retry-after= header= delay=
//	hang                 the request is read and never answered; hang=5s: then the connection is closed (without a time:
//	                     after an hour)
//	reset                the request is read, then the connection is reset (TCP RST); option: delay=
//	close                the request is read, then the connection is closed (TCP FIN); option: delay=
//	cut=100              a 200 that ends after 100 bytes of a body announced as longer; options: body= header= delay=
//	slow=10ms/byte       a 200 whose body drips; options: body= header= delay=
//	endless              a 200 whose body never ends, 1 KiB every 20 ms; options: header= delay=
//
//	body=TEXT            the body; without it there is a short text
//	retry-after=VALUE    a line Retry-After: seconds or any other text, or date+2s, date-1h for the response's Date (whole
//	                     seconds) and so much; may be repeated
//	header="Name: text"  a line of the header; may be repeated
//	delay=D              a wait between the request's end and the answer
//
// A value with a comma, a semicolon, a blank or a quotation mark is quoted, with the escapes of Go. Quoted, it is text
// and nothing else: retry-after="date+2s" sends these seven characters. Durations are those of [time.ParseDuration].
//
// A script may have parts for paths, separated by semicolons: "/a: 503*2, 200; /b/: reset; 200". A path stands for
// itself and all that is below it, the longest wins, a part without a path serves the rest, and 404 is the answer where
// there is none. Steps are counted for each part apart.
//
// Each request is read to its end before it is answered. On HTTP/2, and wherever else the connection cannot be had,
// reset, close and cut abort the stream; so they do by panic([http.ErrAbortHandler]). Where a connection is no TCP
// connection, reset closes it.
package flaky

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// runHeader is the header by which a request says that it belongs to a run.
const runHeader = "X-Flaky-Run"

// logPath is where the log is.
const logPath = "/_log"

// A Handler answers requests by a script and keeps a log of them. [New] makes one. It may be used by many goroutines at
// once.
//
// GET /_log answers with the log as a JSON array of [Arrival] values, those of all runs in order of arrival;
// GET /~ID/_log with those of one run. These requests are not logged themselves.
//
// A Handler's memory is bounded: it keeps the newest 10000 arrivals of each run, up to 50000 in all, and 10000 runs.
// Beyond that it forgets, script and arrivals, the run that had no request for longest.
//
// A request that hangs ends when its client leaves or its connection is closed, as [http.Server.Close] does;
// [http.Server.Shutdown] and [net/http/httptest.Server.Close] wait for it.
type Handler struct {
	// Trace, if set, is called for each request when it arrives and again when it is over, then with Ended. Set it before
	// the first request. It is called by many goroutines at once, and the request waits for it.
	Trace func(Arrival)

	script  *script
	secrets secrets

	mu   sync.Mutex
	runs runs
}

// New returns a handler that answers by script. Its error is a [*ScriptError].
func New(script string) (*Handler, error) {
	s, err := parse(script)
	if err != nil {
		return nil, err
	}
	h := &Handler{script: s}
	h.runs.init(s)
	return h, nil
}

// Run gives the run id a script of its own, which begins with its first step; arrivals that the run had stay. Requests
// belong to a run by the prefix /~ID of their path, which the script does not see, or by the header X-Flaky-Run. A run
// that was given no script has that of the handler and counts its steps apart.
//
// An id is 1 to 64 letters, digits, dots, underscores or hyphens of ASCII; else the error says so. Any other error is a
// [*ScriptError].
func (h *Handler) Run(id, script string) error {
	if !validRun(id) {
		return fmt.Errorf("flaky: run %.80q: want 1 to 64 letters, digits, dots, underscores or hyphens", id)
	}
	s, err := parse(script)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs.get(id, s).play(s)
	return nil
}

// Arrivals returns a copy of what arrived, in that order: the requests of one run, or with "" those that belong to none.
// A request that is still being served has no Ended yet. Once a client has got all of an answer, its arrival is complete.
func (h *Handler) Arrivals(run string) []Arrival {
	h.mu.Lock()
	records := h.runs.log(run)
	h.mu.Unlock()
	return copies(records)
}

// ServeHTTP answers a request with the next step of the script.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	run, path := route(r)
	if path == logPath {
		h.serveLog(w, r, run)
		return
	}
	if run != "" && !validRun(run) {
		http.Error(w, "flaky: a run's id has 1 to 64 letters, digits, dots, underscores or hyphens", http.StatusBadRequest)
		return
	}
	rec, st := h.arrive(r, run, path)
	over := serve(w, r, rec, st)
	// The log is complete before the client can see that it is over.
	rec.end(time.Now(), over == left)
	if h.Trace != nil {
		h.Trace(rec.copy())
	}
	switch over {
	case toReset:
		resetConnection(w)
	case left, toAbort:
		panic(http.ErrAbortHandler)
	}
}

// route returns the run that a request belongs to and its path in it.
func route(r *http.Request) (run, path string) {
	path = cmp.Or(r.URL.Path, "/")
	if rest, ok := strings.CutPrefix(path, "/~"); ok {
		run, path, _ = strings.Cut(rest, "/")
		return cmp.Or(run, "~"), "/" + path // "~" is no valid id
	}
	return r.Header.Get(runHeader), path
}

func validRun(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	})
}

// arrive logs a request and takes the step that answers it, nil if the script has none for its path.
func (h *Handler) arrive(r *http.Request, run, path string) (*record, *step) {
	run = strings.Clone(run) // it is part of the request's line, which may be a megabyte
	rec := &record{Arrival: Arrival{
		Run: run, Method: clip(r.Method, 32), Path: clip(path, 1024), Conn: r.RemoteAddr, Header: h.secrets.interesting(r.Header),
	}}
	h.mu.Lock()
	in := h.runs.get(run, h.script)
	rec.Time = time.Now() // under the lock, so that the order of arrival is that of the times
	st := in.next(path)
	if st != nil {
		rec.Step = st.shown
	}
	h.runs.add(in, rec)
	h.mu.Unlock()
	if h.Trace != nil {
		h.Trace(rec.copy())
	}
	return rec, st
}

// serveLog answers with the arrivals of a run, or of all if run is empty.
func (h *Handler) serveLog(w http.ResponseWriter, r *http.Request, run string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "flaky: the log is read with GET", http.StatusMethodNotAllowed)
		return
	}
	var records []*record
	h.mu.Lock()
	if run != "" {
		records = h.runs.log(run)
	} else {
		records = h.runs.all()
	}
	h.mu.Unlock()
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })

	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	before := "[\n"
	for _, rec := range records {
		line, err := json.Marshal(rec.copy())
		if err != nil {
			panic(err) // strings, numbers and times of this century
		}
		if _, err := fmt.Fprintf(w, "%s%s", before, line); err != nil {
			return
		}
		before = ",\n"
	}
	if len(records) == 0 {
		io.WriteString(w, "[")
	}
	io.WriteString(w, "\n]\n")
}
