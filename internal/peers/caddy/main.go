// Caddy is the Caddy web server with what a reverse proxy needs of it and nothing else, for make bench-proxy.
//
// It is a module of its own: Caddy requires some 150 others, and who audits clients should not have to fetch them.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func main() { caddycmd.Main() }
