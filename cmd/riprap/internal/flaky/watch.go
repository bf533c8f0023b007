package flaky

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/riprap-go/riprap/flaky"
)

// A watch writes a line for each request that arrives, and one more if its client leaves before the answer.
type watch struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *watch) arrival(a flaky.Arrival) {
	switch {
	case a.Ended.IsZero() && a.Step == "":
		w.line(a.Time, a, "404, the script has no part for this path")
	case a.Ended.IsZero():
		w.line(a.Time, a, a.Step)
	case a.Left:
		w.line(a.Ended, a, fmt.Sprintf("left after %v", a.Ended.Sub(a.Time).Round(time.Millisecond)))
	}
}

func (w *watch) line(at time.Time, a flaky.Arrival, what string) {
	path := a.Path
	if a.Run != "" {
		path = "/~" + a.Run + path
	}
	line := strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' ' // paths are decoded: what they hold is not for a terminal to obey
		}
		return c
	}, fmt.Sprintf("%s %s %s · %s", at.Format("15:04:05.000"), a.Method, path, what))
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.w, line)
}
