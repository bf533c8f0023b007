package riphttp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

func TestNoSecretInErrorsEventsAndLogs(t *testing.T) {
	const secretURL = "https://u:p4ss@h.test/v1/KEYINPATH/x?token=T0K&sig=S1G#f"
	secrets := []string{"p4ss", "KEYINPATH", "T0K", "S1G", "B34R", "user@example.com", "B0DY", "C00KIE", "C0RR"}
	named := func(err error) error { return &url.Error{Op: "Get", URL: secretURL, Err: err} }
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name string
		step any
		raw  bool // the error comes back as it came, with what Base wrote into it
	}{
		{"dial error", dial, false},
		{"dial error that names the URL", named(dial), false},
		{"broken connection", named(errWire), false},
		{"a URL within another", named(fmt.Errorf("proxy: %w", named(errWire))), false},
		{"certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
		{"certificate, in an error that names the URL", named(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), true},
		{"status", reply(503, "B0DY", "Set-Cookie", "C00KIE", "Location", secretURL), false},
		{"permanent status", reply(501, "B0DY", "Set-Cookie", "C00KIE"), false},
		{"redirect", reply(302, "B0DY", "Location", secretURL), false},
		{"timeout", hang, false},
		{"asked too long", reply(429, "B0DY", "Retry-After", "3600", "Set-Cookie", "C00KIE"), false},
		{"deadline exceeded", reply(504, "B0DY", append([]string{"Set-Cookie", "C00KIE"}, exceeded...)...), false},
	} {
		for _, method := range []string{"GET", "POST"} {
			inBubble(t, test.name+" "+method, func(t *testing.T) {
				var said, lines bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
				log := riprap.Log(logger)
				note := func(e riprap.Event) {
					fmt.Fprintln(&said, e.Name, e.Reason)
					if !errors.As(e.Err, new(*url.Error)) {
						fmt.Fprintln(&said, e.Err)
					}
				}
				policy := even()
				policy.Trace = &riprap.Trace{
					Attempt: func(_ context.Context, e riprap.Event) context.Context { note(e); return nil },
					Retry:   func(ctx context.Context, e riprap.Event) { note(e); log.Retry(ctx, e) },
					Done:    func(ctx context.Context, e riprap.Event) { note(e); log.Done(ctx, e) },
				}
				req := newRequest(t, method, secretURL, "B0DY", "Authorization", "Bearer B34R", "Cookie", "C00KIE", deadline.CorrelationHeader, "C0RR")
				if method == "POST" {
					req.Header.Set("Idempotency-Key", "user@example.com")
				}
				_, err := roundTrip(t, &riphttp.Transport{Base: script(test.step), Policy: policy, Internal: always(true)}, req)
				if err != nil && !test.raw {
					fmt.Fprintln(&said, err)
				}
				for _, secret := range secrets {
					if strings.Contains(said.String(), secret) {
						t.Errorf("%s is in errors or events:\n%s", secret, said.String())
					}
					if strings.Contains(lines.String(), secret) {
						t.Errorf("%s is in the log:\n%s", secret, lines.String())
					}
				}
				if err != nil && !test.raw && !strings.Contains(lines.String(), "h.test") && strings.Contains(lines.String(), "gave up") {
					t.Errorf("the log does not name the service:\n%s", lines.String())
				}
			})
		}
	}
}

func TestErrorsOfTheBodyAndTheRequestHaveNoSecrets(t *testing.T) {
	inBubble(t, "bubble", func(t *testing.T) {
		req := sized(t, "PUT", track("short B0DY"), 100, "Authorization", "Bearer B34R")
		req.URL, _ = url.Parse("https://u:p4ss@h.test/KEYINPATH?token=T0K")
		_, err := roundTrip(t, &riphttp.Transport{Base: script(200)}, req)
		for _, secret := range []string{"p4ss", "KEYINPATH", "T0K", "B34R", "B0DY"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s is in %v", secret, err)
			}
		}
	})
}

var _ http.RoundTripper = (*riphttp.Transport)(nil)
