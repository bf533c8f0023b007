package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A candidate is a proxy and how it is configured: to keep connections to the service, to log no request, and to say who asked.
// Each gets as many threads as there are processors for it.
type candidate struct {
	name    string
	file    string   // of its configuration; "" if it needs none
	config  string   // with the words DIR, LISTEN, BACKEND and THREADS to be filled in
	command []string // the same
	env     []string
}

const (
	nginxName = "nginx"
	tunedName = "ReverseProxy, tuned"
	caddyName = "Caddy"
	ripName   = "riprap proxy"
)

// candidates are compared in this order. Names of some are yardsticks, see table.go.
var candidates = []candidate{
	{name: nginxName, file: "nginx.conf", command: []string{"nginx", "-c", "DIR/nginx.conf"}, config: nginxStart + `
	upstream service {
		server BACKEND;
		keepalive 512;
		keepalive_requests 1000000000;
	}
	server {
		listen LISTEN reuseport;
		location / {
			proxy_pass http://service;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Proto $scheme;
		}
	}
}
`},
	{name: "haproxy", file: "haproxy.cfg", command: []string{"haproxy", "-db", "-f", "DIR/haproxy.cfg"}, config: `global
	nbthread THREADS
	maxconn 4096
defaults
	mode http
	timeout connect 2s
	timeout client 60s
	timeout server 30s
	http-reuse always
	option forwardfor
frontend clients
	bind LISTEN
	default_backend service
backend service
	server one BACKEND
`},
	{name: caddyName, file: "caddy.json", command: []string{"DIR/caddy", "run", "--config", "DIR/caddy.json"}, config: `{
	"admin": {"disabled": true, "config": {"persist": false}},
	"logging": {"logs": {"default": {"level": "ERROR"}}},
	"apps": {"http": {"servers": {"proxy": {
		"listen": ["LISTEN"],
		"automatic_https": {"disable": true},
		"routes": [{"handle": [{
			"handler": "reverse_proxy",
			"transport": {"protocol": "http", "compression": false,
				"keep_alive": {"max_idle_conns_per_host": 512, "max_idle_conns": 512}},
			"upstreams": [{"dial": "BACKEND"}]
		}]}]
	}}}}
}
`, env: []string{"XDG_DATA_HOME=DIR", "XDG_CONFIG_HOME=DIR"}},
	{name: tunedName, command: []string{"DIR/proxies", "reverseproxy", "LISTEN", "http://BACKEND"}},
	{name: ripName, command: []string{"DIR/riprap", "proxy", "--listen", "LISTEN", "--to", "http://BACKEND",
		"--require-key", "POST /charge", "--scope", "header:X-Customer", "--store", "DIR/keys.db",
		"--route", "GET /reports/", "--adaptive", "--admin", "127.0.0.1:0"}},
}

// nginxStart is how the configurations of nginx begin.
const nginxStart = `daemon off;
worker_processes THREADS;
error_log stderr crit;
pid DIR/NAME.pid;
events { worker_connections 4096; }
http {
	access_log off;
	default_type application/json;
	keepalive_requests 1000000000;
	keepalive_timeout 3600s;
	client_body_temp_path DIR/NAME-body;
	proxy_temp_path DIR/NAME-proxy;
	fastcgi_temp_path DIR/NAME-fastcgi;
	uwsgi_temp_path DIR/NAME-uwsgi;
	scgi_temp_path DIR/NAME-scgi;
`

// The service is another nginx, which answers each request from its configuration: it takes a tenth of the time of the fastest
// proxy here, so that it is never what is measured.
var service = candidate{name: "the service", file: "service.conf", command: []string{"nginx", "-c", "DIR/service.conf"},
	config: nginxStart + `
	server {
		listen LISTEN reuseport;
		location / { return 200 '{"id":"ch_1","cents":1990,"currency":"EUR","customer":"c_42","status":"paid","note":"with many thanks"}\n'; }
	}
}
`}

// backend starts the service and returns its host and port.
func (b *bench) backend(procs *processes, p placement) (string, error) {
	running, err := b.launch(procs, service, p, p.service(), "")
	if err != nil {
		return "", fmt.Errorf("the service: %w", err)
	}
	return strings.TrimPrefix(running.url, "http://"), nil
}

// start starts a candidate.
func (b *bench) start(procs *processes, c candidate, p placement, backend string) (*process, error) {
	return b.launch(procs, c, p, p.proxy(), backend)
}

func (b *bench) launch(procs *processes, c candidate, p placement, on cpus, backend string) (*process, error) {
	listen, err := freePort()
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(c.file, ".")
	fill := strings.NewReplacer("DIR", b.dir, "LISTEN", listen, "BACKEND", backend, "THREADS", fmt.Sprint(on.count()), "NAME", name).Replace
	if c.file != "" {
		if err := os.WriteFile(filepath.Join(b.dir, c.file), []byte(fill(c.config)), 0o644); err != nil {
			return nil, err
		}
	}
	command := on.bind()
	for _, word := range c.command {
		command = append(command, fill(word))
	}
	var env []string
	for _, word := range c.env {
		env = append(env, fill(word))
	}
	return procs.start(command, env, "http://"+listen, filepath.Join(b.dir, strings.ReplaceAll(c.name, " ", "-")+".log"))
}
