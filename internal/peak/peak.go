// Package peak reports the peak memory of the process.
package peak

import (
	"errors"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Resident is the largest resident set of this process so far, in bytes, as reported by Linux. (The value of getrusage
// includes the memory of the parent when it made the process.)
func Resident() (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib * 1024, err
		}
	}
	return 0, errors.New("/proc/self/status does not tell the largest resident set")
}

// Memory is Resident or, on systems that do not report it, the memory that the Go runtime has obtained from the system.
func Memory() uint64 {
	if n, err := Resident(); err == nil {
		return n
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
