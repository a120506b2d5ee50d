package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileID identifies a file.
type fileID struct{ dev, ino uint64 }

// executable identifies the file that a process runs.
func executable(pid int) (fileID, bool) {
	st, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fileID{}, false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{sys.Dev, sys.Ino}, true
}

// threads returns the number of threads of a process, 0 if it cannot be determined.
func threads(pid int) int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0
	}
	return len(list)
}

// procStat is the contents of /proc/PID/stat.
type procStat struct {
	name   string
	state  byte
	parent int
	group  int
}

func statOf(pid int) (procStat, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, false
	}
	// "PID (NAME) STATE PARENT ...": the name may contain anything.
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return procStat{}, false
	}
	fields := strings.Fields(string(text[to+1:]))
	if len(fields) < 3 {
		return procStat{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	return procStat{printable(string(text[from+1 : to])), fields[0][0], parent, group}, err == nil && err2 == nil
}

// handles reports whether a process has a handler for a signal, by the hexadecimal SigCgt in /proc/PID/status.
func handles(pid int, sig syscall.Signal) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, mask, ok := strings.Cut(string(text), "\nSigCgt:")
	if !ok {
		return false
	}
	mask, _, _ = strings.Cut(mask, "\n")
	caught, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	return err == nil && caught>>(uint(sig)-1)&1 != 0
}

// ours reports whether a process is this one or a descendant of it.
func ours(pid int) bool {
	const deepest = 1000 // a process that ends during the walk could lead in a circle
	self := os.Getpid()
	for range deepest {
		if pid == self {
			return true
		}
		st, ok := statOf(pid)
		if !ok || st.parent <= 0 {
			return false
		}
		pid = st.parent
	}
	return false
}

// mapsDevice reports whether a process has the device's memory at an address. known is false if that cannot be
// determined.
func mapsDevice(pid int, at uint64) (known, maps bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH), false
	}
	prefix := fmt.Sprintf("%x-", at)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			return true, strings.Contains(line, memoryName)
		}
	}
	return true, false
}

// processes lists the processes of the machine: those that run, and orphans of this process that have ended. The latter
// stay in the list, because nobody waits for them.
func processes() (living map[int]procStat, ended map[int]bool) {
	living, ended = map[int]procStat{}, map[int]bool{}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return living, ended
	}
	self := os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		st, ok := statOf(pid)
		switch {
		case !ok:
		case st.state != 'Z' && st.state != 'X':
			living[pid] = st
		case st.parent == self:
			ended[pid] = true
		}
	}
	return living, ended
}

// variable returns an environment variable with which a process was started.
func variable(pid int, name string) (value string, set bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	for _, e := range strings.Split(string(text), "\x00") {
		if value, set := strings.CutPrefix(e, name+"="); set {
			return value, true
		}
	}
	return "", false
}

// watchEnd returns a file that becomes readable when a process ends.
func watchEnd(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// waitReadable waits until a file is readable. It returns false if the file was closed before.
func waitReadable(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ready := false
	err = raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		ready = n > 0 && err == nil && fds[0].Revents&unix.POLLIN != 0
		return ready
	})
	return err == nil && ready
}
