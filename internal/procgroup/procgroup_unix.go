//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Set gives a command that has not started a process group of its own, all of which is killed when its context ends.
func Set(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
