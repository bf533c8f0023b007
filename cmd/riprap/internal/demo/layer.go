package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// An order is what a click asks for.
type order struct {
	Click int `json:"click"`
}

// A purchase is an order on its way through the layers.
type purchase struct {
	header http.Header // those fields that every layer passes on
	body   []byte
}

// newPurchase is what a shopper's app sends for a click.
func newPurchase(shopper string, click int) purchase {
	body, err := json.Marshal(order{click})
	if err != nil {
		panic(err) // a number
	}
	return purchase{http.Header{"Content-Type": {"application/json"}, "X-Customer": {shopper}}, body}
}

// A reply is what became of a purchase.
type reply struct {
	told   told
	status int // of the last answer; zero if there was none
	header http.Header
}

// A sender sends a purchase one layer further, again and again if its side thinks fit.
type sender func(ctx context.Context, url string, p purchase) reply

// relay is a service that has nothing to do with a purchase but to send it on and to pass the outcome back: the gateway, and
// the orders service. Services have more to do, and the storm does not care.
func relay(send sender, url string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the order did not arrive", http.StatusBadRequest)
			return
		}
		p := purchase{make(http.Header), body}
		pass(p.header, r.Header, "Content-Type", "X-Customer", "Idempotency-Key")
		got := send(r.Context(), url, p)
		// X-Should-Retry is not ours to pass on: it may be about the time of this layer only. Where it holds further up too, the
		// transport tells the middleware.
		pass(w.Header(), got.header, "Retry-After")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(cmp.Or(got.status, http.StatusBadGateway))
		json.NewEncoder(w).Encode(message{Outcome: words[got.told]})
	})
}

// pass copies the fields of the names given.
func pass(to, from http.Header, names ...string) {
	for _, name := range names {
		if values := from[name]; values != nil {
			to[name] = values
		}
	}
}

// A message is the body of an answer that is not the payments service's: what a layer says, or the type of the problem
// that the proxy says (RFC 9457).
type message struct {
	Outcome string `json:"outcome,omitempty"`
	Type    string `json:"type,omitempty"`
}

var words = map[told]string{paid: "paid", failure: "failed", unsure: "unknown"}

// saysUnknown reports whether an answer says that nobody knows what became of the purchase, or not yet.
func saysUnknown(body []byte) bool {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return false
	}
	return m.Outcome == words[unsure] || strings.HasSuffix(m.Type, "#outcome-unknown") || strings.HasSuffix(m.Type, "#in-flight")
}

// post sends a purchase and reads the answer.
func post(ctx context.Context, c *http.Client, url string, p purchase) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(p.body))
	if err != nil {
		return reply{}, err
	}
	req.Header = p.header.Clone()
	resp, err := c.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return reply{}, err
	}
	r := reply{told: failure, status: resp.StatusCode, header: resp.Header}
	if resp.StatusCode == http.StatusOK {
		r.told = paid
	}
	return r, nil
}
