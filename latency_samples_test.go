package riprap_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// Each is drawn from 20 µs to 60 s.
var distributions = map[string]func(*rand.Rand) float64{
	"uniform":   func(r *rand.Rand) float64 { return 20e-6 + 60*r.Float64() },
	"lognormal": func(r *rand.Rand) float64 { return 0.02 * math.Exp(1.5*r.NormFloat64()) },
	"bimodal": func(r *rand.Rand) float64 {
		if r.Float64() < 0.97 {
			return 200e-6 * (1 + 0.1*r.NormFloat64())
		}
		return 20 * (1 + 0.1*r.NormFloat64())
	},
	"all alike": func(*rand.Rand) float64 { return 0.0123456789 },
}

func TestQuantilesAreWithinOnePercentOfTheSampleOfThatRank(t *testing.T) {
	for name, draw := range distributions {
		for _, n := range []int{1, 2, 100, 201, 12345} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				for seed := range uint64(20) {
					random := rand.New(rand.NewPCG(seed, 1))
					l, took := &riprap.Latency{}, make([]time.Duration, n)
					for i := range took {
						took[i] = time.Duration(min(max(draw(random), 20e-6), 60) * float64(time.Second))
						observe(l, noon, 1, took[i])
					}
					slices.Sort(took)
					got := l.Snapshot(noon)
					for percent, value := range map[int]time.Duration{50: got.P50, 95: got.P95, 99: got.P99} {
						if want := took[(percent*n+99)/100-1]; !about(value, want) {
							t.Errorf("seed %d: P%d = %v, want %v within one percent", seed, percent, value, want)
						}
					}
				}
			})
		}
	}
}

func TestTheLongestAndTheShortestTimesHaveBuckets(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		math.MinInt64: 64, -1: 64, 0: 64, 127: 64, 128: 192, // ns, the middle of the bucket
		18 * time.Minute: 18 * time.Minute, time.Hour: 18 * time.Minute, math.MaxInt64: 18 * time.Minute,
	} {
		l := &riprap.Latency{}
		o := riprap.Operation{Policy: &riprap.Policy{Latency: l}}
		o.Begin(noon)
		o.Observe(noon.Add(took), nil)
		if got := l.Snapshot(noon); got.Count != 1 || (got.P50-want).Abs() > want/50 {
			t.Errorf("an attempt of %v: Snapshot = %+v, want a sample of about %v", took, got, want)
		}
	}
}

// FuzzLatency lets anything happen to a Latency of any figures, at times that also go back.
func FuzzLatency(f *testing.F) {
	f.Add(0.0, int64(0), int64(0), int64(0), int64(0), 0.0, uint64(1))
	f.Add(-1.0, int64(-1), int64(time.Second), int64(time.Second), int64(time.Millisecond), 2.0, uint64(2))
	f.Add(math.NaN(), int64(time.Hour), int64(time.Second), int64(-5), int64(-7), math.NaN(), uint64(3))
	f.Add(math.Inf(1), int64(1), int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), -1.0, uint64(4))
	f.Add(math.Inf(-1), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), 1e300, uint64(5))
	f.Add(0.1, int64(math.MaxInt64), int64(0), int64(1), int64(time.Hour), 0.5, uint64(6))
	f.Add(1e300, int64(0), int64(time.Minute), int64(3), int64(2), 0.0, uint64(7))
	f.Fuzz(func(t *testing.T, factor float64, least, ceiling, startBound, startP50 int64, startShare float64, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := &riprap.Latency{Factor: factor, Min: time.Duration(least), Start: riprap.LatencySnapshot{
			Count: int(seed), P50: time.Duration(startP50), P99: time.Duration(startP50), TimedOut: startShare, Bound: time.Duration(startBound)}}
		p := &riprap.Policy{Latency: l, AttemptTimeout: time.Duration(ceiling)}
		lower := time.Duration(least)
		switch {
		case least == 0:
			lower = 10 * time.Millisecond
		case least < 0:
			lower = 1
		}
		if ceiling > 0 {
			lower = min(lower, time.Duration(ceiling))
		}
		now, pace := noon, time.Duration(random.Int64N(int64(time.Second)))
		for range 2000 {
			switch random.IntN(500) {
			case 0:
				now = now.Add(time.Duration(random.Int64N(int64(2*time.Minute))) - time.Minute)
			case 1:
				pace = time.Duration(random.Int64())
			case 2:
				pace = time.Duration(random.Int64N(int64(time.Minute)))
			case 3:
				now = now.Add(time.Duration(random.Int64N(int64(time.Hour))))
			default:
				now = now.Add(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
			}
			o := riprap.Operation{Policy: p}
			until := o.Begin(now)
			got := until.Sub(now)
			switch {
			case until.IsZero() && ceiling > 0:
				t.Fatalf("no bound, want AttemptTimeout %v at most", time.Duration(ceiling))
			case until.IsZero():
			case got < lower || ceiling > 0 && got > time.Duration(ceiling) || factor < 0 && got != time.Duration(ceiling):
				t.Fatalf("the bound is %v, want %v to %v", got, lower, time.Duration(ceiling))
			}
			took := time.Duration(float64(pace) * (0.5 + random.Float64()))
			switch {
			case random.IntN(50) == 0:
				o.Observe(now.Add(took), errFlaky)
			case !until.IsZero() && took >= got:
				o.Observe(until, errFlaky)
			default:
				o.Observe(now.Add(took), nil)
			}
			if random.IntN(20) > 0 {
				continue
			}
			s := l.Snapshot(now)
			if s.P50 > s.P95 || s.P95 > s.P99 || s.P50 < 0 || s.Count < 0 || s.Bound < 0 || !(s.TimedOut >= 0 && s.TimedOut <= 1) || l.P50() < 0 {
				t.Fatalf("Snapshot = %+v, P50 %v", s, l.P50())
			}
		}
	})
}
