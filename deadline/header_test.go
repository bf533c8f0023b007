package deadline

import (
	"math"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var arrival = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at writes a point in time as DeadlineHeader has it.
func at(d time.Duration) string { return strconv.FormatInt(arrival.Add(d).UnixMilli(), 10) }

// fields makes a header of names and values.
func fields(header ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return h
}

func TestTheSmallestReadableTimeCounts(t *testing.T) {
	const limit = 30 * time.Second
	for _, test := range []struct {
		name   string
		header []string
		want   time.Duration
	}{
		{"nothing said", nil, limit},
		{"milliseconds", []string{TimeoutHeader, "250"}, 250 * time.Millisecond},
		{"zeros in front", []string{TimeoutHeader, "000250"}, 250 * time.Millisecond},
		{"more than the limit", []string{TimeoutHeader, "30001"}, limit},
		{"the longest time there is", []string{TimeoutHeader, "9223372036854"}, limit},
		{"Envoy", []string{"x-envoy-expected-rq-timeout-ms", "15000"}, 15 * time.Second},
		{"gRPC hours", []string{"grpc-timeout", "1H"}, limit},
		{"gRPC minutes", []string{"grpc-timeout", "1M"}, limit},
		{"gRPC seconds", []string{"grpc-timeout", "7S"}, 7 * time.Second},
		{"gRPC milliseconds", []string{"grpc-timeout", "100m"}, 100 * time.Millisecond},
		{"gRPC microseconds", []string{"grpc-timeout", "99999999u"}, limit},
		{"gRPC nanoseconds", []string{"grpc-timeout", "99999999n"}, 99_999_999},
		{"a nanosecond", []string{"grpc-timeout", "1n"}, 1},
		{"all of them, ours least", []string{TimeoutHeader, "100", "X-Envoy-Expected-Rq-Timeout-Ms", "200", "Grpc-Timeout", "300m"}, 100 * time.Millisecond},
		{"all of them, Envoy's least", []string{TimeoutHeader, "200", "X-Envoy-Expected-Rq-Timeout-Ms", "100", "Grpc-Timeout", "300m"}, 100 * time.Millisecond},
		{"all of them, gRPC's least", []string{TimeoutHeader, "200", "X-Envoy-Expected-Rq-Timeout-Ms", "300", "Grpc-Timeout", "100m"}, 100 * time.Millisecond},
		{"one of them junk", []string{TimeoutHeader, "soon", "Grpc-Timeout", "300m"}, 300 * time.Millisecond},
		{"repeated", []string{TimeoutHeader, "300", TimeoutHeader, "100", TimeoutHeader, "200"}, 100 * time.Millisecond},
		{"repeated, some junk", []string{TimeoutHeader, "0", TimeoutHeader, "300", TimeoutHeader, "-1"}, 300 * time.Millisecond},
		{"a thousand, with a comma", []string{TimeoutHeader, "1,000"}, limit},
	} {
		if got := allowed(fields(test.header...), arrival, limit); got != test.want {
			t.Errorf("%s: allowed(%q) = %v, want %v", test.name, test.header, got, test.want)
		}
	}
}

func TestAnUnreadableTimeCountsAsAbsent(t *testing.T) {
	junk := []string{
		"", " ", "0", "00", "-1", "+5", "-9223372036854775808", "abc", "NaN", "Inf", "1e3", "1E3", "0x10", "1.5", "1_000", " 5", "5 ",
		"5ms", "5s", "٣", "9223372036855", "99999999999999", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 40),
		"1,2", "5\x00", "100;200",
	}
	for _, value := range junk {
		for _, name := range []string{TimeoutHeader, "X-Envoy-Expected-Rq-Timeout-Ms", "Grpc-Timeout"} {
			if got := allowed(fields(name, value), arrival, time.Minute); got != time.Minute {
				t.Errorf("allowed(%s: %q) = %v, want the limit", name, value, got)
			}
			if got := allowed(fields(name, value), arrival, endless); got != endless {
				t.Errorf("allowed(%s: %q) without a limit = %v, want no bound", name, value, got)
			}
		}
	}
	for _, value := range []string{"100", "1x", "S", "0S", "0n", "-1S", "+1S", "1s", "1h", "1.5S", "999999999S", "000000001S", "99999999H", "1 S", "1SS", "1e3m"} {
		if got := allowed(fields("Grpc-Timeout", value), arrival, time.Minute); got != time.Minute {
			t.Errorf("allowed(grpc-timeout: %q) = %v, want the limit", value, got)
		}
	}
}

func TestAPointInTimeOnlyTakesAwayALittle(t *testing.T) {
	const limit = 30 * time.Second
	for _, test := range []struct {
		name   string
		header []string
		want   time.Duration
	}{
		{"alone", []string{DeadlineHeader, at(time.Second)}, limit},
		{"beside junk", []string{TimeoutHeader, "x", DeadlineHeader, at(time.Second)}, limit},
		{"20ms on the way", []string{TimeoutHeader, "500", DeadlineHeader, at(480 * time.Millisecond)}, 480 * time.Millisecond},
		{"beside what gRPC says", []string{"Grpc-Timeout", "500m", DeadlineHeader, at(480 * time.Millisecond)}, 480 * time.Millisecond},
		{"no time on the way", []string{TimeoutHeader, "500", DeadlineHeader, at(500 * time.Millisecond)}, 500 * time.Millisecond},
		{"later", []string{TimeoutHeader, "500", DeadlineHeader, at(501 * time.Millisecond)}, 500 * time.Millisecond},
		{"half the time on the way", []string{TimeoutHeader, "500", DeadlineHeader, at(250 * time.Millisecond)}, 250 * time.Millisecond},
		{"more than half", []string{TimeoutHeader, "500", DeadlineHeader, at(249 * time.Millisecond)}, 500 * time.Millisecond},
		{"a second on the way", []string{TimeoutHeader, "9000", DeadlineHeader, at(8 * time.Second)}, 8 * time.Second},
		{"more than a second", []string{TimeoutHeader, "9000", DeadlineHeader, at(7999 * time.Millisecond)}, 9 * time.Second},
		{"a clock that is an hour behind", []string{TimeoutHeader, "500", DeadlineHeader, at(-time.Hour)}, 500 * time.Millisecond},
		{"a clock that is an hour ahead", []string{TimeoutHeader, "500", DeadlineHeader, at(time.Hour)}, 500 * time.Millisecond},
		{"now", []string{"Grpc-Timeout", "1n", DeadlineHeader, at(0)}, 1},
		{"in seconds", []string{TimeoutHeader, "500", DeadlineHeader, strconv.FormatInt(arrival.Unix(), 10)}, 500 * time.Millisecond},
		{"the end of time", []string{TimeoutHeader, "500", DeadlineHeader, "9223372036854775807"}, 500 * time.Millisecond},
		{"zero", []string{TimeoutHeader, "500", DeadlineHeader, "0"}, 500 * time.Millisecond},
		{"below zero", []string{TimeoutHeader, "500", DeadlineHeader, "-1"}, 500 * time.Millisecond},
		{"repeated", []string{TimeoutHeader, "500", DeadlineHeader, at(400 * time.Millisecond), DeadlineHeader, at(490 * time.Millisecond), DeadlineHeader, at(201 * time.Millisecond)}, 400 * time.Millisecond},
		{"of a time beyond the limit", []string{TimeoutHeader, "40000", DeadlineHeader, at(39500 * time.Millisecond)}, limit},
	} {
		if got := allowed(fields(test.header...), arrival, limit); got != test.want {
			t.Errorf("%s: allowed(%q) = %v, want %v", test.name, test.header, got, test.want)
		}
	}
}

func TestOnlyATokenIsACorrelationID(t *testing.T) {
	for _, id := range []string{"a", "7f3e2c1a-88aa-4d10-9a57-0f7e1f1c0b11", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "Root.1-67891233~abc!#$%&'*+^_`|", strings.Repeat("x", 128)} {
		if got := correlationID(id); got != id {
			t.Errorf("correlationID(%q) = %q, want it kept", id, got)
		}
	}
	for _, id := range []string{"", " ", "a b", "a,b", "a\nb", "a\x00", "ä", "\xff", `"a"`, "a;b", "<b>", "a/b", strings.Repeat("x", 129)} {
		if got := correlationID(id); got == id || !plain(got) {
			t.Errorf("correlationID(%q) = %q, want a new one", id, got)
		}
	}
	if got := correlationID("a b", "second", "third"); got != "second" {
		t.Errorf("correlationID of three = %q, want the first that is plain", got)
	}
	if a, b := correlationID(), correlationID(); a == b {
		t.Errorf("correlationID() = %q twice, want another one each time", a)
	}
}

func FuzzAllowed(f *testing.F) {
	f.Add("250", "", "", "", int64(time.Second))
	f.Add("250\n-1\n1e9", "100m", "15000", at(200*time.Millisecond), int64(math.MaxInt64))
	f.Add("", "1n", "", at(0), int64(1))
	f.Add("9223372036855", "99999999H", "0", "9223372036854775807", int64(time.Hour))
	f.Fuzz(func(t *testing.T, ours, grpc, envoy, point string, limit int64) {
		if limit <= 0 {
			return // Handler makes it the longest time
		}
		h := http.Header{
			TimeoutHeader:  strings.Split(ours, "\n"),
			grpcHeader:     strings.Split(grpc, "\n"),
			envoyHeader:    strings.Split(envoy, "\n"),
			DeadlineHeader: strings.Split(point, "\n"),
		}
		got := allowed(h, arrival, time.Duration(limit))
		told := smallest(h)
		most := min(told, time.Duration(limit))
		least := min(told-min(told/2, time.Second), time.Duration(limit))
		if told == endless {
			least = most
		}
		if got <= 0 || got < least || got > most {
			t.Errorf("allowed(%q, limit %v) = %v, want above zero and from %v to %v", h, time.Duration(limit), got, least, most)
		}
		h.Del(DeadlineHeader)
		if got := allowed(h, arrival, time.Duration(limit)); got != most {
			t.Errorf("allowed(%q, limit %v) = %v, want %v", h, time.Duration(limit), got, most)
		}
	})
}

// smallest reads the relative times of a header in another way than allowed does.
func smallest(h http.Header) time.Duration {
	units := map[string]time.Duration{"": time.Millisecond, "H": time.Hour, "M": time.Minute, "S": time.Second, "m": time.Millisecond, "u": time.Microsecond, "n": 1}
	told := big.NewInt(math.MaxInt64)
	for name, form := range map[string]string{
		TimeoutHeader: `^([0-9]{1,18})()$`,
		envoyHeader:   `^([0-9]{1,18})()$`,
		grpcHeader:    `^([0-9]{1,8})([HMSmun])$`,
	} {
		for _, value := range h[name] {
			match := regexp.MustCompile(form).FindStringSubmatch(value)
			if match == nil {
				continue
			}
			n, _ := new(big.Int).SetString(match[1], 10)
			n.Mul(n, big.NewInt(int64(units[match[2]])))
			if n.Sign() > 0 && n.Cmp(told) < 0 {
				told = n
			}
		}
	}
	return time.Duration(told.Int64())
}
