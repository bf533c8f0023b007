// Audits runs riprap audit on clients of other projects and of this one, one after the other, and writes docs/audits.md from what
// it found:
//
//	audits [CLIENT ...]
//
// It is run by scripts/audits, from the root of the repository, which builds and installs what it needs. What was found is kept
// in dist/audits/results, and an audit is not repeated while riprap, the client's versions and its command are the same; one of
// a client that is named is repeated anyway. The page is written when there is a result of every client.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	riprapFile = "dist/audits/riprap"
	resultsDir = "dist/audits/results"
	pageFile   = "docs/audits.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "audits:", err)
		os.Exit(1)
	}
}

// run audits the clients that are named, or those of which there is no result, and writes the page.
func run(ctx context.Context, named []string) error {
	for _, name := range named {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			return fmt.Errorf("no client %q; there are: %s", name, strings.Join(names(), " "))
		}
	}
	jobs, err := plan(named)
	if err != nil {
		return err
	}

	started, failed, count := time.Now(), 0, 0
	for i := range jobs {
		if jobs[i].report != nil || !jobs[i].due {
			continue
		}
		count++
		fmt.Fprintf(os.Stderr, "== %s, %s (%d of %d, %.0f s)\n", jobs[i].peer.title, jobs[i].configuration.name,
			count, due(jobs), time.Since(started).Seconds())
		if err := jobs[i].audit(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			failed++
			fmt.Fprintf(os.Stderr, "audits: %s, %s: %v\n", jobs[i].peer.title, jobs[i].configuration.name, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "   %s\n", tally(jobs[i].report))
	}
	if missing := without(jobs); len(missing) > 0 {
		return fmt.Errorf("%s is not written: %d failed, and there is no result of %s", pageFile, failed, strings.Join(missing, ", "))
	}

	var page bytes.Buffer
	writePage(&page, results(jobs), machine())
	if err := os.WriteFile(pageFile, page.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "== %s is written\n", pageFile)
	return nil
}

// A job is one audit: of a peer in a configuration.
type job struct {
	result
	peer          peer
	configuration configuration
	due           bool // to be done now
}

// plan returns all audits, with the results that can be taken as they are.
func plan(named []string) ([]job, error) {
	riprap, err := hash(riprapFile)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, p := range peers {
		versions, err := p.versions()
		if err != nil {
			return nil, fmt.Errorf("the version of %s: %w", p.title, err)
		}
		for _, c := range p.configurations {
			j := job{peer: p, configuration: c, due: len(named) == 0 || slices.Contains(named, p.name)}
			j.result = result{
				Peer: p.name, Configuration: c.name, Versions: versions, Riprap: riprap,
				Command: strings.Join(c.command, " "), Post: c.post, Keyed: c.keyed, Flags: strings.Join(c.flags, " "),
			}
			if kept, err := read(j.file()); err == nil && kept.fits(j.result) && !slices.Contains(named, p.name) {
				j.result = kept
			}
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// audit runs riprap audit, which shows its progress on stderr, and keeps the result.
func (j *job) audit(ctx context.Context) error {
	args := []string{"audit", "--json"}
	if j.configuration.post != "" {
		args = append(args, "--post", j.configuration.post, "--keyed", j.configuration.keyed)
	}
	args = slices.Concat(args, j.configuration.flags, []string{"--"}, j.configuration.command)

	cmd := exec.CommandContext(ctx, riprapFile, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = environment(os.Environ())
	cmd.Stderr = os.Stderr
	found, err := cmd.Output()
	// Exit status 1 says that there are failures, of which the report tells.
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == 1 && len(found) > 0) {
		return err
	}
	parsed, err := parse(found)
	if err != nil {
		return err
	}
	j.report = parsed
	j.Report = found
	return j.keep()
}

// environment is what the clients get: not the proxies of whoever runs the audits, which some clients use even for loopback, nor
// settings by which a runtime behaves differently.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		return strings.HasSuffix(name, "_PROXY") || name == "NODE_OPTIONS" || name == "GODEBUG" || name == "PYTHONPATH"
	})
}

func names() []string {
	var all []string
	for _, p := range peers {
		all = append(all, p.name)
	}
	return all
}

// due counts the audits that are to be done, or were.
func due(jobs []job) (n int) {
	for _, j := range jobs {
		if j.due && !j.taken {
			n++
		}
	}
	return n
}

// without returns what has no result.
func without(jobs []job) (missing []string) {
	for _, j := range jobs {
		if j.report == nil {
			missing = append(missing, j.Peer+" ("+j.Configuration+")")
		}
	}
	return missing
}

func results(jobs []job) []result {
	all := make([]result, len(jobs))
	for i, j := range jobs {
		all[i] = j.result
	}
	return all
}

func (r *result) file() string {
	return filepath.Join(resultsDir, r.Peer+"-"+r.Configuration+".json")
}
