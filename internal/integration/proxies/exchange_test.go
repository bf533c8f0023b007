package proxies

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

// A protocol is what two programs speak.
type protocol string

const (
	http1 protocol = "http1"
	h2c   protocol = "h2c" // HTTP/2 without TLS, by prior knowledge
	h2    protocol = "h2"  // HTTP/2 over TLS, by ALPN
)

// An exchange is a request that programs in several languages can send.
type exchange struct {
	Method   string      `json:"method"`
	Target   string      `json:"target"` // as it stands in the request line
	Fields   [][2]string `json:"fields"`
	Body     string      `json:"body"`
	Blocks   int         `json:"blocks"`   // that many MiB instead of Body
	Chunked  bool        `json:"chunked"`  // the length is not told
	Trailers [][2]string `json:"trailers"` // with Chunked

	only []string // names of the clients that can send it; nil means all
}

func (e exchange) String() string {
	s := e.Method + " " + e.Target
	for _, f := range e.Fields {
		s += " " + f[0] + ": " + f[1]
	}
	if e.Blocks > 0 {
		s += fmt.Sprintf(" %d MiB", e.Blocks)
	}
	if e.Chunked {
		s += " chunked"
	}
	return s
}

// An answer is what a program got for an exchange.
type answer struct {
	Status   int         `json:"status"`
	Fields   [][2]string `json:"fields"`
	Body     string      `json:"body"` // "" if it is long
	Length   int64       `json:"length"`
	Hash     string      `json:"hash"`
	Trailers [][2]string `json:"trailers"`
	Early    []struct {
		Status int         `json:"status"`
		Fields [][2]string `json:"fields"`
	} `json:"early"` // informational answers before it
	Error string `json:"error"`
}

// added are fields that the proxy adds to an answer or takes away from it: those of the connection, and the correlation id.
var added = []string{"connection", "keep-alive", "transfer-encoding", "trailer", "x-correlation-id"}

// plainly is an answer as text, so that two can be compared. The order of fields with different names means nothing (RFC 9110
// section 5.3).
func (a answer) plainly() string {
	var b strings.Builder
	if a.Error != "" {
		return "error: " + a.Error
	}
	for _, e := range a.Early {
		fmt.Fprintf(&b, "%d\n%s", e.Status, listed(e.Fields))
	}
	fields := a.Fields
	if a.Status == http.StatusNotModified { // where net/http leaves out what RFC 9110 section 15.4.5 would rather not have there
		fields = slices.DeleteFunc(slices.Clone(fields), func(f [2]string) bool { return strings.EqualFold(f[0], "Content-Type") })
	}
	fmt.Fprintf(&b, "%d\n%s", a.Status, listed(fields))
	fmt.Fprintf(&b, "body of %d, %s: %q\n", a.Length, a.Hash, a.Body)
	if len(a.Trailers) > 0 {
		fmt.Fprintf(&b, "trailers\n%s", listed(a.Trailers))
	}
	return b.String()
}

// listed are fields sorted by their names, those of one name in their order.
func listed(fields [][2]string) string {
	byName := make(map[string][]string)
	for _, f := range fields {
		name := strings.ToLower(f[0])
		switch {
		case slices.Contains(added, name), strings.HasPrefix(name, ":"):
			continue
		case name == "date":
			f[1] = "(a date)"
		}
		byName[name] = append(byName[name], f[1])
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, v := range byName[name] {
			fmt.Fprintf(&b, "  %s: %s\n", name, v)
		}
	}
	return b.String()
}

// large is the size of large bodies in MiB. Whole they go through once, see TestLargeBodiesPassUnbuffered; of all pairs of services and
// clients that is a long test.
var large = func() int {
	if os.Getenv("RIPRAP_SOAK") != "" {
		return 32
	}
	return 1
}()

// exchanges are those that every service answers that serves the path.
var exchanges = slices.Concat(
	[]exchange{
		{Method: "GET", Target: "/small"},
		{Method: "GET", Target: "/empty"},
		{Method: "HEAD", Target: "/small"},
		{Method: "HEAD", Target: "/tagged"},
		{Method: "GET", Target: "/nothing"},
		{Method: "GET", Target: "/tagged"},
		{Method: "GET", Target: "/tagged", Fields: [][2]string{{"If-None-Match", `"v1"`}}},
		{Method: "GET", Target: "/range", Fields: [][2]string{{"Range", "bytes=10-99"}}},
		{Method: "GET", Target: "/range", Fields: [][2]string{{"Range", "bytes=9999-10000"}}},
		{Method: "GET", Target: "/packed", Fields: [][2]string{{"Accept-Encoding", "gzip"}}},
		{Method: "GET", Target: "/packed"},
		{Method: "GET", Target: "/chunked"},
		{Method: "HEAD", Target: "/chunked"},
		{Method: "GET", Target: "/trailers"},
		{Method: "GET", Target: "/early", only: []string{"go", "curl", "node", "node-h2"}},
		{Method: "GET", Target: "/events", Fields: [][2]string{{"Accept", "text/event-stream"}}},
		{Method: "GET", Target: "/cookies"},
		{Method: "GET", Target: "/fields"},
		{Method: "GET", Target: "/unending"},
		{Method: "GET", Target: fmt.Sprintf("/down/%d", large)},
		{Method: "POST", Target: "/up", Blocks: large},
		{Method: "PUT", Target: "/up", Blocks: large, Chunked: true, only: []string{"go", "node-h2", "curl"}},
		{Method: "POST", Target: "/trailers", Body: "a body", Chunked: true, Trailers: [][2]string{{"X-Sum", "7"}}, only: []string{"go", "node-h2"}},
		{Method: "POST", Target: "/up", Body: "wait for it", Fields: [][2]string{{"Expect", "100-continue"}}, only: []string{"go", "curl"}},
	},
	forEach([]string{"400", "401", "403", "404", "405", "409", "410", "418", "422", "429", "451", "500", "501", "502", "503", "504", "511", "599"},
		func(code string) exchange { return exchange{Method: "GET", Target: "/status/" + code} }),
	[]exchange{{Method: "POST", Target: "/status/500", Body: "x"}, {Method: "POST", Target: "/status/503"}},
	forEach([]string{"301", "302", "303", "307", "308"},
		func(code string) exchange { return exchange{Method: "GET", Target: "/moved/" + code} }),
	forEach([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"},
		func(method string) exchange {
			return exchange{Method: method, Target: "/echo?method=" + method, Fields: [][2]string{{"X-Odd", "a  b,c;d=\"e\""}}}
		}),
	forEach([]string{"TRACE", "PURGE", "PROPFIND", "QUERY", "M-SEARCH"},
		func(method string) exchange {
			return exchange{Method: method, Target: "/echo", only: []string{"go", "curl", "python"}}
		}),
	[]exchange{
		{Method: "POST", Target: "/echo", Body: "a=1&b=2", Fields: [][2]string{{"Content-Type", "application/x-www-form-urlencoded"}}},
		{Method: "POST", Target: "/echo", Body: "{}", Fields: [][2]string{{"Content-Type", "application/json"}, {"Idempotency-Key", "k1"}}},
		{Method: "DELETE", Target: "/echo", Body: "with a body"},
		{Method: "OPTIONS", Target: "*", only: []string{"go", "curl"}},
		{Method: "GET", Target: "/echo", Fields: [][2]string{{"X-Twice", "1"}, {"X-Twice", "2"}, {"x-twice", "3"}}, only: []string{"go", "curl", "python", "node-h2"}},
		{Method: "GET", Target: "/echo", Fields: repeated(60), only: []string{"go", "curl", "python", "node-h2"}},
	},
	forEach([]string{
		"/echo?", "/echo?a=b&a=c;d=e", "/echo?a=%zz&b=%", "/echo??x", "/echo?q={}|^`[]", "/echo/%C3%A4/%e4", "/echo/a%20b/a+b", "/echo/a%2Fb/%2f",
		"/echo/%2e%2e/x", "/echo/../echo/./x", "/echo//double///slash/", "/echo/;a=b/c;d", "/echo/:@!$&'()*+,=~-._", "/echo/%41%61", "/echo/a%3Fb%23c%25",
		"/echo/x?to=http://a.b/c?d", "/echo/[1]",
	}, func(target string) exchange {
		return exchange{Method: "GET", Target: target, only: []string{"go", "curl", "python", "node-h2"}}
	}),
)

func forEach(values []string, f func(string) exchange) (all []exchange) {
	for _, v := range values {
		all = append(all, f(v))
	}
	return all
}

func repeated(n int) (fields [][2]string) {
	for i := range n {
		fields = append(fields, [2]string{fmt.Sprintf("X-Field-%d", i), strings.Repeat("v", i)})
	}
	return fields
}
