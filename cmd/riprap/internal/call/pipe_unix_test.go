//go:build unix

package call

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/exit"
)

func TestAPipeThatNobodyOpensDoesNotKeepACallFromEnding(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"-d", "@" + name, "http://127.0.0.1:1"}, {"-o", name, "http://127.0.0.1:1"}} {
		var stdout, stderr bytes.Buffer
		if err := Run(ctx, args, &stdout, &stderr); !errors.Is(err, exit.ErrNotFine) {
			t.Errorf("riprap call %s, interrupted: %v, want that it was not fine", strings.Join(args, " "), err)
		}
	}
}
