package proxies

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nodeServices starts the service in Node, over HTTP/1.1 and HTTP/2.
func nodeServices(t testing.TB) []service {
	p := run(t, needs(t, "node"), "testdata/service.mjs", strings.Join(unforwarded, ","))
	ports := p.listens(t)
	return []service{
		{"node-" + string(http1), "http://127.0.0.1:" + ports[0], "http://127.0.0.1:" + ports[0], http1, paths},
		{"node-" + string(h2c), "http://127.0.0.1:" + ports[1], "h2c://127.0.0.1:" + ports[1], h2c, paths},
	}
}

// pythonService starts the service in Python.
func pythonService(t testing.TB) []service {
	p := run(t, needs(t, "python3", "python"), "testdata/service.py", strings.Join(unforwarded, ","))
	at := "http://127.0.0.1:" + p.listens(t)[0]
	return []service{{"python", at, at, http1, paths}}
}

// listens waits until a program of testdata says what it listens on.
func (p *process) listens(t testing.TB) (ports []string) {
	t.Helper()
	for _, line := range p.says(t, "listening ") {
		if rest, ok := strings.CutPrefix(line, "listening "); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

const nginxConf = `
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
	access_log off;
	absolute_redirect off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	default_type text/plain;
	client_max_body_size 0;
	gzip_types text/plain;
	gzip_min_length 100;
	gzip_proxied any; # or nothing is compressed in which there is a Via
	server {
		listen %[2]s;
		root %[1]s/files;
		location = /small { return 200 "hello\n"; }
		location = /empty { return 200; }
		location = /nothing { return 204; }
		location = /cookies { add_header Set-Cookie "a=1; Path=/"; add_header Set-Cookie "b=2; Secure"; return 200 "cookies\n"; }
		location /status/ {
			add_header Retry-After 7 always;
			location = /status/400 { return 400; }
			location = /status/404 { return 404; }
			location = /status/429 { return 429 "slower\n"; }
			location = /status/500 { return 500; }
			location = /status/503 { return 503 "later\n"; }
		}
		location = /moved/301 { return 301 /small; }
		location = /moved/302 { return 302 http://elsewhere.test/a?b=c; }
		location = /moved/307 { return 307 /small; }
		location = /moved/308 { return 308 /small; }
		location /echo { return 200 "$request_method $request_uri $content_type $http_x_odd\n"; }
		location = /packed { gzip on; try_files /tagged =404; }
	}
}
`

// nginxService starts an nginx of the test's own.
func nginxService(t testing.TB) []service {
	program := nginx(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "files", "down"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"tagged": 4096, "range": 4096, fmt.Sprintf("down/%d", large): large << 20} {
		text := make([]byte, 0, n)
		for len(text) < n {
			text = append(text, block[:min(len(block), n)]...)
		}
		if err := os.WriteFile(filepath.Join(dir, "files", name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := freeAddr(t)
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, addr), 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(t, program, "-p", dir, "-e", "stderr", "-c", conf)
	waitFor(t, "nginx to listen", func() bool {
		if p.gone() {
			t.Fatalf("nginx ended:\n%s", p.out.String())
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	known := []string{"small", "empty", "nothing", "tagged", "range", "packed", "cookies", "status", "moved", "echo", "down"}
	return []service{{"nginx", "http://" + addr, "http://" + addr, http1, known}}
}

// nginx returns its path. Debian keeps it where the PATH of most users does not lead.
func nginx(t testing.TB) string {
	if _, err := os.Stat("/usr/sbin/nginx"); err == nil {
		return "/usr/sbin/nginx"
	}
	return needs(t, "nginx")
}

// freeAddr returns an address that nobody listens on.
func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
