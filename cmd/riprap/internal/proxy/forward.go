package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

const (
	via       = "riprap"
	mostLoops = 8 // passages through a proxy of this kind
)

// admit looks at a request before anything is done for it. If it returns false, the request has been answered.
func (s *Service) admit(w http.ResponseWriter, r *http.Request, v *Visit) bool {
	if v.crowded {
		v.refuse(w, busy, ReachedNo, fmt.Sprintf("The proxy has %d requests to this service under way and takes no more.", s.maxInFlight))
		return false
	}
	if r.Method == http.MethodConnect {
		v.refuse(w, tunnel, ReachedNo, "This is no forward proxy.")
		return false
	}
	if strings.ContainsAny(r.Host, " /\\?#@") { // which HTTP/2 lets through; services make addresses of it
		v.refuse(w, ambiguous, ReachedNo, "It is not passed on, since its host has more in it than a name and a port.")
		return false
	}
	if strings.Count(strings.Join(r.Header["Via"], ","), via) > mostLoops {
		v.refuse(w, loop, ReachedNo, "It has been here before: the proxy's service leads back to the proxy.")
		return false
	}
	// A message with both a length and a transfer coding may be meant to be taken for two; net/http goes by the coding and does not
	// tell. The same holds for a transfer coding in HTTP/1.0. Such a connection is not used again (RFC 9112 section 6.3).
	v.answer.close = len(r.TransferEncoding) > 0 || r.ProtoMajor == 1 && r.ProtoMinor == 0
	if r.Method == http.MethodOptions || r.Method == http.MethodTrace {
		if left, ok := forwards(r); ok && left == 0 {
			w.WriteHeader(http.StatusNoContent)
			return false
		}
	}
	found, doubt := s.guard.find(r)
	if doubt != "" {
		v.refuse(w, ambiguous, ReachedNo, "It is not passed on, since "+doubt+".")
		return false
	}
	v.guard = found
	if v.route = s.routes.find(r); v.route == nil {
		v.route = s.rest
	}
	limit := s.config.MaxBody
	if limit > 0 && r.ContentLength > limit {
		v.refuse(w, bodyTooLarge, ReachedNo, fmt.Sprintf("Its body has %d bytes, and %d are allowed.", r.ContentLength, limit))
		return false
	}
	if hasBody(r) && (s.silence > 0 || limit > 0) {
		v.intake = newIntake(r.Body, v.answer.control, s.silence, limit)
	}
	return true
}

// forwards returns how often a request may be forwarded (RFC 9110 section 7.6.2), if it says so.
func forwards(r *http.Request) (left uint64, ok bool) {
	left, err := strconv.ParseUint(r.Header.Get("Max-Forwards"), 10, 32)
	return left, err == nil
}

// rewrite makes the request that the service gets. What it asks for stays as the client wrote it.
func (s *Service) rewrite(p *httputil.ProxyRequest) {
	in, out := p.In, p.Out
	out.URL.Scheme, out.URL.Host = s.to.Scheme, s.to.Host
	out.URL.RawQuery = oneWord.Replace(in.URL.RawQuery)
	if path := s.path(in); path != out.URL.EscapedPath() {
		out.URL.Opaque = path // as the client wrote it, not as package url would
	}
	out.Host = s.config.Host
	if out.Host == "" {
		out.Host = in.Host
	}
	out.Trailer = in.Trailer // its values come with the end of the body
	if tunnelsHTTP(out.Header["Upgrade"]) {
		delete(out.Header, "Connection")
		delete(out.Header, "Upgrade")
	}
	s.forwarded(p, visitOf(in.Context()).trusted)
	if in.Method == http.MethodOptions || in.Method == http.MethodTrace {
		if left, ok := forwards(in); ok && left > 0 {
			out.Header.Set("Max-Forwards", strconv.FormatUint(left-1, 10))
		}
	}
	out.Header.Add("Via", strings.TrimPrefix(in.Proto, "HTTP/")+" "+via)
}

// oneWord keeps a query within the one word that it may be. HTTP/2 has no such limits: what stands behind a blank there would
// be the protocol of an HTTP/1 request, or a request of its own.
var oneWord = strings.NewReplacer(" ", "%20", "#", "%23")

// tunnelsHTTP reports whether a client asks the service for a tunnel in which it would send requests that the proxy does not see. To
// ignore an Upgrade is always allowed (RFC 9110 section 7.8).
func tunnelsHTTP(upgrade []string) bool {
	for protocol := range strings.SplitSeq(strings.ToLower(strings.Join(upgrade, ",")), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
		if name == "h2c" || name == "h2" || name == "http" || name == "tls" {
			return true
		}
	}
	return false
}

// path returns the path that the service is asked for.
func (s *Service) path(in *http.Request) string {
	asked, _, _ := strings.Cut(in.RequestURI, "?")
	if !strings.HasPrefix(asked, "/") || strings.HasPrefix(asked, "//") || strings.ContainsAny(asked, " #") {
		asked = in.URL.EscapedPath() // * or with a host before it; or to be taken for a host; or one that is no path
	}
	if asked == "*" {
		return asked
	}
	return strings.TrimSuffix(s.to.EscapedPath(), "/") + asked
}

// failed answers a request that got no answer.
func (s *Service) failed(w http.ResponseWriter, r *http.Request, err error) {
	v := visitOf(r.Context())
	v.mu.Lock()
	sends := v.sends
	v.mu.Unlock()
	lost := errors.Is(err, riphttp.ErrOutcomeUnknown)
	reached := ReachedNo
	if lost || v.mayRepeat && sends > 0 {
		reached = ReachedUnknown
	}
	switch reached {
	case ReachedNo:
		idempotency.Declare(r.Context(), idempotency.NoEffect)
	default:
		idempotency.Declare(r.Context(), idempotency.Unknown)
	}
	late := errors.Is(err, context.DeadlineExceeded) || failure(err) == "timeout" || failure(err) == "connect-timeout"
	switch wrong := v.intake.err(); {
	case errors.Is(wrong, errLarge):
		v.refuse(w, bodyTooLarge, reached, fmt.Sprintf("Its body has more than the %d bytes that are allowed.", s.config.MaxBody))
	case errors.Is(wrong, errSlow):
		v.refuse(w, bodyTooSlow, reached, "The body of the request came too slowly.")
	case wrong != nil:
		v.refuse(w, bodyBroken, reached, "The body of the request broke off.")
	case lost && late:
		v.refuse(w, unknownInTime, reached, "The request was sent, and no answer came in time. It may have been processed, and is not sent again.")
	case lost:
		v.refuse(w, unknown, reached, "The request was sent, and no answer came. It may have been processed, and is not sent again.")
	case late:
		v.refuse(w, timedOut, reached, "The service did not answer in time.")
	case reached == ReachedNo:
		v.refuse(w, unreachable, reached, "No request was sent: "+plainly(failure(err))+".")
	default:
		v.refuse(w, noAnswer, reached, "The request was sent, and no answer came.")
	}
}

// plainly says in plain words how an attempt failed.
func plainly(failure string) string {
	switch failure {
	case "refused":
		return "the connection was refused"
	case "dns":
		return "the name of the service is not known"
	case "tls":
		return "the service's certificate or TLS was not accepted"
	}
	return "there was no connection"
}

// A trust says whose word is believed.
type trust []netip.Prefix

// newTrust makes a trust of the configuration's. Nil means loopback and private addresses.
func newTrust(told []netip.Prefix) trust {
	if told != nil {
		return told
	}
	var near trust
	for _, prefix := range []string{"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "169.254.0.0/16", "fe80::/10"} {
		near = append(near, netip.MustParsePrefix(prefix))
	}
	return near
}

// includes reports whether the client at the other end of the connection is trusted.
func (t trust) includes(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	address := at.Addr().Unmap().WithZone("")
	for _, prefix := range t {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// oursWith returns the fields whose meaning the proxy knows, in canonical form.
func oursWith(p *manifest.Proxy) map[string]bool {
	ours := map[string]bool{"Forwarded": true, "X-Real-Ip": true}
	for _, name := range slices.Concat(keyFields[:], overrides, []string{deadline.TimeoutHeader, deadline.DeadlineHeader,
		deadline.CorrelationHeader, deadline.AttemptHeader}) {
		ours[name] = true
	}
	if name, ok := strings.CutPrefix(p.Scope, "header:"); ok {
		ours[http.CanonicalHeaderKey(name)] = true
	}
	return ours
}

// forwarded says to the service where the request came from. What a client says of that is believed if it is trusted.
func (s *Service) forwarded(p *httputil.ProxyRequest, trusted bool) {
	out := p.Out.Header
	for name := range out {
		plain := name
		if strings.Contains(name, "_") { // some services read it like a -, so that such a field could stand in for one of ours
			plain = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		}
		origin := strings.HasPrefix(plain, "X-Forwarded-") || plain == "X-Real-Ip"
		if origin && !trusted || plain != name && (origin || s.ours[plain]) {
			delete(out, name)
		}
	}
	if trusted {
		for _, name := range []string{"Forwarded", "X-Forwarded-For"} {
			if values := p.In.Header[name]; values != nil {
				out[name] = values
			}
		}
	}
	p.SetXForwarded()
	if trusted {
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if values := p.In.Header[name]; values != nil {
				out[name] = values
			}
		}
	}
}
