package riphttp

import (
	"net/http"
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
