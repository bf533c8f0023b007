package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Those who look are few.
const (
	adminHeader      = 16 << 10
	adminConnections = 64
)

// adminHandler is what answers on the admin listener.
func (p *process) adminHandler() http.Handler {
	host, _, _ := net.SplitHostPort(p.config.Admin)
	return private(host, p.admin.handler())
}

// private keeps pages that somebody has open from asking what is not meant for them: requests of other origins, and those that come
// by a name which whoever owns it lets point here (DNS rebinding). Told is the host of the address to listen on.
func private(told string, h http.Handler) http.Handler {
	h = http.NewCrossOriginProtection().Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil && !strings.EqualFold(host, "localhost") && !strings.EqualFold(host, told) {
			http.Error(w, "This is served by address, by the name localhost, and by the name in --admin.", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
