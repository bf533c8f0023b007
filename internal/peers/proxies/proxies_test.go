package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const answered = `Running 5s test @ http://127.0.0.1:8080/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.70ms    1.44ms  14.58ms   85.62%
    Req/Sec    19.64k     1.01k   22.13k    66.00%
  Latency Distribution
     50%    1.21ms
     75%    2.30ms
     90%    3.61ms
     99%    6.79ms
  97671 requests in 5.00s, 22.17MB read
Requests/sec:  19531.45
Transfer/sec:      4.43MB
`

func TestTheOutputOfTheLoadIsRead(t *testing.T) {
	want := result{requests: 97671, rate: 19531.45, p99: 6790 * time.Microsecond}
	if got, err := readResult(answered); err != nil || got != want {
		t.Errorf("readResult(…) = %+v, %v; want %+v and no error", got, err, want)
	}
}

func TestALoadWithFailuresIsNoResult(t *testing.T) {
	for _, line := range []string{
		"  Non-2xx or 3xx responses: 12\n",
		"  Socket errors: connect 0, read 3, write 0, timeout 0\n",
	} {
		out := strings.Replace(answered, "Requests/sec:", line+"Requests/sec:", 1)
		if got, err := readResult(out); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(line)) {
			t.Errorf("readResult(… %q …) = %+v, %v; want an error with that line", line, got, err)
		}
	}
	for _, out := range []string{"", "unable to connect to 127.0.0.1:1 Connection refused\n", strings.Replace(answered, "97671", "0", 1)} {
		if got, err := readResult(out); err == nil {
			t.Errorf("readResult(%q) = %+v, want an error", out, got)
		}
	}
}

func TestTheCPUTimeOfAProcessIsReadWhateverItsName(t *testing.T) {
	const line = "4242 (a) b (c) S 17 4242 4242 0 -1 4194560 1234 0 0 0 250 125 7 9 20 0 8 0 5327 1289 52 18446744073709551615 1 1 0"
	pid, parent, ticks, err := readStat(line)
	if pid != 4242 || parent != 17 || ticks != 375 || err != nil {
		t.Errorf("readStat(%q) = %d, %d, %d, %v; want 4242, 17, 375 and no error", line, pid, parent, ticks, err)
	}
	for _, line := range []string{"", "4242 (a", "4242 (a) S 17", "4242 (a) S x 4242 4242 0 -1 4194560 1234 0 0 0 250 125 7"} {
		if _, _, _, err := readStat(line); err == nil {
			t.Errorf("readStat(%q) = no error, want one", line)
		}
	}
}

func TestWhatWasStartedIsEnded(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	listen, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	var started *process
	func() {
		var procs processes
		defer procs.stop()
		if started, err = procs.start([]string{program, "-test.run", "^TestServe$"}, []string{"SERVE=" + listen}, "http://"+listen, t.TempDir()+"/log"); err != nil {
			t.Fatal(err)
		}
	}()
	select {
	case <-started.ended:
	default:
		started.cmd.Process.Kill()
		t.Error("the server goes on after stop, want it to be ended")
	}
}

// TestServe is the server of the test above.
func TestServe(t *testing.T) {
	listen := os.Getenv("SERVE")
	if listen == "" {
		t.Skip("no test by itself")
	}
	t.Error(http.ListenAndServe(listen, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

func TestRatiosAreTakenInsideARound(t *testing.T) {
	rows := []row{
		{name: "quick", turns: []turn{{rate: 100}, {rate: 10}, {rate: 50}}}, // the machine was slow in the second round
		{name: "slow", turns: []turn{{rate: 50}, {rate: 6}, {rate: 20}}},
	}
	rate := func(t turn) float64 { return t.rate }
	if got, want := against(rows[1], rows, "quick", rate), "0.50 (0.40 to 0.60)"; got != want {
		t.Errorf("against(slow, quick) = %s, want %s", got, want)
	}
	if got := against(rows[0], rows, "quick", rate); got != "1" {
		t.Errorf("against(quick, quick) = %s, want 1", got)
	}
}

func TestAMedianOfAnEvenNumberLiesInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		all  []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}, {[]float64{7}, 7}} {
		if got := median(c.all); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.all, got, c.want)
		}
	}
}

func TestTheHarmonicSumIsTheRateOfOneAfterTheOther(t *testing.T) {
	if got := harmonic(100, 25); got != 20 { // 10 ms and 40 ms
		t.Errorf("harmonic(100, 25) = %v, want 20", got)
	}
}
