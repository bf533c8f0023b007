package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

const clients = 32 // with a connection and a request each

// A load is what wrk does.
type load struct {
	url       string
	script    string   // in Lua; "" for plain GETs
	args      []string // of the script
	placement placement
	length    time.Duration
}

// A result is what wrk saw.
type result struct {
	requests int64
	rate     float64
	p99      time.Duration
}

func (l load) run(ctx context.Context) (result, error) {
	command := append(l.placement.load().bind(), "wrk", "-t1", fmt.Sprintf("-c%d", clients), "--latency", "-d"+l.length.String())
	if l.script != "" {
		command = append(command, "-s", l.script)
	}
	command = append(append(command, l.url, "--"), l.args...)
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	return readResult(string(out))
}

var (
	requestsLine = regexp.MustCompile(`(\d+) requests in `)
	rateLine     = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	p99Line      = regexp.MustCompile(`\n\s+99%\s+(\S+)`)
	failedLine   = regexp.MustCompile(`(Non-2xx or 3xx responses|Socket errors): .*`)
)

// readResult reads what wrk prints. A run in which a request failed is none: a proxy that refuses is quick.
func readResult(out string) (r result, err error) {
	if failed := failedLine.FindString(out); failed != "" {
		return r, fmt.Errorf("some requests failed: %s", failed)
	}
	requests, rate, p99 := requestsLine.FindStringSubmatch(out), rateLine.FindStringSubmatch(out), p99Line.FindStringSubmatch(out)
	if requests == nil || rate == nil || p99 == nil {
		return r, fmt.Errorf("wrk printed something else: %s", out)
	}
	if r.requests, err = strconv.ParseInt(requests[1], 10, 64); err != nil {
		return r, err
	}
	if r.rate, err = strconv.ParseFloat(rate[1], 64); err != nil {
		return r, err
	}
	r.p99, err = time.ParseDuration(p99[1])
	if err == nil && r.requests == 0 {
		err = fmt.Errorf("no request was answered")
	}
	return r, err
}
