package proxies

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A way is how a client sends an operation.
type way struct {
	method string
	path   string
	field  string // that has the key; "" sends none
	body   string
	length int64 // as the client says it; -1 says nothing
}

// ways are all that a request can have which somebody may take for permission to send it again.
func ways() (all []way) {
	for _, method := range []string{"POST", "PATCH"} {
		for _, to := range []struct{ path, field string }{
			{"/charge", "Idempotency-Key"}, {"/free", ""}, {"/free", "Idempotency-Key"}, {"/free", "X-Idempotency-Key"},
		} {
			for _, body := range []string{"", "amount=5", strings.Repeat("x", 70<<10)} {
				all = append(all, way{method, to.path, to.field, body, int64(len(body))})
				if len(body) < 100 {
					all = append(all, way{method, to.path, to.field, body, -1})
				}
			}
		}
	}
	return all
}

// An outcome is what a client was told of an operation.
type outcome string

const (
	charged outcome = "charged"
	doubt   outcome = "nobody knows"
	free    outcome = "not reached"
	broken  outcome = "broken off"
	running outcome = "still running"
	other   outcome = "something else"
)

// order sends an operation once.
func order(tr http.RoundTripper, base string, w way, operation string) (o outcome, told string) {
	var body io.Reader = strings.NewReader(w.body)
	if w.length < 0 {
		body = io.MultiReader(body)
	}
	req, err := http.NewRequest(w.method, base+w.path, body)
	if err != nil {
		return other, err.Error()
	}
	req.Header.Set("X-Operation", operation)
	req.Header.Set("X-Customer", "c"+operation[:1])
	if w.field != "" {
		req.Header.Set(w.field, operation)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return broken, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return broken, err.Error()
	}
	told = fmt.Sprintf("%d %s", resp.StatusCode, text)
	var p struct {
		Type    string
		Reached string
	}
	json.Unmarshal(text, &p)
	switch _, name, _ := strings.Cut(path.Base(p.Type), "#"); {
	case resp.StatusCode == http.StatusCreated && string(text) == operation+"\n":
		return charged, told
	case name == "outcome-unknown":
		return doubt, told
	case name == "in-flight":
		return running, told
	case p.Reached == "no":
		return free, told
	}
	return other, told
}

func TestAnUnsafeRequestReachesAServiceOnceWhateverBecomesOfItsAnswer(t *testing.T) {
	for _, c := range []struct {
		protocol protocol
		faults   []fault
	}{{http1, http1Faults}, {h2c, http2Faults}} {
		for _, spoken := range []protocol{http1, h2c} {
			t.Run(string(c.protocol)+" called by "+string(spoken), func(t *testing.T) {
				const losses = 250
				l := newLedger(t, c.protocol, func(n int) fault {
					if n%4 == 0 {
						return "" // so that there is a connection that was used before
					}
					return c.faults[n%len(c.faults)]
				})
				p := stand(t, l.url, guards...)
				s := newSurvey(l)
				s.run(t, 12, newTransport(t, spoken, ""), p.url, func() bool { return s.ledger.losses() < losses })
				s.mustAgree(t)
				s.ask(t, newTransport(t, spoken, ""), p.url)
				s.mustAgree(t)
			})
		}
	}
}

// guards are the flags of a proxy whose POST and PATCH of /charge are run once.
var guards = []string{
	"--require-key", "POST /charge", "--require-key", "PATCH /charge", "--scope", "header:X-Customer", "--attempt-timeout", "5s", "--timeout", "20s",
}

func TestAnAnswerThatDoesNotComeInTimeIsNoPermissionToSendAgain(t *testing.T) {
	for _, protocol := range []protocol{http1, h2c} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, protocol, func(int) fault { return silent })
			p := stand(t, l.url, "--require-key", "POST /charge", "--require-key", "PATCH /charge", "--scope", "header:X-Customer",
				"--attempt-timeout", "300ms", "--timeout", "5s")
			s := newSurvey(l)
			all := ways()
			s.run(t, len(all), newTransport(t, http1, ""), p.url, func() bool { return false })
			s.mustAgree(t)
			if got := s.count[doubt]; got != len(all) {
				t.Errorf("of %d operations whose answer did not come %d are told to be unknown, want all: %v", len(all), got, s.count)
			}
		})
	}
}

func TestNothingIsChargedTwiceThoughTheProxyIsKilled(t *testing.T) { killed(t, 4) }

func TestSoakNothingIsChargedTwiceThoughTheProxyIsKilled(t *testing.T) {
	soaks(t)
	killed(t, 60)
}

// killed kills the proxy so many times while clients send operations, each with a key until it has an outcome.
func killed(t *testing.T, times int) {
	l := newLedger(t, http1, func(n int) fault {
		if n%10 == 0 {
			return http1Faults[n/10%len(http1Faults)]
		}
		return ""
	})
	store := t.TempDir() + "/keys.db"
	p := stand(t, l.url, append([]string{"--listen", freeAddr(t), "--store", store, "--lease", "1s"}, guards...)...)
	s := newSurvey(l)
	s.insist = true
	tr, base := newTransport(t, http1, ""), p.url
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(t, 12, tr, base, func() bool { return !over.Load() })
	}()
	for range times {
		next := s.asked.Load() + 100 + rand.Int64N(100)
		waitFor(t, "the next operations", func() bool { return s.asked.Load() >= next || t.Failed() })
		p.kill9(t)
		p = p.again(t)
	}
	over.Store(true)
	<-ended
	s.mustAgree(t)
	s.ask(t, newTransport(t, http1, ""), p.url)
	s.mustAgree(t)
}

func TestAServiceThatHonorsKeysMayGetARequestAgain(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, protocol := range []protocol{http1, h2c} {
		for _, method := range []string{"POST", "PATCH"} { // each with a budget of its own
			t.Run(method+" "+string(protocol), func(t *testing.T) {
				t.Parallel()
				l := newLedger(t, protocol, everySecond(hangUp))
				p := stand(t, l.url, append(guards, "--upstream-keys")...)
				tr := newTransport(t, http1, "")
				for i, w := range replayable(method) {
					operation := fmt.Sprintf("%d-%s", i, protocol)
					l.restart()
					o, told := order(tr, p.url, w, operation)
					sends, want := l.charged(operation), outcome(charged)
					if w.field == "" {
						want = doubt
					}
					if o != want || want == charged && sends != 2 || want == doubt && sends != 1 {
						t.Errorf("%s: sent %d times, and the client was told %s: %s", w.brief(), sends, o, told)
					}
				}
			})
		}
	}
}

func TestWhatAServiceSurelyDidNotProcessIsSentAgain(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, f := range []fault{refuses, unread} {
		for _, method := range []string{"POST", "PATCH"} {
			t.Run(method+", "+string(f), func(t *testing.T) {
				t.Parallel()
				l := newLedger(t, h2c, everySecond(f))
				p := stand(t, l.url, guards...)
				tr := newTransport(t, http1, "")
				for i, w := range replayable(method) {
					operation := fmt.Sprint(i)
					l.restart()
					if o, told := order(tr, p.url, w, operation); o != charged || l.charged(operation) != 1 {
						t.Errorf("%s: charged %d times, and the client was told %s: %s", w.brief(), l.charged(operation), o, told)
					}
				}
			})
		}
	}
}

// everySecond is a fault that every second request meets, from the first on.
func everySecond(f fault) func(int) fault {
	return func(n int) fault {
		if n%2 == 1 {
			return f
		}
		return ""
	}
}

// restart lets the next request be the first.
func (l *ledger) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = 0
}

// replayable are the ways whose bodies can be sent twice. They are fewer than the retries that a new budget has.
func replayable(method string) []way {
	return slices.DeleteFunc(ways(), func(w way) bool { return w.method != method || w.length < 0 || w.length > 64<<10 })
}

func (w way) brief() string {
	return fmt.Sprintf("%s %s %s %d of %d", w.method, w.path, w.field, len(w.body), w.length)
}

func (l *ledger) charged(operation string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.charges[operation]
}

func (l *ledger) losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// A survey is clients that send operations to a ledger, and what they were told.
type survey struct {
	ledger *ledger
	insist bool // with a key, a client sends again until it has an outcome
	asked  atomic.Int64

	mu    sync.Mutex
	told  map[string]outcome
	words map[string]string
	sent  map[string]way
	count map[outcome]int
}

func newSurvey(l *ledger) *survey {
	return &survey{ledger: l, told: make(map[string]outcome), words: make(map[string]string), sent: make(map[string]way), count: make(map[outcome]int)}
}

// run lets clients send at least one operation each, and more as long as there is a need.
func (s *survey) run(t *testing.T, clients int, tr http.RoundTripper, base string, more func() bool) {
	all := ways()
	var working sync.WaitGroup
	for c := range clients {
		working.Go(func() {
			for i := 0; i == 0 || more(); i++ {
				operation := fmt.Sprintf("%d-%d", c, i)
				w := all[(i*clients+c)%len(all)]
				o, told := order(tr, base, w, operation)
				for end := time.Now().Add(patience); s.insist && w.path == "/charge" && (o == broken || o == running || o == free || o == other); {
					if time.Now().After(end) {
						t.Errorf("%s: no outcome after %v: %s", operation, patience, told)
						return
					}
					time.Sleep(5 * time.Millisecond)
					o, told = order(tr, base, w, operation)
				}
				s.asked.Add(1)
				s.mu.Lock()
				s.told[operation], s.words[operation], s.sent[operation] = o, told, w
				s.count[o]++
				s.mu.Unlock()
			}
		})
	}
	working.Wait()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	t.Logf("%d operations, %d requests at the service, %d answers lost; clients were told: %v", len(s.told), s.ledger.requests, s.ledger.lost, s.count)
}

// ask sends each operation once more that has a key at the proxy.
func (s *survey) ask(t *testing.T, tr http.RoundTripper, base string) {
	t.Helper()
	var working sync.WaitGroup
	gate := make(chan struct{}, 16)
	for _, operation := range slices.Sorted(maps.Keys(s.told)) {
		w, before := s.sent[operation], s.told[operation]
		if w.path != "/charge" || before == free { // which may be run now
			continue
		}
		gate <- struct{}{}
		working.Go(func() {
			defer func() { <-gate }()
			o, told := order(tr, base, w, operation)
			fits := o == before
			if before == broken { // by the service in the midst of its answer, or before the proxy had the request
				fits = o != other
			}
			if !fits {
				t.Errorf("%s %s, of which the client was told %s (%s), with its key again: got %s (%s), want the same", w.brief(), operation, before, s.words[operation], o, told)
			}
		})
	}
	working.Wait()
}

// mustAgree compares what clients were told with what was charged.
func (s *survey) mustAgree(t *testing.T) {
	t.Helper()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	for operation, n := range s.ledger.charges {
		if n > 1 {
			t.Errorf("%s %s: charged %d times; the client was told %s", s.sent[operation].brief(), operation, n, s.words[operation])
		}
	}
	for operation, o := range s.told {
		n := s.ledger.charges[operation]
		switch {
		case o == charged && n != 1, o == free && n > 0, o == other:
			t.Errorf("%s %s: charged %d times, and the client was told %s: %s", s.sent[operation].brief(), operation, n, o, s.words[operation])
		}
	}
}
