package exit

import (
	"os"
	"os/signal"
	"syscall"
)

// OutlivePipe keeps the process alive when it writes to a stdout or stderr that nobody reads any more, as in "2>&1 | head -1",
// until stop is called: the write fails and the signal does nothing. It is for subcommands that have something to clean up.
func OutlivePipe() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE) // and not Ignore, which processes started meanwhile would inherit
	return func() { signal.Stop(c) }
}
