package fatbin

import (
	"bytes"
	"os"
	"strconv"
	"sync"
)

// mostPTX is how long a module may be in bytes on a machine with memory for it. A program that calls twenty algorithms of Thrust with four
// types has 48 MB.
const mostPTX = 128 << 20

// ptxGrowth is how many times its length a module can take: 8.5 GB were measured for 120 MiB of short instructions.
const ptxGrowth = 72

// MaxPTX is how long a module may be in bytes: what fits into the memory of the machine, or of the control group that the process is in.
var MaxPTX = sync.OnceValue(func() int { return maxPTX(os.ReadFile) })

func maxPTX(read func(string) ([]byte, error)) int {
	most := uint64(mostPTX)
	for _, s := range []struct {
		file, key string
		unit      uint64
	}{{"/proc/meminfo", "MemTotal:", 1024}, {"/sys/fs/cgroup/memory.max", "", 1}} {
		text, err := read(s.file)
		if err != nil {
			continue
		}
		_, text, _ = bytes.Cut(text, []byte(s.key))
		words := bytes.Fields(text)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseUint(string(words[0]), 10, 53); err == nil && n > 0 { // else "max": no bound
			most = min(most, n*s.unit/ptxGrowth)
		}
	}
	return int(most)
}
