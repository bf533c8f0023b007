//go:build unix

package effects

import "syscall"

// stop lets the process stand still until resume.
func (p *process) stop() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
