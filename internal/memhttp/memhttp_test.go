package memhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/internal/memhttp"
)

func TestServerAnswersInFakeTimeAndLeavesNothing(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(time.Hour)
					body, _ := io.ReadAll(r.Body)
					fmt.Fprintf(w, "%s %s %s", r.Proto, r.Method, body)
				}))
				transport := server.Transport()
				if proto == "HTTP/2.0" {
					transport = server.HTTP2()
				}
				start := time.Now()
				resp, err := (&http.Client{Transport: transport}).Post(memhttp.URL, "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if want := proto + " POST hello"; string(body) != want || err != nil {
					t.Errorf("body = %q, %v, want %q", body, err, want)
				}
				if got := time.Since(start); got != time.Hour {
					t.Errorf("it took %v, want an hour", got)
				}
				resp.Body.Close()
				transport.CloseIdleConnections()
				server.Stop()
				if opened, open := server.Opened(), server.Open(); opened != 1 || open != 0 {
					t.Errorf("connections: %d opened, %d open, want 1 and 0", opened, open)
				}
			})
		})
	}
}

func TestScriptSaysWhatItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := memhttp.Play(func(n int, p *memhttp.Peer) {
			if p.ReadRequest() != nil {
				p.Say("HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		client := &http.Client{Transport: script.Transport()}
		resp, err := client.Get(memhttp.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.Status != "299 Odd" || string(body) != "ok" {
			t.Errorf("got %q with body %q, want 299 Odd with ok", resp.Status, body)
		}
		script.Stop()
		_, err = client.Get(memhttp.URL)
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			t.Errorf("Get of a stopped script: %v, want a dial error", err)
		}
	})
}
