package flaky

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestAScriptAnswersStepByStepAndRepeatsTheLast(t *testing.T) {
	tests := []struct {
		script string
		want   []int
	}{
		{"503", []int{503, 503, 503}},
		{"503*2, 429, 200", []int{503, 503, 429, 200, 200}},
		{"503*2 retry-after=1,200*3 body=ok,500", []int{503, 503, 200, 200, 200, 500, 500}},
		{" \n429 ,\t200\n", []int{429, 200}},
		{"200, 799, 600, 999, 204, 304", []int{200, 799, 600, 999, 204, 304}},
	}
	for _, tt := range tests {
		h := newHandler(t, tt.script)
		var got []int
		for range tt.want {
			got = append(got, serveOn(h, "GET", "/", nil).StatusCode)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q answers %d, want %d", tt.script, got, tt.want)
		}
	}
}

func TestEachPathHasStepsOfItsOwn(t *testing.T) {
	h := newHandler(t, `/a: 501, 502; /a/b: 503; /dir/: 504; "/with blank": 505; 506, 507`)
	tests := []struct {
		path string
		want int
	}{
		{"/a", 501}, {"/a/x", 502}, {"/a", 502}, {"/a?q=1", 502},
		{"/a/b", 503}, {"/a/b/c", 503}, {"/a/bc", 502},
		{"/ab", 506}, {"/", 507}, {"/dir", 507}, {"/dir/", 504}, {"/dir/x", 504},
		{"/with%20blank", 505},
	}
	for _, tt := range tests {
		if got := serveOn(h, "GET", tt.path, nil).StatusCode; got != tt.want {
			t.Errorf("GET %s = %d, want %d", tt.path, got, tt.want)
		}
	}
}

func TestAPathWithoutStepsIsNotFoundAndSaysSo(t *testing.T) {
	h := newHandler(t, "/a: 200")
	resp := serveOn(h, "GET", "/b", nil)
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 404 || !strings.Contains(string(body), "no part for this path") {
		t.Errorf("GET /b = %d %q, want 404 and the reason", resp.StatusCode, body)
	}
	if a := one(t, h, ""); a.Path != "/b" || a.Step != "" || a.Ended.IsZero() {
		t.Errorf("the log has %+v, want /b, ended, without a step", a)
	}
}

func TestOptionsMakeTheAnswer(t *testing.T) {
	text := "text/plain; charset=utf-8"
	tests := []struct {
		script string
		header http.Header
		body   string
	}{
		{"503", http.Header{"Content-Type": {text}, "Content-Length": {"24"}}, "503 Service Unavailable\n"},
		{"799", http.Header{"Content-Type": {text}, "Content-Length": {"20"}}, "799 by riprap flaky\n"},
		{"200 body=ok", http.Header{"Content-Type": {text}, "Content-Length": {"2"}}, "ok"},
		{`200 body=""`, http.Header{"Content-Type": {text}, "Content-Length": {"0"}}, ""},
		{`200 body="a, b; \"c\"\n\u00e9"`, http.Header{"Content-Type": {text}, "Content-Length": {"12"}}, "a, b; \"c\"\né"},
		{"204", http.Header{"Content-Type": {text}}, ""},
		{`429 body=x retry-after=1 retry-after="date+2s" retry-after=soon`,
			http.Header{"Content-Type": {text}, "Content-Length": {"1"}, "Retry-After": {"1", "date+2s", "soon"}}, "x"},
		{`200 header="Content-Type: a/b" header="x-y:  1, 2 " header="X-Y: 3" header=Empty: body=x`,
			http.Header{"Content-Type": {"a/b"}, "Content-Length": {"1"}, "X-Y": {"1, 2", "3"}, "Empty": {""}}, "x"},
	}
	for _, tt := range tests {
		resp := serveOn(newHandler(t, tt.script), "GET", "/", nil)
		body, _ := io.ReadAll(resp.Body)
		if string(body) != tt.body {
			t.Errorf("%s: got body %q, want %q", tt.script, body, tt.body)
		}
		for name, want := range tt.header {
			if got := resp.Header[name]; !slices.Equal(got, want) {
				t.Errorf("%s: got %s %q, want %q", tt.script, name, got, want)
			}
			delete(resp.Header, name)
		}
		if len(resp.Header) > 0 {
			t.Errorf("%s: got also %v", tt.script, resp.Header)
		}
	}
}

func TestADateInRetryAfterIsCountedFromTheDateOfTheAnswer(t *testing.T) {
	tests := []struct {
		script string
		want   time.Duration
	}{
		{"429 retry-after=date+2s", 2 * time.Second},
		{"429 delay=1h retry-after=date+2s", 2 * time.Second},
		{"429 retry-after=date-24h", -24 * time.Hour},
		{"429 retry-after=date+0s", 0},
		{"429 retry-after=date+1500ms", time.Second},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(700 * time.Millisecond)
			header := serveOn(newHandler(t, tt.script), "GET", "/", nil).Header
			date, _ := http.ParseTime(header.Get("Date"))
			after, _ := http.ParseTime(header.Get("Retry-After"))
			if got := after.Sub(date); got != tt.want || time.Since(date) != 700*time.Millisecond {
				t.Errorf("%s: got %v after Date, which is %v ago, want %v, 700ms", tt.script, got, time.Since(date), tt.want)
			}
		})
	}
}

func TestABadScriptIsMarkedAtItsColumn(t *testing.T) {
	tests := []struct {
		script  string
		column  int
		problem string
	}{
		{"", 1, "want a step here"},
		{"  ", 3, "want a step here"},
		{"503,", 5, "want a step here"},
		{"503,,200", 5, "want a step here"},
		{"503;", 5, "want a step here"},
		{"/a:", 4, "want a step here"},
		{"50", 1, "want a status from 200"},
		{"199", 1, "want a status from 200"},
		{"100", 1, "want a status from 200"},
		{"1000", 1, "want a status from 200"},
		{"503=1", 4, "a status has no value"},
		{"503*0", 5, "number of requests"},
		{"503*", 5, "number of requests"},
		{"503*-1", 5, "number of requests"},
		{"hang=5s*x", 9, "number of requests"},
		{"503*9999999999999999999", 5, "number of requests"},
		{"503 *2", 5, "directly behind"},
		{"429 retry-after=1*2", 18, "directly behind the status"},
		{"200, hnag=5s", 6, `unknown step "hnag", did you mean "hang"?`},
		{"rst", 1, `unknown step "rst", did you mean "reset"?`},
		{"end", 1, `unknown step "end", did you mean "endless"?`},
		{"get", 1, `unknown step "get": want a status from 200 to 999, hang,`},
		{"explode", 1, "want a status from 200 to 999, hang, reset, close, cut, slow, endless"},
		{"503*2, 429 retry-aftr=1", 12, `did you mean "retry-after"?`},
		{"200 boddy=x", 5, `did you mean "body"?`},
		{"200 colour=red", 5, "there are body, retry-after, header, delay"},
		{"200 hang", 5, "want a comma"},
		{"body=ok", 1, "as in 200 body="},
		{"200 body", 9, "want = and a value"},
		{"200 body=", 10, `an empty one is written ""`},
		{"200 body=a body=b", 12, "a second body"},
		{"204 body=a", 1, "no body"},
		{`200 body="a`, 10, "never closed"},
		{`200 body="a\`, 10, "never closed"},
		{`200 body="a"b`, 13, "want a blank"},
		{`200 body="\q"`, 11, "unknown escape"},
		{"200 body=\"a\nb\"", 12, `write \n`},
		{`200 body={"a":1}`, 11, "quote the whole value"},
		{`200 "x"`, 5, "quotation mark"},
		{`hang="5s"`, 6, "no quotation marks"},
		{"hang=5", 6, "with its unit"},
		{"hang=-5s", 6, "with its unit"},
		{"hang delay=1s", 6, "hang has no option delay"},
		{"reset=1", 6, "reset has no value"},
		{"reset body=x", 7, "reset has no option body"},
		{"cut", 1, "want a value, as in cut=100"},
		{"cut=-1", 5, "number of bytes"},
		{"cut=3 body=abc", 1, "this one has 3 bytes"},
		{"cut=3 retry-after=1", 7, "cut has no option retry-after"},
		{"slow=10ms", 6, "a time for each byte"},
		{"slow=0s/byte", 6, "above zero"},
		{"endless body=x", 9, "endless has no option body"},
		{"429 retry-after=date", 17, "want date+ or date-"},
		{"429 retry-after=date+-2s", 17, "want date+ or date-"},
		{"429 retry-after=date+2", 17, "want date+ or date-"},
		{`429 retry-after="a\nb"`, 17, "control characters"},
		{`200 header="Name"`, 12, "a line of a header"},
		{`200 header="Na me: x"`, 12, "a line of a header"},
		{`200 header=":x"`, 12, "a line of a header"},
		{`200 header="X: a\r\nY: b"`, 12, "control characters"},
		{`200 header="content-length: 5"`, 12, "follows from the body"},
		{"/a 503", 3, "want a colon and a blank"},
		{"/a:503", 7, "want a colon and a blank"},
		{`"/a" 503`, 5, "want a colon"},
		{`"a": 503`, 1, `begins with /: write "/a":`},
		{"a: 503", 1, `begins with /: write "/a: "`},
		{"a:503", 1, `begins with /: write "/a: "`},
		{"7: 503", 1, `begins with /: write "/7: "`},
		{"200; a/b: 503", 6, `begins with /: write "/a/b: "`},
		{"http://127.0.0.1:8080/a: 503", 1, `begins with /: write "/a: "`},
		{"/a: b: 503", 5, `begins with /: write "/b: "`},
		{"/a: 503, b: 200", 10, `behind a semicolon: write "; /b: "`},
		{"503:2", 1, "want a status from 200 to 999"},
		{"/a: 503, /b: 200", 10, `behind a semicolon: write "; /b: "`},
		{"/_log: 503", 1, "where the log is"},
		{"/~x: 503", 1, "names a run"},
		{"/a: 503; /a: 200", 10, "a second part for /a"},
		{"503; 200", 6, "a second part without a path"},
		{"200 body=é, oh", 13, "unknown step"},
	}
	for _, tt := range tests {
		_, err := New(tt.script)
		bad, ok := errors.AsType[*ScriptError](err)
		if !ok {
			t.Errorf("New(%q) = %v, want a *ScriptError", tt.script, err)
			continue
		}
		if bad.Column != tt.column || !strings.Contains(bad.Problem, tt.problem) || bad.Script != tt.script {
			t.Errorf("New(%q): got column %d, %q, want %d, %q", tt.script, bad.Column, bad.Problem, tt.column, tt.problem)
		}
	}
}

func TestTheErrorOfAScriptShowsTheLineWithAMark(t *testing.T) {
	tests := []struct {
		name, script, want string
	}{
		{"a short one", "503, oops", "\t503, oops\n\t     ^"},
		{"at its end", "503,", "\t503,\n\t    ^"},
		{"one of several lines", "/a: 503;\n/b: oops;\n200", "\t/b: oops;\n\t    ^"},
		{"with characters that no terminal should get", "503\t\x1b[2J", "\t503  [2J\n\t    ^"},
		{"a long one", strings.Repeat("503,", 100) + "oops" + strings.Repeat(",503", 100),
			"\t" + strings.Repeat("503,", 15) + "oops,503,503,503,503\n\t" + strings.Repeat(" ", 60) + "^"},
	}
	for _, tt := range tests {
		_, err := New(tt.script)
		if err == nil || !strings.HasSuffix(err.Error(), "\n"+tt.want) {
			t.Errorf("%s: got error\n%v\nwant it to end in\n%s", tt.name, err, tt.want)
		}
	}
}

func FuzzNew(f *testing.F) {
	for _, script := range []string{
		`503*2, 429 retry-after=1, 429 retry-after=date+2s, hang=5s, reset, cut=100, slow=10ms/byte, 200 body=ok`,
		`/a: 503; "/b c": close delay=1s; 200 body="x, \"y\"\n" header="A: b" retry-after=""`,
		"", "503,", "hang=", `200 body="\`, "\xff", "cut=3*4 body=\"\\x00\xfe\"", "200 header=\"é: x\"",
	} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(text)
		if err != nil {
			bad, ok := errors.AsType[*ScriptError](err)
			if !ok || bad.Column < 1 || bad.Column > utf8.RuneCountInString(text)+1 {
				t.Fatalf("parse(%q) = %#v, want a column inside", text, err)
			}
			if !strings.HasSuffix(err.Error(), "^") {
				t.Fatalf("parse(%q) = %q, want a mark at the end", text, err)
			}
			return
		}
		// Each step, as the log shows it, is a script that means the same.
		for _, r := range s.rules {
			for _, st := range r.steps {
				again, err := parse(st.text)
				if err != nil {
					t.Fatalf("parse(%q), of %q: %v", st.text, text, err)
				}
				got := again.rules[0].steps[0]
				got.until = st.until
				if len(again.rules) != 1 || len(again.rules[0].steps) != 1 || !same(got, st) {
					t.Fatalf("parse(%q) = %+v, of %q it was %+v", st.text, got, text, st)
				}
			}
			for n := int64(1); n < 5; n++ {
				r.step(n)
			}
		}
	})
}

func same(a, b step) bool {
	ok := slices.Equal(a.header, b.header)
	a.header, b.header = nil, nil
	return ok && a.text == b.text && a.count == b.count && a.kind == b.kind && a.code == b.code && a.d == b.d && a.n == b.n &&
		a.length == b.length && a.delay == b.delay && a.body == b.body && a.hasBody == b.hasBody
}
