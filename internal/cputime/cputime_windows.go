package cputime

import (
	"time"

	"golang.org/x/sys/windows"
)

// Used is the processor time that this process has taken so far, by all its threads.
func Used() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		panic("BUG: GetProcessTimes: " + err.Error())
	}
	const tick = 100 * time.Nanosecond
	ticks := func(t windows.Filetime) time.Duration {
		return time.Duration(t.HighDateTime)<<32 | time.Duration(t.LowDateTime)
	}
	return tick * (ticks(kernel) + ticks(user))
}
