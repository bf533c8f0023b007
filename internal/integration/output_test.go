package integration

import (
	"strings"
	"sync"
	"time"
)

// An output is what a process writes while it runs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed when something has been written
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	text, _ := o.state()
	return text
}

func (o *output) state() (text string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.more
}

// waitFor waits until a text was written. It reports whether that came, within a minute and before all was over.
func (o *output) waitFor(what string, over <-chan struct{}) bool {
	late := time.After(time.Minute)
	for {
		text, more := o.state()
		if strings.Contains(text, what) {
			return true
		}
		select {
		case <-more:
		case <-over:
			return strings.Contains(o.String(), what)
		case <-late:
			return false
		}
	}
}
