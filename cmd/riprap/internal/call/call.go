// Package call is "riprap call": one HTTP call by riphttp, with curl's habits, that says of each attempt what came back
// and what was decided. It has no retry logic of its own.
package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
	"github.com/riprap-go/riprap/riphttp"
)

// Run is the subcommand. It returns exit.ErrNotFine if the call gave up, if the answer is an error, and if its body was
// cut short; all that was said on stderr by then. When ctx ends, so does the call.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(ctx, args, os.Stdin)
	if errors.Is(err, pflag.ErrHelp) {
		return write(stdout, usage())
	}
	if err != nil && ctx.Err() != nil { // while it read stdin
		return exit.ErrNotFine
	}
	if err != nil {
		return &exit.UsageError{Command: "riprap call", Err: err}
	}
	if o.plan {
		return o.show(stdout)
	}
	// net/http logs what a server sends without being asked, on a stderr that is ours to speak on.
	defer log.SetOutput(log.Writer())
	log.SetOutput(io.Discard)
	if o.file != "" {
		defer exit.OutlivePipe()() // or a part of the file would be left if nobody reads stderr
	}
	base := o.base()
	defer base.CloseIdleConnections()
	return o.do(ctx, base, stdout, stderr)
}

// write prints, and says who could not.
func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("riprap call: %w", err)
	}
	return nil
}

// show prints what would be done.
func (o *order) show(stdout io.Writer) error {
	p := o.foresee()
	if !o.asJSON {
		return write(stdout, p.text(terminal.Look(stdout)))
	}
	text, err := p.json()
	if err != nil {
		return fmt.Errorf("riprap call: %w", err)
	}
	return write(stdout, text)
}

// base is what sends the requests. Unlike net/http's it leaves a body as it was sent.
func (o *order) base() *http.Transport {
	dialer := &net.Dialer{Timeout: max(o.connectTimeout, 0), KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		DisableCompression:    true,
		ExpectContinueTimeout: time.Second,
	}
}

// do makes the call.
func (o *order) do(ctx context.Context, base http.RoundTripper, stdout, stderr io.Writer) error {
	out, err := o.sink(ctx, stdout)
	if err != nil && ctx.Err() != nil { // while a pipe had no reader
		return exit.ErrNotFine
	}
	if err != nil {
		return &exit.UsageError{Command: "riprap call", Err: err}
	}
	defer out.drop()
	if o.timeout > 0 {
		bound, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		ctx = bound
	}
	r := &reporter{order: o, w: stderr, start: time.Now(), screen: terminal.Look(stderr)}
	resp, err := o.send(ctx, base, r)
	r.header(resp, err)
	if err != nil {
		return exit.ErrNotFine
	}
	defer resp.Body.Close()

	n, err := out.copy(resp, o.include)
	if out.err != nil {
		return fmt.Errorf("riprap call: the answer cannot be written: %w", out.err)
	}
	r.body(ctx, resp, n, err)
	if err != nil {
		return exit.ErrNotFine
	}
	if err := out.keep(); err != nil {
		return fmt.Errorf("riprap call: %w", err)
	}
	if resp.StatusCode >= 400 {
		return exit.ErrNotFine
	}
	return nil
}

// send sends the request and tells r of all that happens until the header of the last response is there.
func (o *order) send(ctx context.Context, base http.RoundTripper, r *reporter) (*http.Response, error) {
	policy := o.policy
	policy.Trace = r.trace()
	if !o.repeatable() {
		base = once{base}
	}
	transport := &riphttp.Transport{Base: base, Policy: &policy, ReadTimeout: o.readTimeout, Judge: r.judge}
	if o.autoKey != "" {
		transport.NewKey = func(*http.Request) string { return o.autoKey }
	}
	req, err := o.request(ctx)
	if err != nil {
		return nil, err
	}
	if !o.follow { // an http.Client looks at redirects that it does not follow, too, and may stumble over them
		return transport.RoundTrip(req)
	}
	client := &http.Client{Transport: transport, CheckRedirect: r.redirect}
	return client.Do(req)
}

// repeatable reports whether the request may be sent again whatever became of it.
func (o *order) repeatable() bool {
	return o.given || riphttp.IsRepeatable(&http.Request{Method: o.method, Header: o.header})
}

// once sends requests that must not be sent twice. With a GetBody net/http does so by itself over HTTP/2, after a reset
// that proves nothing. Where it has not read in the body yet, it needs none.
type once struct{ base http.RoundTripper }

func (o once) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.WithContext(req.Context())
	req.GetBody = nil
	return o.base.RoundTrip(req)
}

// request makes the request. Its context bounds the body of the response too.
func (o *order) request(ctx context.Context) (*http.Request, error) {
	req := (&http.Request{
		Method: o.method,
		URL:    o.url,
		Host:   o.host,
		Header: o.header,
	}).WithContext(ctx)
	return req, o.body.put(req)
}
