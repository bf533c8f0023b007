package audit

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// shell hands the line over as it is: cmd has quotes of its own.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /S /C "` + line + `"`}
	return cmd
}

// group has nothing to do: Windows knows the children of a process as long as it runs.
func group(*exec.Cmd) {}

// sweep has nothing to do: once the process is over nobody knows its children.
func sweep(*os.Process) {}

// kill ends the process and its children.
func kill(p *os.Process) error {
	tree := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid))
	if err := tree.Run(); err != nil {
		return p.Kill()
	}
	return nil
}
