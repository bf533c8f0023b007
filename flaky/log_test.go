package flaky

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// readLog is GET /_log, below a prefix.
func readLog(t *testing.T, h *Handler, prefix string) (list []Arrival) {
	t.Helper()
	resp := serveOn(h, "GET", prefix+"/_log", nil)
	body, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(body, &list); err != nil || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("GET %s/_log: %v, in %s %s", prefix, err, resp.Header.Get("Content-Type"), body)
	}
	return list
}

func TestTheLogSaysWhatArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, "503 retry-after=1, 200")
		start := time.Now()
		serveOn(h, "POST", "/orders?customer=7", strings.NewReader("hello"), "Content-Type", "text/plain", "User-Agent", "test/1",
			"X-Retry-Count", "0", "Traceparent", "00-1", "Accept", "text/html", "X-Custom", "x")
		time.Sleep(time.Second)
		serveOn(h, "GET", "/orders", nil)

		hello := sha256.Sum256([]byte("hello"))
		empty := sha256.Sum256(nil)
		want := []Arrival{
			{Time: start, Ended: start, Method: "POST", Path: "/orders", Conn: "192.0.2.1:1234", Step: "503 retry-after=1", Body: 5,
				Hash: hex.EncodeToString(hello[:]), Whole: true,
				Header: map[string][]string{"Content-Type": {"text/plain"}, "User-Agent": {"test/1"}, "X-Retry-Count": {"0"}, "Traceparent": {"00-1"}}},
			{Time: start.Add(time.Second), Ended: start.Add(time.Second), Method: "GET", Path: "/orders", Conn: "192.0.2.1:1234", Step: "200",
				Hash: hex.EncodeToString(empty[:]), Whole: true, Header: map[string][]string{}},
		}
		for name, got := range map[string][]Arrival{`Arrivals("")`: h.Arrivals(""), "GET /_log": readLog(t, h, "")} {
			for i := range got {
				got[i].Time, got[i].Ended = got[i].Time.Local(), got[i].Ended.Local()
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
			}
		}
	})
}

func TestTheLogIsReadOnly(t *testing.T) {
	h := newHandler(t, "503")
	if got := readLog(t, h, ""); len(got) != 0 {
		t.Errorf("GET /_log = %d arrivals, want none: those who read it are not in it", len(got))
	}
	for _, method := range []string{"POST", "DELETE"} {
		if resp := serveOn(h, method, "/_log", nil); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s /_log = %d, Allow %q, want 405, GET, HEAD", method, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
	serveOn(h, "GET", "/x", nil, "X-Retry", "1")
	h.Arrivals("")[0].Header["X-Retry"][0] = "changed"
	if got := one(t, h, "").Header["X-Retry"][0]; got != "1" {
		t.Errorf("the log has X-Retry %q after a copy was changed, want 1", got)
	}
}

func TestARequestIsInTheLogWhileItIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, "hang=5s")
		go func() {
			defer func() { recover() }() // the abort
			serveOn(h, "PUT", "/x", strings.NewReader("hello"))
		}()
		synctest.Wait()
		a := one(t, h, "")
		if !a.Ended.IsZero() || a.Body != 5 || a.Hash == "" || !a.Whole {
			t.Errorf("while it hangs the log has %+v, want it read and not ended", a)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if a := one(t, h, ""); a.Ended.IsZero() {
			t.Errorf("afterwards the log has %+v, want it ended", a)
		}
	})
}

func TestTraceTellsOfArrivalsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, "503 delay=2s")
		var got []string
		h.Trace = func(a Arrival) {
			got = append(got, fmt.Sprint(a.Path, " ", a.Step, " ", !a.Ended.IsZero(), " ", a.Whole))
		}
		serveOn(h, "GET", "/x", nil)
		if want := []string{"/x 503 delay=2s false false", "/x 503 delay=2s true true"}; !slices.Equal(got, want) {
			t.Errorf("Trace was told %q, want %q", got, want)
		}
	})
}

// What may be a secret is compared and never shown, wherever the log is shown.
func TestNoSecretIsInTheLog(t *testing.T) {
	h := newHandler(t, "503")
	hidden := []string{"Authorization", "Proxy-Authorization", "Cookie", "Idempotency-Key", "X-Api-Key", "X-Auth-Token", "X-Retry-Token",
		"X-Client-Secret", "X-Session-Id", "X-Signature", "Api_key", "Password"}
	for i := range 4 {
		var header []string
		for _, name := range hidden {
			header = append(header, name, fmt.Sprint("s3cret", i%2), name, "s3cret-again")
		}
		serveOn(h, "POST", "/x?token=s3cret", strings.NewReader("s3cret"), header...)
	}
	serveOn(h, "GET", "/y", nil, "X-Api-Key", "s3cret-again")
	body, _ := io.ReadAll(serveOn(h, "GET", "/_log", nil).Body)
	for name, text := range map[string]string{"Arrivals": fmt.Sprintf("%+v", h.Arrivals("")), "/_log": string(body), "the handler": fmt.Sprintf("%+v", h)} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "token=") {
			t.Errorf("%s has a secret: %s", name, text)
		}
	}
	list := h.Arrivals("")
	for i, want := range []string{"[#1 #2]", "[#3 #2]", "[#1 #2]", "[#3 #2]"} {
		for _, name := range hidden {
			if got := fmt.Sprint(list[i].Header[http.CanonicalHeaderKey(name)]); got != want {
				t.Errorf("arrival %d has %s %s, want %s", i+1, name, got, want)
			}
		}
	}
	if got := fmt.Sprint(list[4].Header["X-Api-Key"]); got != "[#2]" {
		t.Errorf("the value that came before has %s, want [#2]", got)
	}
}

func TestRunsAreKeptApart(t *testing.T) {
	h := newHandler(t, "500, 501")
	if err := h.Run("a", "/x: 503, 504"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path, header string
		want         int
	}{
		{"/x", "", 500}, {"/~a/x", "", 503}, {"/x", "a", 504}, {"/~b/x", "", 500}, {"/x", "", 501}, {"/~b", "", 501},
		{"/~a/y", "", 404}, {"/~a/x", "b", 504}, {"/x", "b", 501},
	}
	for _, tt := range tests {
		header := []string{}
		if tt.header != "" {
			header = []string{"X-Flaky-Run", tt.header}
		}
		if got := serveOn(h, "GET", tt.path, nil, header...).StatusCode; got != tt.want {
			t.Errorf("GET %s with run %q = %d, want %d", tt.path, tt.header, got, tt.want)
		}
	}
	paths := func(list []Arrival) (s string) {
		for _, a := range list {
			s += a.Run + a.Path + " "
		}
		return s
	}
	for run, want := range map[string]string{"": "/x /x ", "a": "a/x a/x a/y a/x ", "b": "b/x b/ b/x ", "c": ""} {
		if got := paths(h.Arrivals(run)); got != want {
			t.Errorf("Arrivals(%q) = %s, want %s", run, got, want)
		}
		if run != "" && paths(readLog(t, h, "/~"+run)) != want {
			t.Errorf("GET /~%s/_log = %s, want %s", run, paths(readLog(t, h, "/~"+run)), want)
		}
	}
	if got, want := paths(readLog(t, h, "")), "/x a/x a/x b/x /x b/ a/y a/x b/x "; got != want {
		t.Errorf("GET /_log = %s, want %s", got, want)
	}
}

func TestARunThatGetsAnotherScriptKeepsItsArrivals(t *testing.T) {
	h := newHandler(t, "200")
	for i, script := range []string{"503, 504", "501"} {
		if err := h.Run("a", script); err != nil {
			t.Fatal(err)
		}
		if got, want := serveOn(h, "GET", "/~a/", nil).StatusCode, []int{503, 501}[i]; got != want {
			t.Errorf("GET after Run(%q) = %d, want %d", script, got, want)
		}
	}
	if got := len(h.Arrivals("a")); got != 2 {
		t.Errorf("Arrivals = %d, want 2", got)
	}
}

func TestARunNeedsAnIDAndAScript(t *testing.T) {
	h := newHandler(t, "200")
	for _, id := range []string{"", "a/b", "a b", "é", "~", strings.Repeat("x", 65)} {
		if err := h.Run(id, "200"); err == nil || !strings.Contains(err.Error(), "1 to 64 letters") {
			t.Errorf("Run(%q) = %v, want an error that says what an id is", id, err)
		}
	}
	if err := h.Run("a", "oops"); err == nil || !strings.Contains(err.Error(), "unknown step") {
		t.Errorf(`Run("a", "oops") = %v, want the script's error`, err)
	}
	for _, path := range []string{"/~/x", "/~a%20b/x", "/~" + strings.Repeat("x", 65)} {
		if got := serveOn(h, "GET", path, nil).StatusCode; got != 400 {
			t.Errorf("GET %s = %d, want 400", path, got)
		}
	}
}

func TestEachRequestOfManyAtOnceTakesOneStep(t *testing.T) {
	const runs, clients, each = 4, 8, 50
	h := newHandler(t, fmt.Sprintf("503*%d, 200", clients*each/2))
	var traced atomic.Int64
	h.Trace = func(Arrival) { traced.Add(1) }
	var failed [runs]atomic.Int64
	var wg sync.WaitGroup
	for run := range runs {
		for range clients {
			wg.Go(func() {
				for i := range each {
					resp := serveOn(h, "PUT", fmt.Sprintf("/~%d/x", run), strings.NewReader("x"), "Idempotency-Key", fmt.Sprint(run, i))
					if resp.StatusCode == 503 {
						failed[run].Add(1)
					}
				}
				h.Arrivals(fmt.Sprint(run))
				serveOn(h, "GET", "/_log", nil)
				h.Run("other", "503")
			})
		}
	}
	wg.Wait()
	for run := range runs {
		list := h.Arrivals(fmt.Sprint(run))
		if got := failed[run].Load(); got != clients*each/2 || len(list) != clients*each {
			t.Errorf("run %d: %d of %d requests got 503, want %d of %d", run, got, len(list), clients*each/2, clients*each)
		}
		if !slices.IsSortedFunc(list, func(a, b Arrival) int { return a.Time.Compare(b.Time) }) {
			t.Errorf("run %d: the arrivals are not in order", run)
		}
	}
	if got := traced.Load(); got != 2*runs*clients*each {
		t.Errorf("Trace was called %d times, want %d", got, 2*runs*clients*each)
	}
}

func TestABodyIsHashedAndNeverHeld(t *testing.T) {
	const size = 64 << 20
	h := newHandler(t, "200")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	serveOn(h, "PUT", "/", io.LimitReader(zeros{}, size))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("a body of %d bytes took %d bytes of memory, want at most 1 MiB", size, got)
	}
	if a := one(t, h, ""); a.Body != size || !a.Whole {
		t.Errorf("the log has %d bytes, whole %v, want %d, true", a.Body, a.Whole, size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestTheHashIsThatOfTheBody(t *testing.T) {
	h := newHandler(t, "200")
	body := bytes.Repeat([]byte("riprap "), 20000)
	serveOn(h, "PUT", "/", bytes.NewReader(body))
	sum := sha256.Sum256(body)
	if got, want := one(t, h, "").Hash, hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the log has hash %s, want %s", got, want)
	}
}
