package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
	"github.com/riprap-go/riprap/riphttp"
)

// A reporter says on stderr what happens to the call: a line for each attempt, or JSON. It only listens.
type reporter struct {
	order  *order
	w      io.Writer
	start  time.Time
	screen terminal.Screen

	service string        // called
	attempt int           // at hand
	before  int           // requests written in the attempts before it
	written *atomic.Int64 // requests written in it so far, as net/http tells
	status  int           // of its response, zero while there is none
	refuses bool          // the response says not to come back
	pausing bool          // another attempt was announced and has not begun
	over    *riprap.Event // how the call failed, if it did
}

// An event is what --json prints. Times are in seconds. It holds no path, query string, header or key.
type event struct {
	Event   string  `json:"event"` // attempt, retry, redirect, answer, failure, body
	Elapsed float64 `json:"elapsed_seconds"`
	Service string  `json:"service,omitempty"` // scheme and host; of a redirect, where it leads
	Attempt int     `json:"attempt,omitempty"` // begun so far on this hop, the one at hand included
	Sends   int     `json:"sends,omitempty"`   // requests written, of which net/http repeats some by itself
	Status  int     `json:"status,omitempty"`
	Error   string  `json:"error,omitempty"` // what came instead of a status, or cut the body short
	Asked   float64 `json:"asked_seconds,omitempty"`
	Wait    float64 `json:"wait_seconds,omitempty"`
	Budget  *int    `json:"budget_left,omitempty"`
	Reason  string  `json:"reason,omitempty"` // of a failure, see reason
	Bytes   *int64  `json:"bytes,omitempty"`  // of the body
	Text    string  `json:"text,omitempty"`   // the line that is printed without --json
}

// say prints an event. Bad says that it is about what went wrong in the end.
func (r *reporter) say(e event, bad bool) {
	e.Service, e.Error, e.Text = printable(e.Service), printable(e.Error), printable(e.Text)
	if r.order.asJSON {
		e.Elapsed = seconds(time.Since(r.start))
		text, _ := json.Marshal(e) // of such fields it never fails
		fmt.Fprintf(r.w, "%s\n", text)
		return
	}
	if e.Text == "" || r.order.silent && !(bad && r.order.errors) {
		return
	}
	if bad {
		e.Text = r.screen.Palette.Bad(e.Text)
	}
	fmt.Fprintln(r.w, e.Text)
}

// trace is what the transport tells. The end of a call that is answered comes with the body's and tells nothing new.
func (r *reporter) trace() *riprap.Trace {
	return &riprap.Trace{
		Attempt: func(ctx context.Context, e riprap.Event) context.Context {
			r.service, r.attempt, r.status, r.refuses, r.pausing = e.Name, e.Attempts, 0, false, false
			r.before, r.written = e.Sends, &atomic.Int64{}
			r.say(event{Event: "attempt", Service: e.Name, Attempt: e.Attempts}, false)
			written := r.written // not the next attempt's
			return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Add(1) }})
		},
		Retry: func(_ context.Context, e riprap.Event) { r.retry(e) },
		Done: func(_ context.Context, e riprap.Event) {
			if e.Err != nil || e.Reason != nil {
				r.over = &e
			}
		},
	}
}

// judge is riphttp's, and remembers what it has seen.
func (r *reporter) judge(resp *http.Response) error {
	r.status = resp.StatusCode
	r.refuses = slices.Contains(resp.Header["X-Should-Retry"], "false") || slices.Contains(resp.Header["Stripe-Should-Retry"], "false")
	return riphttp.Judge(resp)
}

func (r *reporter) retry(e riprap.Event) {
	r.pausing = true
	out := r.happened("retry", e)
	out.Wait = seconds(e.Wait)
	count := fmt.Sprintf("retry %d", e.Attempts)
	if most := r.order.policy.MaxAttempts; most > 0 {
		count += fmt.Sprintf(" of %d", most-1)
	}
	if r.order.retries > 0 {
		out.Budget = new(r.order.policy.Budget.Left(time.Now()))
		count += fmt.Sprintf(", budget %d left", *out.Budget)
	}
	out.Text += fmt.Sprintf(" · waiting %s (%s)", told(e.Wait), count)
	r.say(out, false)
}

// happened begins an event with what became of an attempt.
func (r *reporter) happened(name string, e riprap.Event) event {
	out := event{Event: name, Service: e.Name, Attempt: e.Attempts, Sends: e.Sends, Status: r.status, Asked: seconds(e.Asked)}
	came := fmt.Sprint(r.status)
	if r.status == 0 {
		came = r.words(e.Err)
		out.Error = came
	}
	out.Text = line(e.Attempts, came, e.Sends-r.before)
	if e.Asked > 0 {
		out.Text += " · server asks " + told(e.Asked)
	}
	return out
}

// line begins the line of an attempt with what came of it.
func line(attempt int, came string, sends int) string {
	text := fmt.Sprintf("attempt %d: %s", attempt, came)
	if sends > 1 {
		text += fmt.Sprintf(" · sent %d times by net/http", sends)
	}
	return text
}

// answered begins an event with the response that ended the attempt at hand.
func (r *reporter) answered(name string) event {
	sends := 1 // at least: over HTTP/2 a response can overtake the news that its request was written
	if r.written != nil {
		sends = max(sends, int(r.written.Load()))
	}
	return event{Event: name, Service: r.service, Attempt: r.attempt, Sends: r.before + sends, Status: r.status,
		Text: line(r.attempt, fmt.Sprint(r.status), sends)}
}

// errTooFar ends a chain of redirects.
var errTooFar = errors.New("10 redirects followed, and there is another one")

// redirect is told of each redirect that is about to be followed.
func (r *reporter) redirect(req *http.Request, via []*http.Request) error {
	if via[0].Header.Get("Referer") == "" {
		req.Header.Del("Referer") // http.Client tells the next service the last one's URL, query string included
	}
	if len(via) > hops-1 {
		return errTooFar
	}
	out := r.answered("redirect")
	out.Service = req.URL.Scheme + "://" + req.URL.Host
	out.Text += " · redirect to " + out.Service
	r.say(out, false)
	return nil
}

// header says how it ended, once there is the header of the last response or an error.
func (r *reporter) header(resp *http.Response, err error) {
	if r.over != nil {
		r.failed(*r.over)
		return
	}
	out := r.answered("failure")
	switch elapsed := short(time.Since(r.start)); {
	case err != nil:
		out.Reason = "redirect"
		out.Text += " · gave up: " + unfollowed(err)
	case resp.StatusCode >= 400:
		out.Reason = "final"
		out.Text += " · not retried: a repeat would not change it, " + elapsed + " in all"
	default:
		out.Event = "answer"
		out.Text += " · answered after " + elapsed
	}
	r.say(out, out.Event == "failure")
}

// unfollowed says why a redirect was not followed. Its own error may show where it leads.
func unfollowed(err error) string {
	if errors.Is(err, errTooFar) {
		return errTooFar.Error()
	}
	return "where it leads makes no sense"
}

// failed says how a call ended that failed.
func (r *reporter) failed(e riprap.Event) {
	why := r.reason(e)
	out := r.happened("failure", e)
	out.Reason = why.name
	elapsed := short(time.Since(r.start))
	switch {
	case r.pausing:
		out.Text = fmt.Sprintf("no attempt %d: %s, %s in all", e.Attempts+1, why.text, elapsed)
	case e.Attempts == 0:
		out.Text = fmt.Sprintf("nothing sent: %s, %s in all", why.text, elapsed)
	default:
		out.Text += fmt.Sprintf(" · %s, %s in all", why.text, elapsed)
	}
	r.say(out, true)
}

// body says what became of the body: in words only if it was cut short.
func (r *reporter) body(ctx context.Context, resp *http.Response, n int64, err error) {
	out := event{Event: "body", Service: r.service, Attempt: r.attempt, Status: r.status, Bytes: &n}
	if err == nil {
		r.say(out, false)
		return
	}
	out.Error = r.cut(ctx, err)
	of := ""
	if resp.ContentLength > 0 {
		of = fmt.Sprintf(" of %d", resp.ContentLength)
	}
	out.Text = fmt.Sprintf("body cut short after %d%s bytes: %s, %s in all", n, of, out.Error, short(time.Since(r.start)))
	if r.order.file != "" && r.order.file != "-" {
		out.Text += "; not kept"
	}
	r.say(out, true)
}
