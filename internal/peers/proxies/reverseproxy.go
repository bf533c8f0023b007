package main

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// reverseProxy is the least that a proxy in Go does: net/http and httputil, with the settings that make it fast.
func reverseProxy(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: proxies reverseproxy HOST:PORT URL")
	}
	to, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	return http.ListenAndServe(args[0], &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true, IdleConnTimeout: 90 * time.Second},
		BufferPool: &buffers{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}},
	})
}

type buffers struct{ sync.Pool }

func (p *buffers) Get() []byte  { return *p.Pool.Get().(*[]byte) }
func (p *buffers) Put(b []byte) { p.Pool.Put(&b) }
