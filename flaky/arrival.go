package flaky

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// An Arrival is a request that reached a [Handler]. It holds no secret and no query string. What may be
// as long as somebody likes is cut: Path and Step at 1024 bytes, a value of a header at 256, and "…" stands for the rest.
type Arrival struct {
	Run    string    `json:"run,omitempty"`  // the run that it belongs to, if any
	Time   time.Time `json:"time"`           // when its header had been read
	Ended  time.Time `json:"ended,omitzero"` // when the answer was done, or the client left; zero while it is being served
	Method string    `json:"method"`         // cut at 32 bytes
	Path   string    `json:"path"`           // without the prefix of the run and without the query string
	Conn   string    `json:"conn"`           // the client's address: the same for requests on one connection
	Step   string    `json:"step"`           // of the script, as written there; empty if the script has none for the path

	// Header has those that tell something about retries, by canonical name: whatever speaks of retries, attempts,
	// idempotency, deadlines, timeouts and traces, Content-Length, Content-Type, User-Agent. A header that may carry a
	// secret (Authorization, Cookie, and those named after a key, token and the like, Idempotency-Key too) has "#1", "#2"
	// in place of its value: the how-manieth distinct value of this header that the handler has seen.
	Header map[string][]string `json:"header"`

	Body  int64  `json:"body"`           // bytes of the body that were read
	Hash  string `json:"hash,omitempty"` // the SHA-256 of those, in hex; empty until the body was read
	Whole bool   `json:"whole"`          // the body was read to its end, as announced
	Left  bool   `json:"left"`           // the client left, or the server was closed, before the answer was done
}

// A record is an arrival in the log, while it is served and afterwards.
type record struct {
	seq uint64 // order of arrival, over all runs

	mu sync.Mutex
	Arrival
}

func (r *record) copy() Arrival {
	r.mu.Lock()
	a := r.Arrival
	r.mu.Unlock()
	a.Header = maps.Clone(a.Header)
	for name, values := range a.Header {
		a.Header[name] = slices.Clone(values)
	}
	return a
}

func copies(records []*record) []Arrival {
	list := make([]Arrival, len(records))
	for i, r := range records {
		list[i] = r.copy()
	}
	return list
}

// read notes what came of the body.
func (r *record) read(n int64, hash string, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Body, r.Hash, r.Whole = n, hash, whole
}

// end notes that the request is over.
func (r *record) end(now time.Time, left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Ended, r.Left = now, left
}

// clip cuts text that is longer than n bytes. What it returns is a copy: a part of a string keeps all of it in memory, query
// string included.
func clip(s string, n int) string {
	if len(s) <= n {
		return strings.Clone(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
