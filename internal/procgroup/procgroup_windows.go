package procgroup

import (
	"os/exec"
	"strconv"
)

// Set has a command that has not started, and what it starts, killed when its context ends.
func Set(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}
