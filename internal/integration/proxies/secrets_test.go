package proxies

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestNoSinkShowsASecret(t *testing.T) {
	t.Parallel() // it waits more than it works
	secrets := map[string]string{
		"a path": "PATHS3CRET", "a query": "QU3RYS3CRET", "a bearer": "B34RERS3CRET", "a cookie": "C00KIES3CRET", "a key": "K3YS3CRET", "a body": "B0DYS3CRET",
		"a customer": "CUST0MERS3CRET", "a field": "F13LDS3CRET", "an answer": "ANSW3RS3CRET", "an answer's field": "S3TC00KIE", "a host": "h0stsecret", "a method": "M3TH0DS3CRET",
		"a correlation id": "C0RRELATI0N-S3CRET",
	}
	var n atomic.Int32
	service := "http://" + listen(t, func(conn *net.TCPConn) {
		if _, err := readRequest(conn); err != nil {
			return
		}
		const fields = "Set-Cookie: a=S3TC00KIE\r\nX-Note: ANSW3RS3CRET\r\n"
		switch n.Add(1) % 6 {
		case 0:
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+fields+"Content-Length: 12\r\n\r\nANSW3RS3CRET")
		case 1:
			io.WriteString(conn, "HTTP/1.1 503 ANSW3RS3CRET\r\nRetry-After: 0\r\n"+fields+"Content-Length: 12\r\n\r\nANSW3RS3CRET")
		case 2:
			io.WriteString(conn, "ANSW3RS3CRET is no answer\r\n\r\n")
		case 3:
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+fields+"Content-Length: 99\r\n\r\nANSW3RS3CRET")
		case 4:
			io.WriteString(conn, "HTTP/1.1 302 Found\r\nLocation: http://ANSW3RS3CRET@x/\r\nContent-Length: 0\r\n\r\n")
		}
	})
	for name, to := range map[string]string{"a service that fails in all ways": service, "nobody": "http://" + freeAddr(t), "a service that speaks no TLS": strings.Replace(service, "http", "https", 1)} {
		p := stand(t, to, "--require-key", "POST /charge", "--scope", "header:X-Customer", "--attempts", "2", "--max-body", "1KiB")
		var answers strings.Builder
		tr := newTransport(t, http1, "")
		ask := func(method, target, body, key string) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, method, p.url+target+"?token=QU3RYS3CRET", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "h0stsecret.test"
			for field, value := range map[string]string{"Authorization": "Bearer B34RERS3CRET", "Cookie": "a=C00KIES3CRET", "X-Api-Key": "F13LDS3CRET", "X-Customer": "CUST0MERS3CRET",
				"X-Http-Method": "F13LDS3CRET", "X-Forwarded-For": "F13LDS3CRET", "Via": "1.1 F13LDS3CRET", "X-Correlation-Id": "C0RRELATI0N-S3CRET", "Referer": "http://x/F13LDS3CRET"} {
				req.Header.Set(field, value)
			}
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err == nil && resp.Header.Get("Content-Type") == "application/problem+json" {
				answers.Write(text)
			}
		}
		for i := range 6 {
			ask("GET", "/v1/PATHS3CRET", "", "")
			ask("POST", "/v1/PATHS3CRET", "B0DYS3CRET", "")
			ask("M3TH0DS3CRET", "/v1/PATHS3CRET", "B0DYS3CRET", "")
			ask("POST", "/charge", "B0DYS3CRET", "K3YS3CRET"+string(rune('a'+i)))
			ask("POST", "/charge", "B0DYS3CRET other", "K3YS3CRETa")
			ask("POST", "/charge", "B0DYS3CRET", "")
			ask("POST", "/charge", "B0DYS3CRET", "K3Y\"S3CRET")
			ask("POST", "/charge/", "B0DYS3CRET", "")
			ask("POST", "/v1/PATHS3CRET", strings.Repeat("B0DYS3CRET", 200), "")
		}
		converse(t, p.addr, "GET /v1/PATHS3CRET HTTP/1.1\r\nHost: h0stsecret.test\r\nF13LDS3CRET\r\n\r\n")
		converse(t, p.addr, "POST /v1/PATHS3CRET HTTP/1.1\r\nHost: h0stsecret.test\r\nContent-Length: 100\r\n\r\nB0DYS3CRET")
		sinks := map[string]string{"/metrics": fetch(t, p.admin+"/metrics"), "/state": fetch(t, p.admin+"/state"), "the proxy's own answers": answers.String(), "the log": p.out.String()}
		if len(sinks["/state"]) < 1000 || len(sinks["/metrics"]) < 1000 || answers.Len() == 0 {
			t.Errorf("%s: /state has %d bytes, /metrics %d, the proxy's own answers %d; want something in each", name, len(sinks["/state"]), len(sinks["/metrics"]), answers.Len())
		}
		p.end(t)
		sinks["the log at the end"] = p.out.String()
		for sink, text := range sinks {
			for what, secret := range secrets {
				if i := strings.Index(strings.ToLower(text), strings.ToLower(secret)); i >= 0 {
					t.Errorf("%s: %s shows %s: …%s…", name, sink, what, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
	}
}

// fetch reads a page of the admin.
func fetch(t testing.TB, at string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", at, resp.StatusCode, err)
	}
	return string(text)
}
