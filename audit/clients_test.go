package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/fnv"
	"io"
	random "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A subject is a client to audit. Without a fault it keeps to every rule; its fault is the id of the one that it breaks, with a
// slash and a word behind it where there is more than one way to.
type subject struct {
	memory *memory
	fault  string

	mu   sync.Mutex
	runs map[string]uint64 // by scenario: how many began
	key  string            // the one that it uses for everything, if that is its fault
}

const (
	subjectAttempts = 6
	subjectBase     = 100 * time.Millisecond
	subjectCap      = 400 * time.Millisecond
	subjectTotal    = 25 * time.Second
	subjectAttempt  = 8 * time.Second
	subjectMaxWait  = time.Minute
)

func faultless(m *memory) Client { return withFault("")(m) }

func withFault(rule string) func(*memory) Client {
	return func(m *memory) Client {
		s := &subject{memory: m, fault: rule, runs: map[string]uint64{}, key: rand.Text()}
		return s.run
	}
}

// run is one process of the subject: a transport, a budget and random numbers of its own.
func (s *subject) run(ctx context.Context, c Call) error {
	p := &process{subject: s, call: c, transport: s.memory.transport(), uniform: s.seed(c.URL), tokens: 10}
	p.transport.DisableKeepAlives = s.fault == "connections-reused"
	defer p.transport.CloseIdleConnections()
	failures := make([]error, c.Calls)
	var calls sync.WaitGroup
	for i := range failures {
		calls.Go(func() { failures[i] = p.operation(ctx) })
	}
	calls.Wait()
	return errors.Join(failures...)
}

// seed gives the n-th run of each scenario the same random numbers in every test.
func (s *subject) seed(address string) func() float64 {
	scenario := address[strings.Index(address, "~"):strings.LastIndex(address, "-")]
	h := fnv.New64()
	io.WriteString(h, scenario)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[scenario]++
	r := random.New(random.NewPCG(h.Sum64(), s.runs[scenario]))
	var mu sync.Mutex
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
}

type process struct {
	*subject
	call      Call
	transport *http.Transport
	uniform   func() float64
	mu        sync.Mutex
	tokens    int // retries that all calls may make
}

// operation is a call with its attempts.
func (p *process) operation(ctx context.Context) error {
	if p.fault != "timeout-"+p.scenario() && p.fault != "timeout-hang/tries for ever" && p.fault != "retry-after-huge/sleeps" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, subjectTotal)
		defer cancel()
	}
	key := ""
	if p.call.Key != "" {
		key = rand.Text()
		if p.fault == "key-new" {
			key = p.key
		}
	}
	for attempt := 1; ; attempt++ {
		answer, err := p.send(ctx, attempt, key)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && !p.transient(answer) {
			return nil
		}
		if !p.again(attempt, err, answer) {
			return errors.New("gave up")
		}
		wait := p.wait(attempt, answer)
		if wait > subjectMaxWait && p.fault != "retry-after-huge/sleeps" {
			return errors.New("asked for too long a wait")
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *process) scenario() string {
	path := p.call.URL[strings.Index(p.call.URL, "~")+1:]
	return path[:strings.LastIndex(path, "-")]
}

// again decides whether the operation may be sent once more.
func (p *process) again(attempt int, err error, answer *http.Response) bool {
	switch {
	case answer != nil && answer.Header.Get("X-Should-Retry") == "false" && p.fault != "x-should-retry":
		return false
	case err != nil && strings.Contains(err.Error(), "certificate"):
		return p.fault == "tls-final" && attempt < 3
	case p.call.Method == post && p.call.Key == "" && p.fault != p.scenarioRule() && !strings.HasPrefix(p.fault, "body-whole"):
		return false
	case p.fault == "retries-"+p.scenario():
		return false
	case attempt >= subjectAttempts && p.fault != "bounded-attempts" && p.fault != "timeout-hang/tries for ever":
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.call.Calls > 1 && p.fault != "amplification" {
		p.tokens--
		return p.tokens >= 0
	}
	return true
}

// scenarioRule is the rule about keyless POSTs that the scenario is for.
func (p *process) scenarioRule() string {
	return map[string]string{"post-503": "post-503", "post-reset": "post-reset", "post-hang": "post-timeout"}[p.scenario()]
}

func (p *process) transient(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return true
	default:
		return answer.StatusCode == http.StatusNotFound && p.fault == "final-status" ||
			answer.StatusCode == http.StatusNotImplemented && p.fault == "final-status/501"
	}
}

// wait is how long to wait after an attempt.
func (p *process) wait(attempt int, answer *http.Response) time.Duration {
	limit := min(subjectBase<<min(attempt-1, 20), subjectCap)
	if p.fault == "backoff-grows" {
		limit = subjectBase
	}
	own := tick + time.Duration(p.uniform()*float64(limit))
	switch {
	case p.fault == "jitter":
		own = limit
	case p.fault == "jitter/whole seconds":
		own = time.Duration(1+3*p.uniform()) * time.Second
	case p.fault == "jitter-at-cap":
		own = min(limit/2+time.Duration(p.uniform()*float64(limit)), subjectCap/2)
	case p.fault == "bounded-attempts":
		own = limit / 4
	}
	if answer == nil {
		return own
	}
	return p.asked(answer, own)
}

// asked is the wait that an answer asks for, at least the client's own.
func (p *process) asked(answer *http.Response, own time.Duration) time.Duration {
	jitter := time.Duration(p.uniform() * float64(subjectBase))
	values := answer.Header.Values("Retry-After")
	wait := own
	for _, value := range values {
		if p.fault == "retry-after-huge/overflows any integer" && len(value) > 19 {
			return 0
		}
		if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
			asked := time.Duration(min(seconds, 1e9)) * time.Second
			switch p.fault {
			case "retry-after-seconds/as milliseconds":
				asked /= 1000
			case "retry-after-seconds":
				asked /= 2
			case "retry-after-not-faster":
				asked /= 1e9
				return asked
			case "retry-after-zero":
				if seconds == 0 {
					return 0
				}
			case "retry-after-huge":
				asked = min(asked, 5*time.Second)
			case "retry-after-huge/overflows":
				if asked = time.Duration(seconds) * time.Second; asked < 0 {
					return 0
				}
			case "retry-after-huge/overflows milliseconds":
				if seconds < 1<<31 && int32(seconds*1000) < 0 {
					return 0
				}
			}
			if asked > 0 {
				wait = max(wait, asked+jitter)
			}
		} else if date, err := http.ParseTime(value); err == nil {
			asked := time.Until(date)
			switch p.fault {
			case "retry-after-date":
				asked = 0
			case "retry-after-past":
				if asked < 0 {
					return 0
				}
			}
			if asked > 0 {
				wait = max(wait, asked+jitter)
			}
		} else if p.fault == "retry-after-unreadable" {
			return 0
		}
	}
	if p.fault == "retry-after-both" && len(values) > 1 {
		return own
	}
	return wait
}

// send makes one attempt, and reads its answer to the end.
func (p *process) send(ctx context.Context, attempt int, key string) (*http.Response, error) {
	limit := subjectAttempt
	switch p.fault {
	case "timeout-" + p.scenario(), "deadline-shrinks/computed once":
		limit = time.Hour
	case "timeout-hang/tries for ever":
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := p.request(ctx, attempt, key)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: p.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if p.fault == "body-whole/redirected" {
			next.Body, next.ContentLength = http.NoBody, 0
		}
		if p.fault != "redirect-secrets" && next.URL.Host != via[0].URL.Host {
			next.Header.Del("Idempotency-Key")
		}
		if p.call.Token != "" && (p.fault == "redirect-secrets/credentials" || p.fault == "redirect-secrets/second hop" && len(via) > 1) {
			next.Header.Set("Authorization", "Bearer "+p.call.Token)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if p.fault == "connections-reused/unread" {
		return resp, nil
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, err
}

func (p *process) request(ctx context.Context, attempt int, key string) (*http.Request, error) {
	var body io.Reader
	if p.call.Method == post {
		text := p.call.Body
		switch {
		case p.fault == "body-whole" && attempt > 1:
			text = ""
		case p.fault == "body-whole/the rest" && attempt > 1:
			text = text[len(text)/2:]
		case p.fault == "key-same/another body":
			text += strconv.Itoa(attempt)
		}
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, p.call.Method, p.call.URL, body)
	if err != nil {
		return nil, err
	}
	switch {
	case p.fault == "key-same" && key != "":
		key = rand.Text()
	case p.fault == "key-same/lost" && attempt > 1:
		key = ""
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if p.call.Token != "" {
		req.Header.Set("Authorization", "Bearer "+p.call.Token)
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	switch p.fault {
	case "deadline-shrinks":
		left = time.Minute
	case "deadline-shrinks/computed once":
		left = subjectTotal
	case "deadline-shrinks/grows":
		left = min(left, time.Duration(attempt)*time.Second)
	}
	req.Header.Set("X-Request-Timeout-Ms", strconv.FormatInt(left.Milliseconds(), 10))
	switch p.fault {
	case "attempt-header":
		req.Header.Set("X-Request-Attempt", "1")
	case "attempt-header/piles up":
		for n := range attempt {
			req.Header.Add("X-Request-Attempt", strconv.Itoa(n+1))
		}
	default:
		req.Header.Set("X-Request-Attempt", strconv.Itoa(attempt))
	}
	return req, nil
}
