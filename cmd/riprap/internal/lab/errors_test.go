package lab

import (
	"errors"
	"io"
	"strings"
	"testing"
)

var errFull = errors.New("no space left on device")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestAnErrorOfWritingNamesTheCommand(t *testing.T) {
	for _, args := range []string{"-h", "help", "list", "run -h", "compare -h", "run outage --for 100s --seeds 1", "compare contention --seeds 1 --json"} {
		err := Run(t.Context(), strings.Fields(args), fullDisk{}, io.Discard)
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "riprap lab: ") {
			t.Errorf("riprap lab %s onto a full disk: %v, want riprap lab: %v", args, err, errFull)
		}
	}
}
