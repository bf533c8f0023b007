package selfsigned

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"
)

func TestTheCertificateIsRightButForWhoSignedIt(t *testing.T) {
	now := time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)
	made, err := Certificate(now, "box.example", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(made.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	itself := x509.NewCertPool()
	itself.AddCert(c)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "box.example", "192.0.2.7"} {
		options := x509.VerifyOptions{DNSName: host, Roots: itself, CurrentTime: now}
		if _, err := c.Verify(options); err != nil {
			t.Errorf("%s, who trusts it: got %v, want no fault", host, err)
		}
		options.Roots = x509.NewCertPool()
		_, err := c.Verify(options)
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
			t.Errorf("%s, who does not trust it: got %v, want an unknown authority", host, err)
		}
	}
	if err := c.VerifyHostname("other.example"); err == nil {
		t.Error("other.example: got no fault, want a certificate for other hosts")
	}
}
