// Package proxies proves what "riprap proxy" promises, with the built command in front of real services: nginx, and programs in
// Go, Node and Python, called by programs in the same languages and by curl. A test of the proxy's inside belongs to its package.
package proxies

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for something that must happen. Tests that pass never need it.
const patience = time.Minute

// scratch is a folder for as long as the tests run.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "proxies")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		scratch = dir
		return m.Run()
	}())
}

// command builds the command once and returns its path. It watches for races if the tests do.
var command = sync.OnceValues(func() (string, error) {
	file := filepath.Join(scratch, "riprap")
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	args := []string{"build"}
	if raced { // the same flags as for the tests, so that what they have built is there already
		args = append(args, "-race", "-gcflags=github.com/ncruces/go-sqlite3-wasm/v6/...=-race=false")
	}
	build := exec.Command("go", append(args, "-o", file, "github.com/riprap-go/riprap/cmd/riprap")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

// soaks skips a long test unless such tests are asked for.
func soaks(t *testing.T) {
	if os.Getenv("RIPRAP_SOAK") == "" {
		t.Skip("a long test: make soak")
	}
}

// needs skips a test for which a program is missing, or fails it where nothing may be missing.
func needs(t testing.TB, program string, others ...string) (file string) {
	t.Helper()
	for _, name := range append([]string{program}, others...) {
		if file, err := exec.LookPath(name); err == nil {
			return file
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no %s on this machine", program)
	}
	t.Skipf("there is no %s on this machine", program)
	return ""
}

// waitFor waits until a condition holds.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}
