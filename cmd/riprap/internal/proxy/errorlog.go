package proxy

import (
	"io"
	"log"
)

// errorLog is what net/http tells of connections.
func (p *process) errorLog() *log.Logger { return log.New(io.Discard, "", 0) }
