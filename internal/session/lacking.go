package session

import (
	"errors"
	"fmt"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/ptx"
)

// lacking says why a kernel was not executed, and a way around it where there is one.
func lacking(u *cuda.Unchecked) string {
	const most = 3
	reasons := strings.Split(strings.TrimSpace(u.Err.Error()), "\n")
	var list ptx.ErrorList
	if errors.As(u.Err, &list) {
		reasons = messages(list, u.Language != event.Threads)
	}
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(reasons, "; ") + around(u)
}

// messages gives each message of a list once, with the first place that has it. The places of generated PTX, which its author has
// never seen, are left out.
func messages(list ptx.ErrorList, generated bool) []string {
	var msgs []string
	seen := map[string]bool{}
	for _, e := range list {
		if seen[e.Msg] {
			continue
		}
		seen[e.Msg] = true
		if generated {
			msgs = append(msgs, e.Msg)
		} else {
			msgs = append(msgs, e.Error())
		}
	}
	return msgs
}

// around tells of what a kernel can do without. CUDA's headers have code for devices that lack asynchronous copies of threads
// and barriers in memory, and Triton makes such copies for pipelined loops only.
func around(u *cuda.Unchecked) string {
	why := u.Err.Error()
	copies, barriers := strings.Contains(why, "cp.async."), strings.Contains(why, "mbarrier.")
	switch {
	case u.Language == event.Triton && strings.Contains(why, "mma."):
		return "; Triton compiles tl.dot to mma instructions, and pipelined loops to cp.async"
	case u.Language == event.Triton && copies:
		return "; Triton compiles pipelined loops to these, and does without them with num_stages=1"
	case u.Language == event.Threads && (copies || barriers) && !strings.Contains(why, "cp.async.bulk"):
		return "; cuda::barrier, cuda::pipeline and memcpy_async do without these when compiled with -arch=sm_75"
	}
	return ""
}
