package flaky

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Bounds of what is kept of a request's header.
const (
	maxValue  = 256      // bytes of a value
	maxHeader = 2 << 10  // bytes of all names and values
	maxNames  = 1000     // of headers with secrets, over all requests
	maxValues = 50 << 10 // of headers with secrets, after which the oldest are forgotten
)

// telling are parts of the names of headers that tell something about retries; secret are those of headers whose values
// are no one's business. A header that is both is secret.
var (
	telling = []string{"attempt", "correlation", "deadline", "idempoten", "invocation", "request-id", "retry", "timeout", "trace",
		"amz-sdk-request", "content-length", "content-type", "user-agent"}
	secret = []string{"auth", "cookie", "credential", "key", "passw", "secret", "session", "signature", "token"}
)

func contains(name string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// secrets numbers the values of secret headers. It keeps hashes of them and nothing else.
type secrets struct {
	mu     sync.Mutex
	seed   maphash.Seed
	counts map[string]int // distinct values so far, by header
	// The number of each value, by a hash of it. When young is full it becomes old: a value is remembered for at least
	// maxValues others, and at most twice as many are kept.
	young, old map[uint64]int
}

// interesting returns what is logged of a header.
func (s *secrets) interesting(h http.Header) map[string][]string {
	kept, room := map[string][]string{}, maxHeader
	for name, values := range h {
		lower := strings.ToLower(name)
		hide := contains(lower, secret)
		if !hide && !contains(lower, telling) || len(name) > maxValue {
			continue
		}
		for _, v := range values {
			if hide {
				v = s.number(lower, v)
			}
			v = clip(v, maxValue)
			if room -= len(name) + len(v); room < 0 {
				return kept
			}
			kept[name] = append(kept[name], v)
		}
	}
	return kept
}

// number returns which distinct value of a header this is, as "#1".
func (s *secrets) number(name, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.seed, s.counts, s.young = maphash.MakeSeed(), map[string]int{}, map[uint64]int{}
	}
	hash := maphash.Comparable(s.seed, [2]string{name, value})
	n := s.young[hash]
	if n == 0 {
		n = s.old[hash]
	}
	if n == 0 {
		if len(s.counts) >= maxNames && s.counts[name] == 0 {
			return "#?"
		}
		s.counts[name]++
		n = s.counts[name]
	}
	if len(s.young) >= maxValues {
		s.young, s.old = map[uint64]int{}, s.young
	}
	s.young[hash] = n
	return "#" + strconv.Itoa(n)
}
