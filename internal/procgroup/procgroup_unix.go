//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Set gives a command that has not started a process group of its own. The whole group is killed when the command's
// context ends.
func Set(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
