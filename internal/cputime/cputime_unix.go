//go:build unix

package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Used is the processor time that this process has taken so far, by all its threads.
func Used() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic("BUG: clock_gettime: " + err.Error())
	}
	return time.Duration(t.Nano())
}
