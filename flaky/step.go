package flaky

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riprap-go/riprap/internal/suggest"
)

// A kind is what a step does.
type kind string

const (
	status  kind = "a status"
	hang    kind = "hang"
	reset   kind = "reset"
	closed  kind = "close"
	cut     kind = "cut"
	slow    kind = "slow"
	endless kind = "endless"
)

// faults are the kinds by the names that they have in a script, with one that shows how they are written.
var faults = []struct {
	kind
	example string
}{{hang, "hang=5s"}, {reset, "reset"}, {closed, "close"}, {cut, "cut=100"}, {slow, "slow=10ms/byte"}, {endless, "endless"}}

// options are those that a step may have, and the kinds that know them.
var options = map[string][]kind{
	"body":        {status, cut, slow},
	"retry-after": {status},
	"header":      {status, cut, slow, endless},
	"delay":       {status, reset, closed, cut, slow, endless},
}

// A step is how one request is answered, or several.
type step struct {
	text  string // as written
	shown string // the same in the log, where it stands beside each request
	count int64  // requests that it answers
	until int64  // the sum of the counts, with those of the steps before
	kind  kind

	code    int           // of a status
	d       time.Duration // of hang: until the end; of slow: for each byte
	n       int64         // of cut: bytes
	length  int64         // of cut: bytes that are announced
	delay   time.Duration
	body    string
	hasBody bool // the script gives one
	header  []field
}

// A field is a line of a header.
type field struct {
	name, value string
	first       bool          // of this name, so that it takes the place of what is there anyway
	dated       bool          // the value is the date of the answer and
	ahead       time.Duration // so much
}

const (
	maxCount = 1e6
	maxCut   = 1 << 40
	maxStep  = 1024
	maxHang  = time.Hour // without a time: a client that sent more than its request cannot be seen leaving
)

// step reads a step, up to the comma, the semicolon or the end.
func (p *parser) step() (*step, error) {
	p.skipBlanks()
	if p.at(",;") {
		return nil, p.errorf(p.pos, "want a step here, such as 503 or reset")
	}
	start := p.pos
	w, err := p.word()
	if err != nil {
		return nil, err
	}
	st, err := p.head(w)
	if err != nil {
		return nil, err
	}
	end := p.pos
	for p.skipBlanks(); !p.at(",;"); p.skipBlanks() {
		if w, err = p.word(); err != nil {
			return nil, err
		}
		if err := p.option(st, w); err != nil {
			return nil, err
		}
		end = p.pos
	}
	st.text = p.text[start:end]
	st.shown = clip(st.text, maxStep)
	return st, p.finish(st, start)
}

// head reads the first word of a step, which says what it does.
func (p *parser) head(w word) (*step, error) {
	if w.quoted {
		return nil, p.errorf(w.valueAt, "want no quotation marks here")
	}
	st := &step{count: 1}
	last, at := &w.name, w.at
	if w.assigned {
		last, at = &w.value, w.valueAt
	}
	if text, count, ok := strings.Cut(*last, "*"); ok {
		at += len(text) + 1
		*last = text
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n < 1 || n > maxCount {
			return nil, p.errorf(at, "want a number of requests behind *, 1 to %d", int(maxCount))
		}
		st.count = n
	}
	if before, _, ok := strings.Cut(w.name, ":"); ok && !isStatus(before) {
		return nil, p.misplaced(w.name, w.at)
	}
	if w.name != "" && w.name[0] >= '0' && w.name[0] <= '9' {
		return st, p.status(st, w)
	}
	for _, f := range faults {
		if string(f.kind) == w.name {
			st.kind = f.kind
			return st, p.fault(st, w, f.example)
		}
	}
	if options[w.name] != nil {
		return nil, p.errorf(w.at, "%s= is an option and stands behind a step, as in 200 %s=…", w.name, w.name)
	}
	names := []string{}
	for _, f := range faults {
		names = append(names, string(f.kind))
	}
	if near := suggest.Near(w.name, names); near != "" {
		return nil, p.errorf(w.at, "unknown step %q, did you mean %q?", w.name, near)
	}
	return nil, p.errorf(w.at, "unknown step %.40q: want a status from 200 to 999, %s", w.name, strings.Join(names, ", "))
}

func isStatus(text string) bool {
	code, err := strconv.Atoi(text)
	return err == nil && len(text) == 3 && code >= 200
}

func (p *parser) status(st *step, w word) error {
	if !isStatus(w.name) {
		return p.errorf(w.at, "want a status from 200 to 999")
	}
	st.kind = status
	st.code, _ = strconv.Atoi(w.name)
	if w.assigned {
		return p.errorf(w.at+len(w.name), "a status has no value: options stand behind a blank")
	}
	return nil
}

func (p *parser) fault(st *step, w word, example string) error {
	switch st.kind {
	case reset, closed, endless:
		if w.assigned {
			return p.errorf(w.at+len(w.name), "%s has no value", w.name)
		}
		return nil
	case hang:
		if !w.assigned {
			st.d = maxHang
			return nil
		}
		return p.duration(&st.d, w.value, w.valueAt, example)
	}
	if !w.assigned {
		return p.errorf(w.at, "want a value, as in %s", example)
	}
	if st.kind == cut {
		n, err := strconv.ParseInt(w.value, 10, 64)
		if err != nil || n < 0 || n > maxCut {
			return p.errorf(w.valueAt, "want a number of bytes, as in %s", example)
		}
		st.n = n
		return nil
	}
	text, ok := strings.CutSuffix(w.value, "/byte")
	if !ok {
		return p.errorf(w.valueAt, "want a time for each byte, as in %s", example)
	}
	if err := p.duration(&st.d, text, w.valueAt, example); err != nil {
		return err
	}
	if st.d == 0 {
		return p.errorf(w.valueAt, "want a time above zero, as in %s", example)
	}
	return nil
}

// duration reads a duration that is not negative.
func (p *parser) duration(to *time.Duration, text string, at int, example string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return p.errorf(at, "want a duration with its unit, as in %s", example)
	}
	*to = d
	return nil
}

// option reads a word behind the first.
func (p *parser) option(st *step, w word) error {
	kinds, known := options[w.name]
	if !known {
		return p.unknown(w)
	}
	if !w.assigned {
		return p.errorf(w.at+len(w.name), "want = and a value behind %s", w.name)
	}
	if !slices.Contains(kinds, st.kind) {
		return p.errorf(w.at, "%s has no option %s", st.kind, w.name)
	}
	switch w.name {
	case "delay":
		return p.duration(&st.delay, w.value, w.valueAt, "delay=100ms")
	case "body":
		if st.hasBody {
			return p.errorf(w.at, "a second body")
		}
		st.body, st.hasBody = w.value, true
		return nil
	case "retry-after":
		return p.retryAfter(st, w)
	}
	name, value, ok := strings.Cut(w.value, ":")
	value = strings.Trim(value, " \t")
	switch canonical := http.CanonicalHeaderKey(name); {
	case !ok || !isToken(name):
		return p.errorf(w.valueAt, `want a line of a header, as in header="Name: text"`)
	case !isText(value):
		return p.errorf(w.valueAt, "want no control characters in a header")
	case canonical == "Content-Length" || canonical == "Transfer-Encoding":
		return p.errorf(w.valueAt, "%s follows from the body; cut= breaks its promise", canonical)
	default:
		st.header = append(st.header, field{name: canonical, value: value})
	}
	return nil
}

func (p *parser) unknown(w word) error {
	if strings.HasPrefix(w.name, "*") {
		return p.errorf(w.at, "the number of requests stands directly behind the status or fault, as in 503*2")
	}
	for _, f := range faults {
		if string(f.kind) == w.name {
			return p.errorf(w.at, "%s is a step of its own: want a comma in front of it", w.name)
		}
	}
	names := []string{"body", "retry-after", "header", "delay"}
	if near := suggest.Near(strings.ToLower(w.name), names); near != "" {
		return p.errorf(w.at, "unknown option %q, did you mean %q?", w.name, near)
	}
	return p.errorf(w.at, "unknown option %.40q: there are %s", w.name, strings.Join(names, ", "))
}

// retryAfter reads the value of a line Retry-After.
func (p *parser) retryAfter(st *step, w word) error {
	f := field{name: "Retry-After", value: w.value}
	rest, dated := strings.CutPrefix(w.value, "date")
	switch {
	case !isText(w.value):
		return p.errorf(w.valueAt, "want no control characters in a header")
	case w.quoted:
	case dated:
		// A sign of its own is all that a duration may have.
		sign := strings.TrimLeft(rest, "+-")
		if len(rest)-len(sign) != 1 || p.duration(&f.ahead, sign, w.valueAt, "") != nil {
			return p.errorf(w.valueAt, "want date+ or date- and a duration, as in retry-after=date+2s")
		}
		if f.dated = true; rest[0] == '-' {
			f.ahead = -f.ahead
		}
	default:
		before, count, ok := strings.Cut(w.value, "*")
		if _, err := strconv.Atoi(count); ok && err == nil {
			return p.errorf(w.valueAt+len(before), "the number of requests stands directly behind the status, as in 503*2; "+
				"quote the value if it is meant to have a *")
		}
	}
	st.header = append(st.header, f)
	return nil
}

// finish checks what concerns the step as a whole and fills in what it leaves open.
func (p *parser) finish(st *step, at int) error {
	seen := map[string]bool{}
	for i := range st.header {
		f := &st.header[i]
		f.first, seen[f.name] = !seen[f.name], true
	}
	switch st.kind {
	case status:
		if st.code == http.StatusNoContent || st.code == http.StatusNotModified {
			if st.body != "" {
				return p.errorf(at, "a %d has no body", st.code)
			}
		} else if !st.hasBody {
			st.body = strconv.Itoa(st.code) + " " + cmp.Or(http.StatusText(st.code), "by riprap flaky") + "\n"
		}
	case slow:
		if !st.hasBody {
			st.body = "This body drips: the script says slow.\n"
		}
	case cut:
		st.length = st.n + 1000
		if st.hasBody {
			st.length = int64(len(st.body))
		}
		if st.n >= st.length {
			return p.errorf(at, "cut=%d needs a body that is longer; this one has %d bytes", st.n, st.length)
		}
	}
	return nil
}
