package chart

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func labels(list []tick) []string {
	var s []string
	for _, t := range list {
		s = append(s, strings.ReplaceAll(t.label, "\u00a0", " "))
	}
	return s
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		limit  int
		unit   string
		want   []string
	}{
		{0, 1165, 5, "/s", []string{"0", "200/s", "400/s", "600/s", "800/s", "1,000/s"}},
		{0, 1456, 5, "/s", []string{"0", "500/s", "1,000/s"}},
		{0, 104, 5, "%", []string{"0", "20%", "40%", "60%", "80%", "100%"}},
		{0, 0.31, 5, "", []string{"0", "0.1", "0.2", "0.3"}},
		{10, 200, 4, " clients", []string{"50 clients", "100 clients", "150 clients", "200 clients"}},
		{-30, 12, 5, "", []string{"−30", "−20", "−10", "0", "10"}},
		{0, 26e6, 5, "", []string{"0", "5M", "10M", "15M", "20M", "25M"}},
		{0, 2.6e12, 2, "", []string{"0", "1e12", "2e12"}},
	} {
		if got := labels(ticks(c.lo, c.hi, c.limit, c.unit)); !slices.Equal(got, c.want) {
			t.Errorf("ticks(%v, %v, %d, %q) = %q, want %q", c.lo, c.hi, c.limit, c.unit, got, c.want)
		}
	}
}

func FuzzTicks(f *testing.F) {
	f.Add(0.0, 1165.0, 5)
	f.Add(1e15-1, 1e15, 9)
	f.Add(0.0, 1e-9, 2)
	f.Fuzz(func(t *testing.T, lo, hi float64, limit int) {
		if !usable(lo) || !usable(hi) || hi-lo < 1e-9 || hi-lo < 1e-9*math.Abs(hi) || limit < 2 || limit > 50 {
			t.Skip()
		}
		list := ticks(lo, hi, limit, "")
		if len(list) > limit+1 || len(list) < 1 && limit >= 5 {
			t.Errorf("ticks(%v, %v, %d): got %d", lo, hi, limit, len(list))
		}
		if len(list) > 1 && hi-lo > math.Abs(hi)/1000 {
			step := list[1].at - list[0].at
			digits := step / math.Pow10(int(math.Floor(math.Log10(step)+1e-9)))
			if !slices.ContainsFunc([]float64{1, 2, 5}, func(d float64) bool { return math.Abs(digits-d) < 1e-6 }) {
				t.Errorf("ticks(%v, %v, %d): got steps of %v, want 1, 2 or 5 times a power of ten", lo, hi, limit, step)
			}
			if n := list[0].at / step; math.Abs(n-math.Round(n)) > 1e-6 {
				t.Errorf("ticks(%v, %v, %d): got %v, which is no multiple of their step", lo, hi, limit, list[0].at)
			}
		}
		seen := map[string]bool{}
		for _, tick := range list {
			if tick.at < lo || tick.at > hi {
				t.Errorf("ticks(%v, %v, %d): got %v outside", lo, hi, limit, tick.at)
			}
			if seen[tick.label] && math.Abs(hi) < 1e6 && math.Abs(lo) < 1e6 {
				t.Errorf("ticks(%v, %v, %d): got %q twice", lo, hi, limit, tick.label)
			}
			seen[tick.label] = true
		}
	})
}

func TestTicksOfTime(t *testing.T) {
	for _, c := range []struct {
		end  float64
		want []string
	}{
		{0.3, []string{"0", "100 ms", "200 ms", "300 ms"}},
		{1, []string{"0", "0.5 s", "1.0 s"}},
		{12, []string{"0", "5 s", "10 s"}},
		{120, []string{"0", "30 s", "60 s", "90 s", "120 s"}},
		{600, []string{"0", "5 min", "10 min"}},
		{3600, []string{"0", "20 min", "40 min", "60 min"}},
		{5 * 3600, []string{"0", "2 h", "4 h"}},
		{90 * 24 * 3600, []string{"0"}},
	} {
		got := labels(timeTicks(c.end, 4))
		if c.end > 1e6 {
			if len(got) < 1 || len(got) > 5 {
				t.Errorf("timeTicks(%v, 4) = %q, want one to five", c.end, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("timeTicks(%v, 4) = %q, want %q", c.end, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 64: "64/s", 27.04: "27/s", 1.1: "1.1/s", 1.126: "1.13/s", 0.031: "0.031/s", 1120.4: "1,120/s", 123456: "123,456/s",
		2345678: "2.35M/s", -12.34: "−12.3/s", 1e-7: "0", 99.96: "100/s",
	} {
		if got := figure(v, "/s"); got != want {
			t.Errorf("figure(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestAScaleMapsItsEndsToItsPixels(t *testing.T) {
	s := scale{lo: 0, hi: 300, from: 200, to: 20}
	if s.at(0) != 200 || s.at(150) != 110 || s.at(300) != 20 {
		t.Errorf("%+v: got %v, %v and %v, want 200, 110 and 20", s, s.at(0), s.at(150), s.at(300))
	}
}
