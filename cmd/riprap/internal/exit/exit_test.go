package exit

import (
	"errors"
	"fmt"
	"testing"
)

func TestCodeTellsUsageFromFailure(t *testing.T) {
	usage := &UsageError{Command: "riprap demo", Err: errors.New("no such flag")}
	tests := map[string]struct {
		err  error
		want int
	}{
		"no error is fine":                    {nil, 0},
		"the thing checked is not fine":       {ErrNotFine, 1},
		"work that failed":                    {errors.New("listen: address in use"), 1},
		"a mistake in the arguments":          {usage, 2},
		"a mistake in the arguments, wrapped": {fmt.Errorf("start: %w", usage), 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Code(tt.err); got != tt.want {
				t.Errorf("Code(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestAUsageErrorNamesTheCommandThatExplainsIt(t *testing.T) {
	err := &UsageError{Command: "riprap demo", Err: errors.New("-callers 3: want 100 to 1000")}
	want := "riprap demo: -callers 3: want 100 to 1000 (riprap demo -h shows what it takes)"
	if got := err.Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
