package call

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/suggest"
)

// An order is the call that somebody wants to be made, as flags say it. A limit below zero is none.
type order struct {
	method  string
	url     *url.URL // without user and password
	header  http.Header
	host    string // if it is not the URL's
	body    body
	autoKey string // made for this call, for a request that needs one
	given   bool   // a key was given, by flag or as a header
	file    string // for the answer; empty means stdout
	include bool   // the header in the output
	silent  bool
	errors  bool // show what went wrong in the end although silent
	follow  bool // redirects
	asJSON  bool
	plan    bool
	policy  riprap.Policy
	retries int // budget
	timeout time.Duration

	connectTimeout, readTimeout time.Duration
}

// flags are what somebody has typed. What needs more than a look waits until all of it is known.
type flags struct {
	*pflag.FlagSet
	headers, data []string
	key           string
	head          bool
}

func newFlags(o *order) *flags {
	f := &flags{FlagSet: pflag.NewFlagSet("riprap call", pflag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.SortFlags = false
	f.StringVarP(&o.method, "request", "X", "", "the `METHOD` (default GET, POST with -d)")
	f.StringArrayVarP(&f.headers, "header", "H", nil, "a header `'Name: value'`; 'Name:' sends none, 'Name;' an empty one; may be repeated")
	f.StringArrayVarP(&f.data, "data", "d", nil, "the body: `TEXT`, @FILE as it is and read anew for each attempt, @- for stdin (up to "+mebibytes(memory)+", kept in memory); several are joined by &")
	f.StringVarP(&o.file, "output", "o", "", "where the body goes: a `FILE` that appears only once it is whole")
	f.BoolVarP(&o.include, "include", "i", false, "print the answer's header before the body")
	f.BoolVarP(&f.head, "head", "I", false, "send HEAD and print the answer's header")
	f.BoolVarP(&o.follow, "location", "L", false, "follow redirects, 10 at most, each with attempts of its own")
	f.BoolVarP(&o.silent, "silent", "s", false, "say nothing on stderr but of wrong usage")
	f.BoolVarP(&o.errors, "show-error", "S", false, "with -s: say what went wrong in the end")

	o.policy.MaxAttempts, o.retries = 4, 10
	o.timeout, o.policy.AttemptTimeout = 30*time.Second, 10*time.Second
	o.connectTimeout, o.readTimeout = 2*time.Second, 30*time.Second
	o.policy.Backoff = riprap.Backoff{Base: 500 * time.Millisecond, Max: 10 * time.Second}
	o.policy.MaxWait = time.Minute
	f.Var((*count)(&o.policy.MaxAttempts), "attempts", "the first one included, or none for no limit")
	f.VarP((*limit)(&o.timeout), "timeout", "m", "for all of it, waits and body included; 0 or none means none")
	f.Var((*limit)(&o.policy.AttemptTimeout), "attempt-timeout", "for each attempt until the answer's header is there, an upload included; 0 or none means none")
	f.Var((*limit)(&o.connectTimeout), "connect-timeout", "for a connection; 0 or none means none")
	f.Var((*limit)(&o.readTimeout), "read-timeout", "longest silence within the answer's body; 0 or none means none")
	f.Var((*backoff)(&o.policy.Backoff), "backoff", "the wait at first and at most, doubling in between")
	f.Var((*jitter)(&o.policy.Backoff.Jitter), "jitter", "how a wait is drawn: full, equal, decorrelated or none")
	f.Var((*wait)(&o.policy.MaxWait), "max-wait", "longest wait that the server may ask for, or none for no limit")
	f.Var((*count)(&o.retries), "budget", "retries that all hops of the call may make together, or none for no limit")
	f.StringVar(&f.key, "key", "", "an Idempotency-Key, with which a POST may be sent again if the server honours keys: `auto|VALUE`, where auto makes one for this call")
	f.BoolVar(&o.asJSON, "json", false, "events on stderr as JSON, one object a line, also with -s; with --plan one document on stdout")
	f.BoolVar(&o.plan, "plan", false, "send nothing; print the waits, the worst total and the largest load that these flags can make")
	return f
}

func usage() string {
	flags := strings.ReplaceAll(newFlags(new(order)).FlagUsagesWrapped(80), "[=true|false]", "             ")
	return `usage: riprap call [flags] URL

Makes one HTTP call with retries. The body goes to stdout; stderr gets a line
for each attempt: what came back, what was decided and why. A request is sent
again only if that is safe: a POST needs a --key for it. What the server asks
for in Retry-After is waited for.

` + flags + `
Durations are written 500ms, 10s or 1m30s.

exit codes: 0 the answer is 2xx or 3xx and whole, 1 it is an error or there is
none, 2 usage
`
}

// parse makes an order of arguments. Stdin is read only if they say so, until ctx ends.
func parse(ctx context.Context, args []string, stdin io.Reader) (*order, error) {
	o := &order{}
	f := newFlags(o)
	if err := f.Parse(args); err != nil {
		return nil, f.explain(err)
	}
	// What is no flag may be half of a secret whose quotes were forgotten, so it is not shown.
	if n := f.NArg(); n == 0 {
		return nil, errors.New("want a URL")
	} else if n > 1 && o.asJSON {
		return nil, fmt.Errorf("want one URL, got %d arguments that are no flags: --json takes no value, JSON is sent by -d '…' -H 'Content-Type: application/json'", n)
	} else if n > 1 {
		return nil, fmt.Errorf("want one URL, got %d arguments that are no flags: a value with blanks needs quotes", n)
	}
	if err := f.check(o); err != nil {
		return nil, err
	}
	if err := o.address(f.Arg(0)); err != nil {
		return nil, err
	}
	if err := o.headers(f.headers, len(f.data) > 0); err != nil {
		return nil, err
	}
	if err := o.keyed(f.key, f.Changed("key")); err != nil {
		return nil, err
	}
	o.policy.Timeout = -1 // the context has it
	o.policy.Budget = budget(o.retries)
	if err := o.proxied(); err != nil {
		return nil, err
	}
	var err error
	o.body, err = readBody(ctx, f.data, stdin)
	return o, err
}

// budget returns one that grants so many retries, or all of them if that is below zero. One of our own can be asked how
// much is left, and without one riphttp would bring its own.
func budget(retries int) *riprap.Budget {
	if retries < 0 {
		return &riprap.Budget{Ratio: math.Inf(1)}
	}
	return &riprap.Budget{Reserve: retries, Ratio: -1}
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}

// check sees to it that flags make sense together, and finds the method.
func (f *flags) check(o *order) error {
	switch {
	case f.head && f.Changed("request"):
		return errors.New("-I and -X exclude each other: -I is -X HEAD -i")
	case f.head && len(f.data) > 0:
		return errors.New("-I and -d exclude each other: a HEAD has no body")
	case o.errors && !o.silent:
		return errors.New("-S: errors are shown anyway, without -s")
	case f.Changed("output") && o.file == "":
		return errors.New("-o: want the name of a file")
	}
	upper := strings.ToUpper(o.method)
	switch {
	case f.head:
		o.method, o.include = "HEAD", true
	case f.Changed("request") && !isToken(o.method):
		return fmt.Errorf("-X %q: want a method", o.method)
	case o.method != upper && slices.Contains(methods, upper):
		return fmt.Errorf("-X %s: did you mean %s? Methods are not the same in small letters", o.method, upper)
	case o.method == "" && len(f.data) > 0:
		o.method = "POST"
	case o.method == "":
		o.method = "GET"
	}
	return nil
}

// keyed gives the request its key, or the call one to be used if the request needs it.
func (o *order) keyed(key string, changed bool) error {
	o.given = len(o.header["Idempotency-Key"])+len(o.header["X-Idempotency-Key"]) > 0
	switch {
	case !changed:
		return nil
	case o.given:
		return errors.New("--key: -H has one already")
	case key == "":
		return errors.New("--key: want auto or a value")
	case !isFieldValue(key):
		return errors.New("--key: a header cannot hold this value")
	case key == "auto":
		o.autoKey = rand.Text()
	default:
		o.header["Idempotency-Key"] = []string{key}
	}
	o.given = true
	return nil
}

// explain says in our words what is wrong with the flags. Values are shown only of flags that hold no secrets, which is
// all that look at their value.
func (f *flags) explain(err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return f.unknown(unknown)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("%s: want a value", dashed(missing.GetFlag()))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := wrong.GetFlag()
		if flag.Value.Type() == "bool" {
			return fmt.Errorf("--%s: it takes no value", flag.Name)
		}
		return fmt.Errorf("%s %q: %w", dashed(flag), wrong.GetValue(), wrong.Unwrap())
	}
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return errors.New("a flag is written -x or --name")
}

// refused are flags of curl that people try and that are not offered for a reason.
var refused = map[string]string{
	"k": "certificates are always checked", "insecure": "certificates are always checked",
	"u": "write user:password@ in front of the host", "user": "write user:password@ in front of the host",
	"retry": "--attempts counts the first try too", "max-time": "it is --timeout here",
	"retry-delay": "it is --backoff here", "retry-max-time": "it is --timeout here",
	"data-binary": "-d sends a file as it is", "f": "an error status is exit code 1 anyway", "fail": "an error status is exit code 1 anyway",
	"data-raw": "-d sends text as it is, but for one that begins with @", "data-urlencode": "-d sends text as it is: encode it before",
	"F": "a multipart form is not made here", "form": "a multipart form is not made here",
	"A": "it is -H 'User-Agent: …' here", "user-agent": "it is -H 'User-Agent: …' here",
	"e": "it is -H 'Referer: …' here", "referer": "it is -H 'Referer: …' here",
	"b": "it is -H 'Cookie: …' here", "cookie": "it is -H 'Cookie: …' here",
	"G": "write the query into the URL", "get": "write the query into the URL", "url": "the URL stands alone",
	"T": "it is -X PUT -d @FILE here", "upload-file": "it is -X PUT -d @FILE here",
	"O": "it is -o FILE here", "remote-name": "it is -o FILE here",
	"v": "stderr says what came of each attempt, and -i prints the header", "verbose": "stderr says what came of each attempt, and -i prints the header",
	"w": "--json says on stderr what came back, its status too", "write-out": "--json says on stderr what came back, its status too",
	"x": "the proxy is the one of HTTP_PROXY and HTTPS_PROXY", "proxy": "the proxy is the one of HTTP_PROXY and HTTPS_PROXY",
	"compressed": "a body comes as it was sent; ask with -H 'Accept-Encoding: gzip' and unpack it",
}

func (f *flags) unknown(err *pflag.NotExistError) error {
	name, cluster := err.GetSpecifiedName(), err.GetSpecifiedShortnames()
	dashes := "--"
	if cluster != "" {
		dashes = "-"
	}
	if why, known := refused[name]; known {
		return fmt.Errorf("no flag %s%s: %s", dashes, name, why)
	}
	if cluster != "" {
		// What follows the letter may be a value that is secret.
		if long, _, _ := strings.Cut(cluster, "="); len(long) > 1 && f.Lookup(long) != nil {
			return fmt.Errorf("no flag -%s: did you mean --%s?", long, long)
		}
		return fmt.Errorf("no flag -%s", name)
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := suggest.Near(name, names); near != "" {
		return fmt.Errorf("no flag --%s: did you mean --%s?", name, near)
	}
	return fmt.Errorf("no flag --%s", name)
}

func dashed(flag *pflag.Flag) string {
	if flag.Shorthand != "" {
		return "-" + flag.Shorthand + ", --" + flag.Name
	}
	return "--" + flag.Name
}

// address reads the URL. It may hold secrets, so no error shows it.
func (o *order) address(text string) error {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("the URL makes no sense (it may hold secrets and is not shown)")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL begins with neither http:// nor https://")
	case u.Hostname() == "":
		return errors.New("the URL has no host")
	}
	o.url = u
	return nil
}

// proxied finds out whether the environment's proxy makes sense: net/http's error would show it, password and all.
func (o *order) proxied() error {
	if _, err := http.ProxyFromEnvironment(&http.Request{URL: o.url}); err != nil {
		return errors.New("the proxy that the environment names is no URL (HTTP_PROXY, HTTPS_PROXY)")
	}
	return nil
}

// headers reads -H and adds what curl would send too. Values may be secret, so no error shows them.
func (o *order) headers(lines []string, withBody bool) error {
	o.header = http.Header{}
	defaults := map[string]string{"User-Agent": "riprap", "Accept": "*/*"}
	if withBody {
		defaults["Content-Type"] = "application/x-www-form-urlencoded"
	}
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		empty := false
		if !ok {
			name, empty = strings.CutSuffix(line, ";")
		}
		if !ok && !empty || !isToken(name) {
			return fmt.Errorf("-H, the header number %d: want 'Name: value'", i+1)
		}
		name, value = http.CanonicalHeaderKey(name), strings.Trim(value, " \t")
		switch {
		case !isFieldValue(value):
			return fmt.Errorf("-H %s: a header cannot hold this value", name)
		case name == "Content-Length" || name == "Transfer-Encoding" || name == "Trailer":
			return fmt.Errorf("-H %s: it follows from the body", name)
		case name == "Host" && value != "":
			o.host = value
		case value != "" || empty:
			o.header[name] = append(o.header[name], value)
		}
		delete(defaults, name)
		if name == "User-Agent" && o.header[name] == nil {
			o.header[name] = []string{""} // or net/http sends its own
		}
	}
	for name, value := range defaults {
		o.header[name] = []string{value}
	}
	if user := o.url.User; user != nil {
		if o.header["Authorization"] == nil {
			password, _ := user.Password()
			(&http.Request{Header: o.header}).SetBasicAuth(user.Username(), password)
		}
		o.url.User = nil
	}
	return nil
}
