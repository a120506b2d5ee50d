package procgroup

import (
	"os/exec"
	"strconv"
)

// Set makes a command that has not started, and the processes that it starts, end when its context ends.
func Set(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}
