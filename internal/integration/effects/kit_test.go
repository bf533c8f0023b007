package effects

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// newClaim returns a claim of a key by somebody new.
func newClaim(key string, lease time.Duration) idempotency.Claim {
	c := idempotency.Claim{
		ID: keyID(key), Fingerprint: []byte{1}, Operation: operationName, Lease: lease, Retention: time.Hour, Reexecute: true,
	}
	rand.Read(c.Owner[:])
	return c
}

// post sends an operation once, with the key that is its own.
func post(ctx context.Context, client *http.Client, url, operation string) (status int, body string, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(operation))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("Idempotency-Key", `"`+operation+`"`)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header, err
}

// problem returns the name of the problem that a body is about.
func problem(body string) string {
	var p struct{ Type string }
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		return err.Error()
	}
	_, name, _ := strings.Cut(path.Base(p.Type), "#")
	return name
}
