package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// describe prints what is compared and where.
func (b *bench) describe(w io.Writer) error {
	caddy, err := buildinfo.ReadFile(filepath.Join(b.dir, "caddy"))
	if err != nil {
		return err
	}
	version := "?"
	for _, m := range caddy.Deps {
		if m.Path == "github.com/caddyserver/caddy/v2" {
			version = m.Version
		}
	}
	fmt.Fprintf(w, "%s, %s, Caddy %s, %s; %s on %s/%s, %d cores (%s), %s\n",
		firstLine("nginx", "-v"), firstLine("haproxy", "-v"), version, firstLine("wrk", "-v"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), firstLine("uname", "-sr"))
	fmt.Fprintf(w, "wrk -t1 -c%d, %d rounds of %v for each candidate; medians, and of ratios inside a round (least to most)\n", clients, b.rounds, b.turn)
	return nil
}

// firstLine is the first line that a command prints, wherever it does.
func firstLine(command string, args ...string) string {
	out, _ := exec.Command(command, args...).CombinedOutput() // wrk -v exits 1
	line, _, _ := strings.Cut(string(out), "\n")
	line, _, _ = strings.Cut(line, " [")
	line, _, _ = strings.Cut(line, " - ")
	return strings.TrimSpace(strings.TrimPrefix(line, "nginx version: "))
}

func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

// printRows prints a table of Markdown.
func printRows(w io.Writer, p placement, rows []row) {
	fmt.Fprintf(w, "\n%s: %s\n\n", p, map[placement]string{
		free:   "load, proxy and service share all processors",
		pinned: "the proxy has a processor to itself",
	}[p])
	fmt.Fprintln(w, "| | requests/s | × nginx | × tuned ReverseProxy | × Caddy | p99 | CPU a request | × tuned ReverseProxy |\n|---|--:|--:|--:|--:|--:|--:|--:|")
	rate := func(t turn) float64 { return t.rate }
	cpu := func(t turn) float64 { return float64(t.cpu) }
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %.0f | %s | %s | %s | %.1f ms | %.1f µs | %s |\n", r.name, median(values(r.turns, rate)),
			against(r, rows, nginxName, rate), against(r, rows, tunedName, rate), against(r, rows, caddyName, rate),
			median(values(r.turns, func(t turn) float64 { return float64(t.p99) }))/float64(time.Millisecond),
			median(values(r.turns, cpu))/float64(time.Microsecond), against(r, rows, tunedName, cpu))
	}
}

// printKeyed prints what keys cost.
func printKeyed(w io.Writer, rounds []keyedRound) {
	column := func(f func(keyedRound) float64) []float64 {
		var all []float64
		for _, r := range rounds {
			all = append(all, f(r))
		}
		return all
	}
	plain := column(func(r keyedRound) float64 { return r.plain.rate })
	store := column(func(r keyedRound) float64 { return r.store })
	keyed := column(func(r keyedRound) float64 { return r.keyed.rate })
	sum := column(func(r keyedRound) float64 { return harmonic(r.plain.rate, r.store) })
	ratio := column(func(r keyedRound) float64 { return r.keyed.rate / harmonic(r.plain.rate, r.store) })
	p99 := column(func(r keyedRound) float64 { return float64(r.keyed.p99) / float64(time.Millisecond) })
	cpu := column(func(r keyedRound) float64 { return float64(r.keyed.cpu) / float64(time.Microsecond) })
	fmt.Fprintln(w, "\nPOSTs with a fresh key each, SQLite on disk, synced\n\n| | a second |\n|---|--:|")
	fmt.Fprintf(w, "| POST without a key | %.0f |\n| claim and complete, the store alone | %.0f |\n| harmonic sum of both | %.0f |\n", median(plain), median(store), median(sum))
	fmt.Fprintf(w, "| POST with a key | %.0f |\n| … × harmonic sum | %s |\n| … p99 | %.1f ms |\n| … CPU a request | %.1f µs |\n", median(keyed), spread(ratio), median(p99), median(cpu))
}

// against compares a row with the one of a name, round by round.
func against(r row, rows []row, name string, of func(turn) float64) string {
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	base := values(rows[i].turns, of)
	ratios := values(r.turns, of)
	for i := range ratios {
		ratios[i] /= base[i]
	}
	if r.name == name {
		return "1"
	}
	return spread(ratios)
}

func values(turns []turn, of func(turn) float64) []float64 {
	var all []float64
	for _, t := range turns {
		all = append(all, of(t))
	}
	return all
}

// spread is a median with what it lies between.
func spread(all []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(all), slices.Min(all), slices.Max(all))
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]) / 2
}
