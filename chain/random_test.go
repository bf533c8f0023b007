package chain_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

// A draw returns a number from zero up to below n.
type draw func(n int) int

func pick[T any](d draw, from ...T) T { return from[d(len(from))] }

// wild makes a chain of anything that the types allow.
func wild(d draw) *chain.Chain {
	span := func() time.Duration {
		return pick(d, 0, -1, 1, ms, 100*ms, 900*ms, time.Second, 2*time.Second, 7*time.Second, time.Minute, time.Hour,
			math.MinInt64, math.MaxInt64, math.MaxInt64-1, math.MaxInt64/2)
	}
	number := func() int { return pick(d, 0, 1, 2, 3, 4, -1, 12, 101, 1000, math.MaxInt, math.MaxInt-1, math.MinInt) }
	name := func() string { return pick(d, "a", "b", "c", "d", "e", "f", "g", "", "ü\n") }
	budget := func() *riprap.Budget { return pick(d, nil, &riprap.Budget{}, &riprap.Budget{Ratio: math.Inf(1)}) }
	own := &riprap.Budget{Ratio: math.Inf(1)}
	own.Parent = own

	c := &chain.Chain{MaxCalls: number()}
	for range d(9) {
		s := chain.Service{Name: name(), Limit: span(), Lease: span(), Retention: span()}
		for range d(4) {
			s.Calls = append(s.Calls, chain.Call{
				To: name(), P99: span(), Idempotent: d(2) == 0, Keyed: d(2) == 0,
				Policy: riprap.Policy{
					MaxAttempts: number(), Timeout: span(), AttemptTimeout: span(), MinAttempt: span(), MaxWait: span(),
					Backoff: riprap.Backoff{
						Base: span(), Max: span(), Factor: pick(d, 0, 1, 2, 1.001, -3, math.NaN(), math.Inf(1)),
						Jitter: riprap.Jitter(d(6) - 1),
					},
					Budget: pick(d, budget(), budget(), own),
				},
			})
		}
		c.Services = append(c.Services, s)
	}
	return c
}

// tame makes a chain of at most seven services without a cycle, of figures that are near each other. All its calls end.
func tame(d draw) *chain.Chain {
	c := &chain.Chain{MaxCalls: pick(d, 0, 4, 6, -1)}
	n := 2 + d(6)
	for i := range n {
		s := chain.Service{Name: fmt.Sprint(i)}
		if d(3) == 0 {
			s.Limit = time.Duration(1+d(20)) * time.Second
		}
		for range d(3) {
			if i == n-1 {
				break
			}
			s.Calls = append(s.Calls, chain.Call{
				To: fmt.Sprint(i + 1 + d(n-1-i)), Idempotent: true,
				Policy: riprap.Policy{
					MaxAttempts: pick(d, 0, 1, 1, 1, 2, 3), Timeout: time.Duration(1+d(20)) * time.Second,
					AttemptTimeout: pick(d, 0, 300*ms, time.Second, 4*time.Second, 9*time.Second),
					MinAttempt:     pick(d, 0, 0, 200*ms, 2*time.Second),
					Backoff: riprap.Backoff{
						Base: pick(d, 0, 100*ms, 3*time.Second), Max: pick(d, 0, 200*ms, 4*time.Second),
						Factor: pick(d, 0.0, 1, 3), Jitter: riprap.Jitter(d(4)),
					},
				},
			})
		}
		c.Services = append(c.Services, s)
	}
	return c
}

// sound checks what holds for the findings of any chain.
func sound(t *testing.T, c *chain.Chain) {
	t.Helper()
	findings := chain.Check(c)
	if again := chain.Check(c); !reflect.DeepEqual(findings, again) {
		t.Fatalf("Check =\n%sand then\n%s", written(findings), written(again))
	}
	seen := map[string]bool{}
	for _, f := range findings {
		if key := written([]chain.Finding{f}); seen[key] {
			t.Errorf("the same twice: %s", key)
		} else {
			seen[key] = true
		}
		if f.Why == "" || !strings.HasSuffix(f.Text, ".") || !strings.HasSuffix(f.Fix, ".") || len(f.Figures) == 0 {
			t.Errorf("a finding lacks something: %+v", f)
		}
	}
	for _, h := range c.Hops() {
		if h.Left <= 0 || h.Calls <= 0 || h.Depth < 0 || (h.Depth == 0) != (h.Call < 0) {
			t.Errorf("Hops has %+v", h)
		}
	}
}

func TestFindingsAreSoundWhateverTheChain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		sound(t, wild(random.IntN))
		sound(t, tame(random.IntN))
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x03\x02\x01\x00\x03\x02\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			return b % n
		}
		sound(t, wild(d))
		sound(t, tame(d))
	})
}

// has reports whether there is a finding of a rule.
func has(findings []chain.Finding, rule string) bool {
	return slices.ContainsFunc(findings, func(f chain.Finding) bool { return f.Rule == rule })
}
