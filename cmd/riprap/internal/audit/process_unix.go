//go:build unix

package audit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

func shell(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", line)
}

// group makes the process the first of a group, to which its children will belong.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the process and its group.
func kill(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// sweep ends what a process that is over has left behind: a group outlives its first process, and keeps its number as long.
func sweep(p *os.Process) { kill(p) }
