package proxy

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// errorLog makes lines for slog of what net/http tells of connections. What clients have sent, and where from, stays out.
func (p *process) errorLog() *log.Logger {
	return log.New(&complaints{log: p.log, last: map[string]time.Time{}, more: map[string]int{}}, "", 0)
}

// complaints are net/http's. Anybody may cause some of them, so that of each kind one is told in a while.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time // by kind
	more map[string]int       // that were not told
}

const complaintEvery = 10 * time.Second

// kinds are how complaints begin, and what is said instead. What is no kind comes from a client that does not keep to HTTP/2, and
// is not told.
var kinds = []struct {
	begin, text string
	whole       bool // it holds nothing of a client's
}{
	{"http: Accept error", "no connection can be taken", true},
	{"http: TLS handshake error", "a TLS handshake failed", false},
	{"http: panic serving", "a request panicked", false},
	{"http2: panic serving", "a request panicked", false},
	{"http: superfluous", "an answer was begun twice", true},
	{"http: response.", "an answer was written to a connection that was given away", true},
}

func (c *complaints) Write(line []byte) (int, error) {
	for _, kind := range kinds {
		if !strings.HasPrefix(string(line), kind.begin) {
			continue
		}
		more, told := c.tell(kind.text, time.Now())
		if !told {
			break
		}
		var about []any
		if more > 0 {
			about = append(about, "more", more)
		}
		_, stack, found := strings.Cut(string(line), "\ngoroutine ")
		switch {
		case found: // places in the program, and no values
			about = append(about, "stack", "goroutine "+stack)
		case kind.whole:
			about = append(about, "error", strings.TrimSpace(string(line)))
		}
		c.log.Warn(kind.text, about...)
		break
	}
	return len(line), nil
}

// tell reports whether a complaint is told, and how many of its kind were not since the last one.
func (c *complaints) tell(kind string, now time.Time) (more int, told bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.last[kind]; ok && now.Sub(last) < complaintEvery {
		c.more[kind]++
		return 0, false
	}
	more = c.more[kind]
	c.last[kind], c.more[kind] = now, 0
	return more, true
}
