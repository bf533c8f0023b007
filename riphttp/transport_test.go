package riphttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestZeroTransportHasABaseOfItsOwn(t *testing.T) {
	transport := new(Transport)
	base, ok := transport.sender().(*http.Transport)
	if !ok || base == http.DefaultTransport || base.MaxIdleConnsPerHost != 64 || base.DialContext == nil || base.Proxy == nil {
		t.Errorf("base = %+v, want a transport like net/http's with 64 idle connections for a host", base)
	}
	if transport.sender() != http.RoundTripper(base) {
		t.Error("each request has another base")
	}
	if new(Transport).sender() == http.RoundTripper(base) {
		t.Error("two Transports share a base")
	}
}

func TestZeroTransportWorksWhereTheDefaultOneWasReplaced(t *testing.T) {
	original := http.DefaultTransport
	defer func() { http.DefaultTransport = original }()
	http.DefaultTransport = http.NewFileTransport(nil)
	base, ok := new(Transport).sender().(*http.Transport)
	if !ok || base.DialContext == nil || base.Proxy == nil {
		t.Errorf("base = %+v, want a transport", base)
	}
}

func TestZeroTransportServesAClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer server.Close()
	client := &http.Client{Transport: &Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "ok" || err != nil {
		t.Errorf("body = %q, %v, want ok", body, err)
	}
}
