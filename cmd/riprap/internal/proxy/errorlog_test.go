package proxy

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/internal/selfsigned"
)

func TestWhatClientsSendIsNotInTheLog(t *testing.T) {
	certificate, err := selfsigned.Certificate(time.Now(), "a.test")
	if err != nil {
		t.Fatal(err)
	}
	c := configure(t, manifest.Proxy{Service: "a", To: saying(t, "ok")})
	c.fronts[0].certificate = &certificate
	r := launch(t, c)
	if _, err := tls.Dial("tcp", r.server("a").listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"s3cret"}}); err == nil {
		t.Error("a protocol that nobody knows was agreed upon, want a handshake that fails")
	}
	eventually(t, "the handshake that failed is in the log", func() bool { return strings.Contains(r.said.String(), "a TLS handshake failed") })
	if said := r.said.String(); strings.Contains(said, "s3cret") || strings.Count(said, "127.0.0.1:") != 2 { // its own address and the service's
		t.Errorf("the log says %q, want nothing that the client sent and not where it is", said)
	}
}

func TestAPanicIsInTheLogWithItsPlaceAndWithoutItsValue(t *testing.T) {
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: saying(t, "ok")}))
	r.server("a").answer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("s3cret\nof two lines") }))
	fetch(fresh(t), r.server("a").url())
	eventually(t, "the panic is in the log", func() bool { return strings.Contains(r.said.String(), "a request panicked") })
	if said := r.said.String(); strings.Contains(said, "s3cret") || strings.Contains(said, "two lines") || !strings.Contains(said, "errorlog_test.go") {
		t.Errorf("the log says %q, want the place of the panic and not its value", said)
	}
}

func TestOfComplaintsOfAKindOneIsToldInAWhile(t *testing.T) {
	c := &complaints{log: slog.New(slog.NewTextHandler(io.Discard, nil)), last: map[string]time.Time{}, more: map[string]int{}}
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		more  int
		told  bool
	}{{0, 0, true}, {time.Second, 0, false}, {2 * time.Second, 0, false}, {complaintEvery, 2, true}, {complaintEvery + 1, 0, false}, {2 * complaintEvery, 1, true}} {
		if more, told := c.tell("kind", now.Add(step.after)); more != step.more || told != step.told {
			t.Errorf("after %v: tell = %d, %v, want %d, %v", step.after, more, told, step.more, step.told)
		}
	}
	if _, told := c.tell("another", now); !told {
		t.Error("the first of another kind is not told")
	}
}
